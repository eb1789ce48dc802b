// hour-offsets.ts: devices whose clock is off by whole hours, or hours and a half: they send a local time as
// UTC. It counts where the last 15 messages agree to two minutes, so that a backlog is no such clock, and
// all of them came after the last correction of our own. One event for each number of hours, where it comes,
// goes, or has another number of devices.

import type { Emit } from '../../domain/event.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { DeviceClock } from '../../mapping/mapping.ts'

export type HourOffsets = {
  /** Begins a look over all devices. */
  begin(): void
  add(device: string, clock: DeviceClock): void
  /** All were added. */
  end(): void
}

const hourMs = 3_600_000
const stepMs = hourMs / 2
const offsetMaxMs = 14 * hourMs
const messagesMin = 15
const errorMaxMs = 60_000
/** A device that has not sent for this long says nothing about its clock now. */
const recentMs = 24 * hourMs

export function createHourOffsets({ emit, now }: { emit: Emit; now: () => EpochMs }): HourOffsets {
  let said: ReadonlyMap<number, number> = new Map()
  let found = new Map<number, { devices: number; example: string }>()
  return { begin, add, end }

  function begin(): void {
    found = new Map()
  }

  function add(device: string, { skewMs, spreadMs, messagesSince, lastSeen }: DeviceClock): void {
    if (messagesSince < messagesMin || spreadMs > 2 * errorMaxMs || Math.abs(now() - lastSeen) > recentMs)
      return
    const offsetMs = Math.round(skewMs / stepMs) * stepMs
    const isOff = Math.abs(offsetMs) >= hourMs && Math.abs(offsetMs) <= offsetMaxMs
    if (!isOff || Math.abs(skewMs - offsetMs) > errorMaxMs) return
    const group = found.get(offsetMs)
    if (group === undefined) found.set(offsetMs, { devices: 1, example: device })
    else group.devices += 1
  }

  function end(): void {
    for (const offsetMs of said.keys())
      if (!found.has(offsetMs)) emit({ kind: 'devices_hours_off', offsetMs, devices: 0, example: '' })
    for (const [offsetMs, group] of found)
      if (said.get(offsetMs) !== group.devices) emit({ kind: 'devices_hours_off', offsetMs, ...group })
    said = new Map([...found].map(([offsetMs, { devices }]) => [offsetMs, devices]))
  }
}
