// row-history.ts: what the row of a device says of its last hours and days. Hours and days are those of UTC.
//
// The messages of each of the last 24 hours: a place for each hour of the day. A message adds to `hourCount`
// alone. When the hour is over, that goes to its place, and the places of hours without a message become 0.
//
//   at 14:20   hourAt 14:00, hourCount 7
//              places 0 to 13 are of today, 15 to 23 of yesterday; 14 is not used now
//
// The longest pause of each of the last 15 days: the day of the last pause, and a place for each day. A pause
// counts on the day on which it ended.

import type { EpochMs } from '../std/clock.ts'

export const hoursKept = 24
export const daysKept = 15
/** The day of the last pause, and the places. */
export const pausesLength = 1 + daysKept
/** Shorter ones say nothing of a device that parks. */
export const pauseMinMs = 3_600_000
const hourMs = 3_600_000
const dayMs = 86_400_000

type Row = {
  numbers: Float64Array
  /** Where its numbers of this kind begin. */
  base: number
}

type Present = { hourAt: EpochMs; hourCount: number }

/** `count` messages came in the hour that began at `hourAt`; the next one came in that of `next`. */
export function endHour({ numbers, base }: Row, { hourAt, hourCount }: Present, next: EpochMs): void {
  const passed = hourOf(next) - hourOf(hourAt)
  // After so long, and after the clock was set back, nothing of before is of the last 24 hours.
  if (passed < 0 || passed >= hoursKept) {
    numbers.fill(0, base, base + hoursKept)
    return
  }
  numbers[base + placeOfHour(hourAt)] = hourCount
  for (let hour = 1; hour < passed; hour += 1) numbers[base + placeOfHour(hourAt + hour * hourMs)] = 0
}

/** The oldest first; the last one is the present hour. */
export function hourlyCounts({ numbers, base }: Row, present: Present, now: EpochMs): number[] {
  const last = hourOf(present.hourAt)
  return Array.from({ length: hoursKept }, (_, index) => {
    const hour = hourOf(now) - (hoursKept - 1 - index)
    if (hour === last) return present.hourCount
    return hour > last || hour <= last - hoursKept ? 0 : numbers[base + (hour % hoursKept)]!
  })
}

function placeOfHour(at: EpochMs): number {
  return hourOf(at) % hoursKept
}

function hourOf(at: EpochMs): number {
  return Math.floor(at / hourMs)
}

export function notePause({ numbers, base }: Row, endAt: EpochMs, pauseMs: number): void {
  const day = dayOf(endAt)
  const passed = day - numbers[base]!
  // After so long, and after the clock was set back, nothing of before is of the last days.
  if (passed < 0 || passed >= daysKept) numbers.fill(0, base + 1, base + pausesLength)
  else for (let next = 1; next <= passed; next += 1) numbers[placeOfDay(base, day - passed + next)] = 0
  numbers[base] = day
  const place = placeOfDay(base, day)
  numbers[place] = Math.max(numbers[place]!, pauseMs)
}

/** 0 where it had none. */
export function longestPause({ numbers, base }: Row, now: EpochMs): number {
  const last = numbers[base]!
  let longest = 0
  for (let day = Math.max(dayOf(now) - daysKept + 1, last - daysKept + 1); day <= last; day += 1)
    longest = Math.max(longest, numbers[placeOfDay(base, day)]!)
  return longest
}

/** Adds what was stored of the days before. `numbers` has what came since. */
export function mergePauses({ numbers, base }: Row, stored: readonly number[]): void {
  const since = numbers.slice(base, base + pausesLength)
  numbers.set(
    Array.from({ length: pausesLength }, (_, index) => stored[index] ?? 0),
    base,
  )
  const last = since[0]!
  for (let day = last - daysKept + 1; day <= last; day += 1) {
    const pauseMs = since[placeOfDay(0, day)] ?? 0
    if (pauseMs > 0) notePause({ numbers, base }, day * dayMs, pauseMs)
  }
}

function placeOfDay(base: number, day: number): number {
  return base + 1 + (day % daysKept)
}

function dayOf(at: EpochMs): number {
  return Math.floor(at / dayMs)
}
