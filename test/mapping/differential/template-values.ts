// template-values.ts: values of messages, as devices send them: most are usual, some are not.

import type { Random } from '../../support/random.ts'
import { Spelled } from './hostile-json.ts'

export const startMs = Date.UTC(2026, 0, 31, 23, 26, 40)

export const decimals = (random: Random, min: number, max: number, places: number) =>
  Number((min + random.next() * (max - min)).toFixed(places))

export const latitude = (random: Random) => decimals(random, 47, 55, 6)
export const longitude = (random: Random) => decimals(random, 6, 15, 6)

/** With zeros at the end, as firmware prints them. */
export const printed = (read: (random: Random) => number, places: number) => (random: Random) =>
  new Spelled(read(random).toFixed(places))

/** Each message about a second later than the one before; some older, of the same time, or of a wrong clock. */
export function timeOf(clock: { now: number }, random: Random): number {
  const kind = random.below(100)
  if (kind === 0) return clock.now + 86_400_000
  if (kind === 1) return random.pick([0, 315_964_800_000, 946_684_800_123, 4_102_444_800_000])
  if (kind < 5) return clock.now - random.below(100_000)
  return clock.now
}

/** Grows with the time; some readings jump or fall. */
export function counterOf(clock: { now: number }, random: Random, start: number, perHour: number): number {
  const grown = start + ((clock.now - startMs) / 3_600_000) * perHour
  const kind = random.below(60)
  if (kind === 2) return -grown
  if (kind === 0) return grown * 1000
  if (kind === 1) return Math.max(0, grown - 500)
  return Number(grown.toFixed(3))
}
