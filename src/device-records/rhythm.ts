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

/** `gaps`: of which `count` were ever noted, each over an older one. Null while unknown. */
export function medianGap(gaps: Float64Array, count: number, sentForMs: number): number | null {
  if (count < gapsMin) return count === 0 && sentForMs >= silentMinMs ? 0 : null
  const row = sorted.subarray(0, Math.min(count, gapsKept))
  row.set(gaps.subarray(0, row.length))
  row.sort()
  return row[Math.floor((row.length - 1) / 2)] ?? null
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
