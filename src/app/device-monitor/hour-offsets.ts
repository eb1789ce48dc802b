// hour-offsets.ts: devices whose clock is off by whole hours, or hours and a half: they send a local time as
// UTC. It counts where the last 15 messages agree to two minutes, so that a backlog is no such clock, and
// all of them came after the last correction of our own. One state for each number of hours.

import type { EpochMs } from '../../std/clock.ts'
import type { State } from '../../domain/condition-state.ts'
import type { DeviceClock } from '../../mapping/mapping.ts'

const hourMs = 3_600_000
const stepMs = hourMs / 2
const offsetMaxMs = 14 * hourMs
const messagesMin = 15
const errorMaxMs = 60_000
/** A device that has not sent for this long says nothing about its clock now. */
const recentMs = 24 * hourMs

/** For one look over all devices. */
export function createHourOffsets(now: EpochMs) {
  const found = new Map<number, { devices: number; example: string }>()
  return {
    add(device: string, { skewMs, spreadMs, messagesSince, lastSeen }: DeviceClock): void {
      if (messagesSince < messagesMin || spreadMs > 2 * errorMaxMs || Math.abs(now - lastSeen) > recentMs)
        return
      const offsetMs = Math.round(skewMs / stepMs) * stepMs
      const isOff = Math.abs(offsetMs) >= hourMs && Math.abs(offsetMs) <= offsetMaxMs
      if (!isOff || Math.abs(skewMs - offsetMs) > errorMaxMs) return
      const { devices, example } = found.get(offsetMs) ?? { devices: 0, example: device }
      found.set(offsetMs, { devices: devices + 1, example })
    },
    states: (): State[] =>
      [...found].map(([offsetMs, group]) => ({ code: 'DEVICES_HOURS_OFF', offsetMs, ...group })),
  }
}
