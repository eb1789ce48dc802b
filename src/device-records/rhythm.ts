// rhythm.ts: how often a device sends, and whether it is silent against that.
//
//   gap       the time between the arrivals of two messages, of at least a second: the messages of a backlog
//             come within milliseconds and say nothing about the rhythm
//   rhythm    the median of the last gaps; 0 where a device has sent for a while and had no gap
//   silent    the last message is longer ago than 10 rhythms, and than 30 s. Without a rhythm: than a day
//
// Time in which the gateway did not run is neither a gap nor silence.

import type { EpochMs } from '../std/clock.ts'

/** Gaps that the median is taken of, and those that are needed. */
export const gapsKept = 15
const gapsMin = 3
export const gapMinMs = 1000

const rhythmsUntilSilent = 10
const silentMinMs = 30_000
const silentUnknownMs = 86_400_000

const sorted = new Float64Array(gapsKept)

/** The gaps are those from `at` on, of which `count` were ever noted. Null while unknown. */
export function medianGap(
  numbers: Float64Array,
  at: number,
  { count, sentForMs }: { count: number; sentForMs: number },
): number | null {
  if (count < gapsMin) return count === 0 && sentForMs >= silentMinMs ? 0 : null
  const known = Math.min(count, gapsKept)
  for (let index = 0; index < known; index += 1) {
    const gap = numbers[at + index]!
    let place = index
    for (; place > 0 && sorted[place - 1]! > gap; place -= 1) sorted[place] = sorted[place - 1]!
    sorted[place] = gap
  }
  return sorted[Math.floor((known - 1) / 2)] ?? null
}

export function silentAfter(medianGapMs: number | null): number {
  return medianGapMs === null ? silentUnknownMs : Math.max(silentMinMs, medianGapMs * rhythmsUntilSilent)
}

/** `listeningSince`: since when the gateway takes messages. */
export function isSilent(
  lastAt: EpochMs,
  { now, listeningSince, afterMs }: { now: EpochMs; listeningSince: EpochMs; afterMs: number },
): boolean {
  return now - Math.max(lastAt, listeningSince) > afterMs
}
