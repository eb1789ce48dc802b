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
// The clocks are in a cache of at most `clockDevicesMax` devices: a message costs one Map look-up, and a
// flood of names that are seen once forgets no device that goes on sending. A forgotten device changes no
// verdict.

import type { Sender } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import { createCache } from '../bounded-cache.ts'

export type ClocksOptions = {
  futureMaxMs: number
  pastMaxMs: number
  /** Messages that a median is taken of. */
  samples: number
  devicesMax?: number
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

export type DeviceClocks = ReturnType<typeof createDeviceClocks>

/** Devices that are remembered. */
const clockDevicesMax = 131_072

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

/** What is kept of the clock of a device. */
type Clock = {
  /** Of the last messages; the newest is at `(messages - 1) % samples`. */
  skews: number[]
  messages: number
  lastSeen: EpochMs
  /** Messages before the last correction of our time that it was seen after. */
  before: number
  seenAfter: number
  /** One object per connection. */
  sender: Sender | null
}

/** What is known of the clocks of devices. A new mapping goes on with it: it changes no clock of a device. */
export type ClockMemory = { clocks: ReturnType<typeof createCache<Clock>>; corrections: number }

export function createClockMemory(devicesMax = clockDevicesMax): ClockMemory {
  return { clocks: createCache<Clock>(devicesMax), corrections: 0 }
}

export function createDeviceClocks(options: ClocksOptions, memory = createClockMemory(options.devicesMax)) {
  const { futureMaxMs, pastMaxMs, samples } = options
  const { clocks } = memory
  const found = { future: 0, past: 0, unset: 0, old: 0 }
  const ownTimeCorrected = () => void (memory.corrections += 1)
  return { observe, judge, sentBy, ownTimeCorrected, view, views, commonSkew: allAlike, counters }

  /**
   * Judges a device time and notes it. `offsetMs`: true time minus arrival; null while unknown. `sender`:
   * null for a record of several messages.
   */
  function observe(
    device: string,
    deviceTime: EpochMs,
    arrivedAt: EpochMs,
    offsetMs: number | null,
    sender: Sender | null = null,
  ): ClockVerdict {
    const skewMs = arrivedAt + (offsetMs ?? 0) - deviceTime
    const clock = clocks.get(device) ?? added(device)
    note(clock, skewMs, arrivedAt)
    if (sender !== null) clock.sender = sender
    const verdict = judge(deviceTime, arrivedAt, offsetMs)
    if (verdict !== 'ok') found[verdict] += 1
    else if (offsetMs !== null && skewMs > dayMs) found.old += 1
    return verdict
  }

  /** What `observe` would say of a device time; nothing is noted. */
  function judge(deviceTime: EpochMs, arrivedAt: EpochMs, offsetMs: number | null): ClockVerdict {
    if (isUnset(deviceTime)) return 'unset'
    if (offsetMs === null) return 'ok'
    const aheadMs = deviceTime - arrivedAt - offsetMs
    if (aheadMs > futureMaxMs) return 'future'
    return -aheadMs > pastMaxMs ? 'past' : 'ok'
  }

  /** Notes who sent the message of a device that was observed. */
  function sentBy(device: string, sender: Sender): void {
    const clock = clocks.get(device)
    if (clock !== undefined) clock.sender = sender
  }

  function added(device: string): Clock {
    const clock = {
      skews: [],
      messages: 0,
      lastSeen: 0,
      before: 0,
      seenAfter: memory.corrections,
      sender: null,
    }
    clocks.set(device, clock)
    return clock
  }

  function note(clock: Clock, skewMs: number, arrivedAt: EpochMs): void {
    if (clock.seenAfter !== memory.corrections) {
      clock.seenAfter = memory.corrections
      clock.before = clock.messages
    }
    clock.skews[clock.messages % samples] = skewMs
    clock.messages += 1
    clock.lastSeen = arrivedAt
  }

  function viewOf({ skews, messages, lastSeen, before, seenAfter, sender }: Clock): DeviceClock {
    const messagesSince = seenAfter === memory.corrections ? messages - before : 0
    const spreadMs = Math.max(...skews) - Math.min(...skews)
    return { skewMs: medianOf(skews), spreadMs, messages, messagesSince, lastSeen, sender }
  }

  /** Null for a device that was not seen, or was forgotten. */
  function view(device: string): DeviceClock | null {
    const clock = clocks.get(device)
    return clock === undefined ? null : viewOf(clock)
  }

  /** All devices that are remembered. */
  function* views(): Generator<[string, DeviceClock]> {
    for (const [device, clock] of clocks.entries()) yield [device, viewOf(clock)]
  }

  function allAlike(nowMs: EpochMs): CommonSkew | null {
    const stride = Math.ceil(clocks.counters().entries / alikeSampledMax)
    const medians: number[] = []
    let index = 0
    for (const [, { skews, lastSeen }] of clocks.entries()) {
      if (index % stride === 0 && Math.abs(nowMs - lastSeen) <= recentMs) medians.push(medianOf(skews))
      index += 1
    }
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
    const { entries, evictions } = clocks.counters()
    return { devices: entries, evictions, ...found }
  }
}

function medianOf(skews: readonly number[]): number {
  const sorted = skews.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
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
