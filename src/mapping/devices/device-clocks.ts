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
import { isoTime, type EpochMs } from '../../std/clock.ts'
import { createCache } from '../bounded-cache.ts'
import { quote } from '../../std/quote.ts'
import { isRecord } from '../path/path-eval.ts'
import type { RecordContext } from '../types.ts'

type ClocksOptions = {
  futureMaxMs: number
  pastMaxMs: number
  /** Messages that a median is taken of. */
  samples: number
  devicesMax?: number
}

type ClockVerdict = 'ok' | 'future' | 'past' | 'unset'

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
type CommonSkew = { skewMs: number; devices: number; judged: number }

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

// Applies `clocks` of the config: what happens to device times that are too far ahead or
// behind, or that come from a clock that was never set.

type OnWrongTime = 'quarantine' | 'restamp' | 'accept'

export type ClockPolicy = {
  futureMaxMs: number
  /** Without it no time is too old. */
  pastMaxMs?: number
  /** Also of a clock that was never set. */
  onFuture: OnWrongTime
  /** As `onFuture` where it is missing. */
  onPast?: OnWrongTime
  /** The decision of a person: an arrival whose true time is unknown counts as right. */
  trustsArrival?: boolean
}

export type ClockCheck = ReturnType<typeof createClockCheck>

/** Messages that the median skew of a device is taken of. */
const samples = 15

export function createClockCheck(policy: ClockPolicy, memory?: ClockMemory) {
  const { futureMaxMs, pastMaxMs = Infinity, onFuture, onPast = onFuture, trustsArrival = false } = policy
  const clocks = createDeviceClocks({ futureMaxMs, pastMaxMs, samples }, memory)
  let restamped = 0
  return { clocks, checkTime, restampedCount: () => restamped }

  function offsetOf({ offsetMs }: RecordContext): number | null {
    return offsetMs ?? (trustsArrival ? 0 : null)
  }

  /** The time to send: NaN for the arrival time; null where the record was quarantined. */
  function checkTime(device: string, time: EpochMs, context: RecordContext): EpochMs | null {
    const offsetMs = offsetOf(context)
    const verdict = clocks.observe(device, time, context.arrivedAt, offsetMs, context.recordSender)
    const action = verdict === 'past' ? onPast : onFuture
    if (verdict === 'ok' || action === 'accept') return time
    if (action === 'restamp') {
      restamped += 1
      return Number.NaN
    }
    if (verdict === 'past')
      return context.quarantine('PAST', pastDetail(time, context.arrivedAt + (offsetMs ?? 0), context.root))
    const shown = new Date(time).toISOString()
    return verdict === 'future'
      ? context.quarantine('FUTURE', `The device time ${shown} is too far ahead of ours.`)
      : context.quarantine('UNSET_CLOCK', `The device time ${shown} comes from a clock that was never set.`)
  }
}

// Why a device time is so far in the past, and the setting that corrects it. Nothing is
// corrected without the setting: a device may really send what it stored for months.
//
//   n x 1024 weeks behind     the week number of GPS has ten bits, and the receiver took the wrong round
//   seconds since an epoch    the device counts from 1980, 2000 or 2001 and not from 1970
//   shortly after a default   a clock that was never set begins there
//
// The first two are named where the corrected time is within minutes of the arrival, or of another time that
// the message has. Such a time is named as well where it is a right one by itself.

const roundMs = 1024 * 7 * dayMs
const nearMs = 10 * 60_000
const yearMs = 366 * dayMs

const epochs = [
  ['the epoch of GPS, 1980-01-06', Date.UTC(1980, 0, 6)],
  ['2000-01-01', Date.UTC(2000, 0, 1)],
  ['2001-01-01', Date.UTC(2001, 0, 1)],
] as const

/** First days of clocks that were never set, besides those of device-clocks.ts. */
const clockDefaults = [2004, 2010].map((year) => Date.UTC(year, 0, 1))

/** Keys of a message that are looked at for another time. */
const keysMax = 200
const depthMax = 4

type OtherTime = { name: string; at: EpochMs }

/** Sentences. `nowMs`: the true time of the arrival; `root`: the message, as it was decoded. */
function pastDetail(time: EpochMs, nowMs: EpochMs, root: unknown): string {
  const others = timesIn(root)
  return (
    `The device time ${isoTime(time)} is older than clocks.past_max.` +
    (shiftText(time, nowMs, others) ?? otherText(time, nowMs, others) ?? defaultText(time) ?? '')
  )
}

function shiftText(time: EpochMs, nowMs: EpochMs, others: readonly OtherTime[]): string | null {
  const candidates = [
    ...[1, 2].map((rounds) => ({
      byMs: rounds * roundMs,
      why: `${rounds * 1024} weeks behind: the receiver took the wrong round of the week number of GPS`,
    })),
    ...epochs.map(([name, byMs]) => ({ byMs, why: `counted from ${name}, and not from 1970` })),
  ]
  for (const { byMs, why } of candidates) {
    const corrected = time + byMs
    const shift = `\`shift: ${byMs / 1000}s\` in \`map.time\` corrects it.`
    if (Math.abs(corrected - nowMs) <= nearMs) return ` It is ${why}. ${shift}`
    const other = others.find(({ at }) => at !== time && Math.abs(corrected - at) <= nearMs)
    if (other !== undefined) return ` By ${quote(other.name, 60)} of the message it is ${why}. ${shift}`
  }
  return null
}

function otherText(time: EpochMs, nowMs: EpochMs, others: readonly OtherTime[]): string | null {
  const right = others.find(({ at }) => at !== time && Math.abs(at - nowMs) <= nearMs)
  if (right === undefined) return null
  return ` ${quote(right.name, 60)} of the message has the time of its arrival: it can be \`path\` of \`map.time\`.`
}

function defaultText(time: EpochMs): string | null {
  const start = clockDefaults.find((first) => time >= first && time - first < yearMs)
  if (start === undefined) return null
  return ` Clocks that were never set begin at ${isoTime(start).slice(0, 10)}.`
}

/** Values that can be a time of today: ISO texts, and numbers of the size of seconds or milliseconds. */
function timesIn(root: unknown): OtherTime[] {
  const found: OtherTime[] = []
  let left = keysMax
  visit(root, '', 0)
  return found

  function visit(value: unknown, name: string, depth: number): void {
    if (left <= 0) return
    left -= 1
    const at = timeOf(value)
    if (at !== null) found.push({ name, at })
    else if (depth < depthMax && Array.isArray(value)) visit(value[0], `${name}[0]`, depth + 1)
    else if (depth < depthMax && isRecord(value))
      for (const key in value) {
        if (left <= 0) return
        visit(value[key], name === '' ? key : `${name}.${key}`, depth + 1)
      }
  }
}

function timeOf(value: unknown): EpochMs | null {
  if (typeof value === 'number') {
    if (value > 1e9 && value < 1e10) return value * 1000
    return value > 1e12 && value < 1e13 ? value : null
  }
  if (
    typeof value !== 'string' ||
    !/^\d{4}-\d\d-\d\dT\d\d:\d\d.*(Z|[+-]\d\d:?\d\d)$/.test(value.slice(0, 40))
  )
    return null
  const at = Date.parse(value.slice(0, 40))
  return Number.isNaN(at) ? null : at
}
