// unmapped-devices.ts: devices that send, and whose messages give no payload, while those of others do. A
// device counts where its last message gave none, and at least five did for the same reason. Silent devices
// do not count. Number, example and reasons are of the same devices.
//
// It is a problem where they are many, or where a message of a device that was mapped before, or that the
// device table lists, is kept: each such device is named, so that one more is news. What the mapping ignores
// is none.
//
// Where no device of the gateway gives a payload, traffic-watch.ts says so, too.

import type { EpochMs } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import { listText } from '../../std/quote.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Standing } from '../../device-records/device-records.ts'

const lossesMin = 5
const manyShare = 0.1
const reasonsLengthMax = 400
const reasonsMax = 200
const namesMax = 200
/** A device that sends good messages between bad ones stays for ten of its gaps, within these. */
const [staysMinMs, staysMaxMs] = [60_000, 600_000]
const staysGaps = 10

export type UnmappedDevices = {
  /** Begins a look over all devices. */
  begin(): void
  add(standing: Standing): void
  /** When all were added. */
  states(): readonly State[]
}

/** Of a device that had the problem at `at`, and is named until `until` without it. */
type Problem = { at: EpochMs; until: EpochMs; reason: string }

const newLook = () => ({
  sending: 0,
  example: '',
  devices: 0,
  /** Those whose messages the mapping ignores. */
  ignored: 0,
  reasons: new Map<string, number>(),
})

export function createUnmappedDevices({ now: timeNow }: { now: () => EpochMs }): UnmappedDevices {
  let now = newLook()
  const problems = new Map<string, Problem>()
  return {
    begin() {
      now = newLook()
    },
    add({ device, isSilent, isListed, lastMappedAt, loss, medianGapMs }) {
      if (isSilent) {
        problems.delete(device)
        return
      }
      now.sending += 1
      if (loss !== null && loss.count >= lossesMin) {
        const source = loss.source === null ? '' : `${loss.source}: `
        const reason = `${loss.kind === 'dead' ? 'dead letters' : loss.kind}, ${source}${loss.reason}`
        if (loss.kind === 'ignored') now.ignored += 1
        else if (isListed || lastMappedAt !== null) note(device, reason, medianGapMs)
        count(device, reason)
        return
      }
      const before = problems.get(device)
      if (before !== undefined && isCurrent(before)) count(device, before.reason)
    },
    states() {
      const { devices, sending, example, ignored } = now
      for (const [device, problem] of problems) if (!isCurrent(problem)) problems.delete(device)
      if (devices === 0) return []
      const isMany = devices > ignored && devices - ignored >= sending * manyShare
      const named = [...problems.keys()]
      return [
        { code: 'DEVICES_NOT_MAPPED', devices, sending, example, reasons: reasonsText(), isMany, named },
      ]
    },
  }

  function count(device: string, reason: string): void {
    now.devices += 1
    now.example ||= device
    if (now.reasons.has(reason) || now.reasons.size < reasonsMax)
      now.reasons.set(reason, (now.reasons.get(reason) ?? 0) + 1)
  }

  function reasonsText(): string {
    const most = [...now.reasons].sort((a, b) => b[1] - a[1])
    const texts = most.map(([reason, number]) => `${plural(number, 'device')}: ${reason}`)
    return listText(texts, { lengthMax: reasonsLengthMax, separator: '; ' })
  }

  function note(device: string, reason: string, gapMs: number | null): void {
    if (problems.size >= namesMax && !problems.has(device)) return
    const staysMs = Math.min(staysMaxMs, Math.max(staysMinMs, staysGaps * (gapMs ?? Infinity)))
    problems.set(device, { at: timeNow(), until: timeNow() + staysMs, reason })
  }

  /** Not where the clock was set. */
  function isCurrent({ at, until }: Problem): boolean {
    return timeNow() >= at && timeNow() <= until
  }
}
