// clock-check.ts: applies `clocks` of the config: what happens to device times that are too far ahead or
// behind, or that come from a clock that was never set.

import { isoTime, type EpochMs } from '../../std/clock.ts'
import { createDeviceClocks, type ClockMemory } from './device-clocks.ts'
import { quote } from '../../std/quote.ts'
import { isRecord } from '../path/path-eval.ts'
import type { RecordContext } from '../types.ts'

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

const dayMs = 86_400_000
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
