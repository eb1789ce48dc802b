// hourly-counts.ts: the messages of a device in each of the last 24 hours. The numbers are in its row: a
// place for each hour of the day, in UTC. A message adds to `hourCount` alone. When the hour is over, that
// goes to its place, and the places of hours without a message become 0.
//
//   at 14:20   hourAt 14:00, hourCount 7
//              places 0 to 13 are of today, 15 to 23 of yesterday; 14 is not used now

import type { EpochMs } from '../std/clock.ts'

export const hoursKept = 24
const hourMs = 3_600_000

type Row = {
  numbers: Float64Array
  /** Where the places begin. */
  base: number
}

type Present = { hourAt: EpochMs; hourCount: number }

/** `count` messages came in the hour that began at `hourAt`; the next one came in that of `next`. */
export function endHour({ numbers, base }: Row, { hourAt, hourCount }: Present, next: EpochMs): void {
  const passed = numberOf(next) - numberOf(hourAt)
  // After so long, and after the clock was set back, nothing of before is of the last 24 hours.
  if (passed < 0 || passed >= hoursKept) {
    numbers.fill(0, base, base + hoursKept)
    return
  }
  numbers[base + placeOf(hourAt)] = hourCount
  for (let hour = 1; hour < passed; hour += 1) numbers[base + placeOf(hourAt + hour * hourMs)] = 0
}

/** The oldest first; the last one is the present hour. */
export function hourlyCounts({ numbers, base }: Row, present: Present, now: EpochMs): number[] {
  const last = numberOf(present.hourAt)
  return Array.from({ length: hoursKept }, (_, index) => {
    const hour = numberOf(now) - (hoursKept - 1 - index)
    if (hour === last) return present.hourCount
    return hour > last || hour <= last - hoursKept ? 0 : numbers[base + (hour % hoursKept)]!
  })
}

function placeOf(at: EpochMs): number {
  return numberOf(at) % hoursKept
}

function numberOf(at: EpochMs): number {
  return Math.floor(at / hourMs)
}
