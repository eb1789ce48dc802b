// unmapped-devices.ts: devices that send, and whose messages give no payload, while those of others do. A
// device counts where its last message gave none, and at least five did for the same reason. Silent devices
// do not count.
//
// It is a problem where they are many, or where a message of a device that was mapped before, or that the
// device table lists, is kept: each such device is named, so that one more is news. What the mapping ignores
// is none.
//
// Where no device of the gateway gives a payload, traffic-watch.ts says so, too.

import type { EpochMs } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Standing } from '../../device-records/device-records.ts'

const lossesMin = 5
const manyShare = 0.1
const reasonsShown = 3
const reasonsMax = 200
const namesMax = 200
const staysMs = 600_000

export type UnmappedDevices = {
  /** Begins a look over all devices. */
  begin(): void
  add(standing: Standing): void
  /** When all were added. */
  states(): readonly State[]
}

const newLook = () => ({
  devices: 0,
  sending: 0,
  example: '',
  /** Those whose messages the mapping ignores. */
  ignored: 0,
  reasons: new Map<string, number>(),
})

export function createUnmappedDevices({ now: timeNow }: { now: () => EpochMs }): UnmappedDevices {
  let now = newLook()
  let reasonsBefore = ''
  /** When each that is a problem was one last: one that sends good messages between bad ones stays. */
  const problemAt = new Map<string, EpochMs>()
  return {
    begin() {
      now = newLook()
    },
    add({ device, isSilent, isListed, lastMappedAt, loss }) {
      if (isSilent) return
      now.sending += 1
      if (loss === null || loss.count < lossesMin) return
      now.devices += 1
      now.example ||= device
      if (loss.kind === 'ignored') now.ignored += 1
      else if (isListed || lastMappedAt !== null) note(device)
      const source = loss.source === null ? '' : `${loss.source}: `
      const reason = `${loss.kind === 'dead' ? 'dead letters' : loss.kind}, ${source}${loss.reason}`
      if (now.reasons.has(reason) || now.reasons.size < reasonsMax)
        now.reasons.set(reason, (now.reasons.get(reason) ?? 0) + 1)
    },
    states() {
      const { sending, ignored } = now
      const named = stillNamed()
      const devices = Math.max(now.devices, named.length)
      if (devices === 0) return []
      const isMany = devices > ignored && devices - ignored >= sending * manyShare
      const example = now.example || (named[0] ?? '')
      // Those that send good messages at this moment were not looked at.
      reasonsBefore = reasonsText() || reasonsBefore
      return [
        { code: 'DEVICES_NOT_MAPPED', devices, sending, example, reasons: reasonsBefore, isMany, named },
      ]
    },
  }

  function reasonsText(): string {
    const most = [...now.reasons].sort((a, b) => b[1] - a[1]).slice(0, reasonsShown)
    return most.map(([reason, count]) => `${plural(count, 'device')}: ${reason}`).join('; ')
  }

  function note(device: string): void {
    if (problemAt.size < namesMax || problemAt.has(device)) problemAt.set(device, timeNow())
  }

  function stillNamed(): readonly string[] {
    for (const [device, at] of problemAt) if (Math.abs(timeNow() - at) > staysMs) problemAt.delete(device)
    return [...problemAt.keys()]
  }
}
