// device-clocks.ts: the clocks of devices: how far off they are, and whether a device time can be right.
//
//   skew     arrival - device time: below zero the clock of the device is ahead, above zero it is behind or
//            the message was late. The view shows the median of the last messages of a device, so that a
//            backlog does not look like a wrong clock.
//   future   the device time is later than ours by more than `futureMaxMs`. Our time is the wall clock
//            corrected by the times in answers of the service; while it is unknown, it judges no device.
//   unset    a clock that was never set counts from a date of its maker: 1970, 1980 (GPS), 1999 (GPS after
//            its first roll-over), 2000, each for 366 days; or it shows 2100 or later. Needs no own clock.
//   past     older than ours by more than `pastMaxMs`. Needs our time, as above.
//   old      a day and more behind: accepted and counted; backlogs are normal. Needs our time, as above.
//
// When most devices are off by about as much, our own clock is probably wrong: `commonSkew` raises a
// condition.
//
// Skews are kept in one flat array with a row for each device; a message costs one Map look-up. At
// `devicesMax` a new device gets the row of one that sent nothing during a whole turn of the clock hand
// (second chance), counted as an eviction. A forgotten device changes no verdict.

import type { Sender } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'

export type ClocksOptions = {
  futureMaxMs: number
  pastMaxMs: number
  /** Messages that a median is taken of. */
  samples: number
  devicesMax: number
}

export type ClockVerdict = 'ok' | 'future' | 'past' | 'unset'

/**
 * `spreadMs`: between the smallest and the largest skew of the last messages. `messagesSince`: since our own
 * time was corrected last. `sender` of the last one; null where that is not known.
 */
export type DeviceClock = {
  skewMs: number
  spreadMs: number
  messages: number
  messagesSince: number
  lastSeen: EpochMs
  sender: Sender | null
}

/** Of `judged` devices `devices` are off by about `skewMs`. */
export type CommonSkew = { skewMs: number; devices: number; judged: number }

export type DeviceClocks = {
  /**
   * Judges a device time and notes it. `offsetMs`: true time minus arrival; null while unknown. `sender`:
   * null for a record of several messages.
   */
  observe(
    device: string,
    deviceTime: EpochMs,
    arrivedAt: EpochMs,
    offsetMs: number | null,
    sender?: Sender | null,
  ): ClockVerdict
  /** What `observe` would say of a device time; nothing is noted. */
  judge(deviceTime: EpochMs, arrivedAt: EpochMs, offsetMs: number | null): ClockVerdict
  /** Notes who sent the message of a device that was observed. */
  sentBy(device: string, sender: Sender): void
  /** Our own time was wrong, or not known, until now. */
  ownTimeCorrected(): void
  /** Null for a device that was not seen, or was forgotten. */
  view(device: string): DeviceClock | null
  /** All devices that are remembered. */
  views(): Iterable<[string, DeviceClock]>
  /** Not null when most devices of the last hour are off by about as much: our clock is probably wrong. */
  commonSkew(nowMs: EpochMs): CommonSkew | null
  counters(): { devices: number; evictions: number; future: number; past: number; unset: number; old: number }
}

const dayMs = 86_400_000
const unsetMs = 366 * dayMs
const unsetSince = [
  0,
  Date.UTC(1980, 0, 1),
  Date.UTC(1980, 0, 6),
  Date.UTC(1999, 7, 22),
  Date.UTC(2000, 0, 1),
]
const lastUnsetEnd = Date.UTC(2000, 0, 1) + unsetMs
const centuryEnd = Date.UTC(2100, 0, 1)

const alikeDevicesMin = 5
const alikeShareMin = 0.6
/** At most so many devices are compared; of more, every n-th. */
const alikeSampledMax = 1000
const recentMs = 3_600_000

export function isUnset(deviceTime: EpochMs): boolean {
  if (deviceTime >= lastUnsetEnd) return deviceTime >= centuryEnd
  return deviceTime < 0 || unsetSince.some((start) => deviceTime >= start && deviceTime < start + unsetMs)
}

export function createDeviceClocks(options: ClocksOptions): DeviceClocks {
  const { futureMaxMs, pastMaxMs, samples, devicesMax } = options
  const slots = new Map<string, number>()
  const names: string[] = []
  /** One object per connection. */
  const senders: (Sender | null)[] = []
  /** `samples` skews per device, the newest at `messages % samples`; the array grows with the devices. */
  let skews = new Float64Array(0)
  let messages = new Uint32Array(0)
  let lastSeen = new Float64Array(0)
  /** Messages of the device before the last correction of our time that it was seen after. */
  let before = new Uint32Array(0)
  let seenAfter = new Uint32Array(0)
  let corrections = 0
  let used = new Uint8Array(0)
  let hand = 0
  let evictions = 0
  const found = { future: 0, past: 0, unset: 0, old: 0 }
  const sorted = new Float64Array(samples)
  const ownTimeCorrected = () => void (corrections += 1)
  return { observe, judge, sentBy, ownTimeCorrected, view, views, commonSkew: allAlike, counters }

  function observe(
    device: string,
    deviceTime: EpochMs,
    arrivedAt: EpochMs,
    offsetMs: number | null,
    sender: Sender | null = null,
  ): ClockVerdict {
    const skewMs = arrivedAt + (offsetMs ?? 0) - deviceTime
    const slot = slots.get(device) ?? newSlot(device)
    note(slot, skewMs, arrivedAt)
    if (sender !== null) senders[slot] = sender
    const verdict = judge(deviceTime, arrivedAt, offsetMs)
    if (verdict !== 'ok') found[verdict] += 1
    else if (offsetMs !== null && skewMs > dayMs) found.old += 1
    return verdict
  }

  function judge(deviceTime: EpochMs, arrivedAt: EpochMs, offsetMs: number | null): ClockVerdict {
    if (isUnset(deviceTime)) return 'unset'
    if (offsetMs === null) return 'ok'
    const aheadMs = deviceTime - arrivedAt - offsetMs
    if (aheadMs > futureMaxMs) return 'future'
    return -aheadMs > pastMaxMs ? 'past' : 'ok'
  }

  function sentBy(device: string, sender: Sender): void {
    const slot = slots.get(device)
    if (slot !== undefined) senders[slot] = sender
  }

  function note(slot: number, skewMs: number, arrivedAt: EpochMs): void {
    const count = messages[slot] ?? 0
    if (seenAfter[slot] !== corrections) {
      seenAfter[slot] = corrections
      before[slot] = count
    }
    skews[slot * samples + (count % samples)] = skewMs
    messages[slot] = count + 1
    lastSeen[slot] = arrivedAt
    // One message does not mark a row as used: a flood of names that are seen once evicts itself.
    used[slot] = count > 0 ? 1 : 0
  }

  function newSlot(device: string): number {
    let slot = slots.size
    if (slot < devicesMax) {
      if (slot === messages.length) grow()
    } else {
      slot = freedSlot()
    }
    slots.set(device, slot)
    names[slot] = device
    senders[slot] = null
    messages[slot] = 0
    before[slot] = 0
    seenAfter[slot] = corrections
    return slot
  }

  function grow(): void {
    const rows = Math.min(devicesMax, Math.max(64, messages.length * 2))
    skews = enlarged(skews, new Float64Array(rows * samples))
    messages = enlarged(messages, new Uint32Array(rows))
    lastSeen = enlarged(lastSeen, new Float64Array(rows))
    before = enlarged(before, new Uint32Array(rows))
    seenAfter = enlarged(seenAfter, new Uint32Array(rows))
    used = enlarged(used, new Uint8Array(rows))
  }

  /** The hand takes the first row that was not used since it passed the last time. */
  function freedSlot(): number {
    while (used[hand] === 1) {
      used[hand] = 0
      hand = (hand + 1) % devicesMax
    }
    const slot = hand
    hand = (hand + 1) % devicesMax
    slots.delete(names[slot] ?? '')
    evictions += 1
    return slot
  }

  /** Of the last messages, in order; valid until the next call. */
  function sortedSkews(slot: number): Float64Array {
    const count = Math.min(messages[slot] ?? 0, samples)
    const row = sorted.subarray(0, count)
    row.set(skews.subarray(slot * samples, slot * samples + count))
    return row.sort()
  }

  function medianOf(slot: number): number {
    const row = sortedSkews(slot)
    const count = row.length
    const middle = Math.floor(count / 2)
    const upper = row[middle] ?? Number.NaN
    return count % 2 === 1 ? upper : (upper + (row[middle - 1] ?? Number.NaN)) / 2
  }

  function viewOf(slot: number): DeviceClock {
    const row = sortedSkews(slot)
    const spreadMs = (row.at(-1) ?? 0) - (row[0] ?? 0)
    return {
      skewMs: medianOf(slot),
      spreadMs,
      messages: messages[slot] ?? 0,
      messagesSince: seenAfter[slot] === corrections ? (messages[slot] ?? 0) - (before[slot] ?? 0) : 0,
      lastSeen: lastSeen[slot] ?? 0,
      sender: senders[slot] ?? null,
    }
  }

  function view(device: string): DeviceClock | null {
    const slot = slots.get(device)
    return slot === undefined ? null : viewOf(slot)
  }

  function* views(): Generator<[string, DeviceClock]> {
    for (const [device, slot] of slots) yield [device, viewOf(slot)]
  }

  function allAlike(nowMs: EpochMs): CommonSkew | null {
    const stride = Math.ceil(slots.size / alikeSampledMax)
    const medians: number[] = []
    for (let slot = 0; slot < slots.size; slot += stride)
      if (Math.abs(nowMs - (lastSeen[slot] ?? 0)) <= recentMs) medians.push(medianOf(slot))
    const judged = medians.length
    if (judged < alikeDevicesMin) return null
    const group = largestGroup(
      medians.filter((skewMs) => Math.abs(skewMs) > futureMaxMs),
      Math.max(60_000, futureMaxMs / 5),
    )
    const enough = group.length >= alikeDevicesMin && group.length >= judged * alikeShareMin
    const middle = group[Math.floor(group.length / 2)]
    return enough && middle !== undefined ? { skewMs: middle, devices: group.length, judged } : null
  }

  function counters() {
    return { devices: slots.size, evictions, ...found }
  }
}

/** The most values that lie within `width` of each other, in order. */
function largestGroup(values: readonly number[], width: number): readonly number[] {
  const ordered = values.toSorted((a, b) => a - b)
  let start = 0
  let best = { start: 0, end: 0 }
  for (const [index, value] of ordered.entries()) {
    while (value - (ordered[start] ?? value) > width) start += 1
    if (index + 1 - start > best.end - best.start) best = { start, end: index + 1 }
  }
  return ordered.slice(best.start, best.end)
}

function enlarged<Numbers extends Float64Array | Uint32Array | Uint8Array>(
  before: Numbers,
  after: Numbers,
): Numbers {
  after.set(before)
  return after
}
