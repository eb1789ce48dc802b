// traffic-history.ts: how long the devices of this gateway usually pause, all together: the median gap
// between messages, and the longest pause of each of the last days. Pure, except for the time zone of the
// machine: days are local days, because fleets pause at night and at weekends.
//
//   under 3 days of history    10 times the median gap, at least 30 s
//   later                      the same, or the longest pause of this weekday in the last 14 days if that is
//                              longer; without that weekday those of the same kind (working day or weekend),
//                              without those all
//
// A pause counts for each day that it touches, with its length at the end of that day: the pause of a weekend
// is long on Sunday and on Monday, and not on Tuesday.
//
// Bounds: 121 counters and 15 days. The counters are halved at `gapsMax`, so old gaps fade.

import { z } from 'zod'
import type { EpochMs } from '../../std/clock.ts'

export type UsualPause = { ms: number; basis: 'median' | 'days' }

export type TrafficHistory = {
  /** `gaps` gaps of about `gapMs` between messages. */
  addGaps(gaps: number, gapMs: number): void
  /** No message came between these two. */
  addPause(fromAt: EpochMs, untilAt: EpochMs): void
  /** The longest pause that is usual now; null with fewer than five gaps. */
  usualPause(now: EpochMs): UsualPause | null
  record(): TrafficRecord
}

const recordSchema = z.object({
  firstAt: z.number(),
  /** Gaps by size: four counters for each doubling, from 1 ms. */
  gaps: z.array(z.number().min(0)).max(1000),
  /** `day`: start of the local day. */
  days: z.array(z.object({ day: z.number(), longestMs: z.number() })).max(100),
})

export type TrafficRecord = z.infer<typeof recordSchema>

const dayMs = 86_400_000
const daysKept = 14
const learnedMs = 3 * dayMs
const pauseMin = 30_000
const medianFactor = 10
const gapsMin = 5
const gapsMax = 100_000
const steps = 4
const bucketsMax = 30 * steps

/** `stored`: what `record` gave, as JSON; anything else is an empty history. */
export function createTrafficHistory(stored: unknown, now: EpochMs): TrafficHistory {
  const parsed = recordSchema.safeParse(stored)
  let firstAt = parsed.success ? parsed.data.firstAt : now
  const gaps = new Float64Array(bucketsMax + 1)
  if (parsed.success) gaps.set(parsed.data.gaps.slice(0, gaps.length))
  const days = new Map(parsed.success ? parsed.data.days.map(({ day, longestMs }) => [day, longestMs]) : [])
  let total = gaps.reduce((sum, count) => sum + count, 0)
  return { addGaps, addPause, usualPause, record }

  function addGaps(count: number, gapMs: number): void {
    const bucket = Math.min(bucketsMax, Math.max(0, Math.round(steps * Math.log2(Math.max(1, gapMs)))))
    gaps[bucket] = (gaps[bucket] ?? 0) + count
    total += count
    if (total < gapsMax) return
    for (let index = 0; index < gaps.length; index += 1) gaps[index] = (gaps[index] ?? 0) / 2
    total /= 2
  }

  function addPause(fromAt: EpochMs, untilAt: EpochMs): void {
    // A clock that was set: nothing is known of this pause.
    if (untilAt < fromAt || untilAt - fromAt > daysKept * dayMs) return
    for (let day = startOfDay(fromAt); day <= untilAt; day = nextDay(day)) {
      const longestMs = Math.min(untilAt, nextDay(day)) - fromAt
      if (longestMs > (days.get(day) ?? 0)) days.set(day, longestMs)
    }
    const oldest = untilAt - (daysKept + 1) * dayMs
    for (const day of days.keys()) if (day < oldest || day > untilAt) days.delete(day)
    firstAt = Math.min(firstAt, untilAt)
  }

  function usualPause(at: EpochMs): UsualPause | null {
    if (total < gapsMin) return null
    const byMedian = Math.max(pauseMin, medianFactor * median())
    const longest = at - firstAt < learnedMs ? 0 : longestOf(at)
    return longest > byMedian ? { ms: longest, basis: 'days' } : { ms: byMedian, basis: 'median' }
  }

  function median(): number {
    let before = 0
    for (let bucket = 0; bucket < gaps.length; bucket += 1) {
      before += gaps[bucket] ?? 0
      if (before >= total / 2) return 2 ** (bucket / steps)
    }
    return 2 ** (bucketsMax / steps)
  }

  function longestOf(at: EpochMs): number {
    const weekday = new Date(at).getDay()
    const known = [...days].filter(([day]) => at - day <= (daysKept + 1) * dayMs)
    const same = known.filter(([day]) => new Date(day).getDay() === weekday)
    const alike = known.filter(([day]) => isWeekend(new Date(day).getDay()) === isWeekend(weekday))
    const chosen = same.length > 0 ? same : alike.length > 0 ? alike : known
    return chosen.reduce((longest, [, longestMs]) => Math.max(longest, longestMs), 0)
  }

  function record(): TrafficRecord {
    return { firstAt, gaps: [...gaps], days: [...days].map(([day, longestMs]) => ({ day, longestMs })) }
  }
}

export function isWeekend(weekday: number): boolean {
  return weekday === 0 || weekday === 6
}

function startOfDay(at: EpochMs): EpochMs {
  return new Date(at).setHours(0, 0, 0, 0)
}

/** Days with a change of the clock have 23 or 25 hours. */
function nextDay(day: EpochMs): EpochMs {
  const date = new Date(day)
  return date.setDate(date.getDate() + 1)
}
