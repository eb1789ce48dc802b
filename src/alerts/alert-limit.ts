// alert-limit.ts: how many alerts a receiver gets within an hour. Times are of the wall clock, so that they
// can be kept over a restart; where the clock was set, they count as now.
//
// A third of the places is kept for conditions that no alert of the last hour has: one condition that is
// raised and cleared again and again does not keep the first alert about another one back.

import type { EpochMs } from '../std/clock.ts'
import type { Change } from './types.ts'

export type SentAlert = { at: EpochMs; codes: string[] }

const hourMs = 3_600_000

/** Of the last hour, the oldest first. A time in the future is from before a step of the clock. */
export function recentAlerts(alerts: readonly SentAlert[], now: EpochMs): SentAlert[] {
  return alerts
    .filter(({ at }) => now - at < hourMs)
    .map(({ at, codes }) => ({ at: Math.min(at, now), codes }))
}

export function maySend(
  changes: readonly Change[],
  alerts: readonly SentAlert[],
  { now, perHour }: { now: EpochMs; perHour: number },
): boolean {
  const recent = recentAlerts(alerts, now)
  if (recent.length >= perHour) return false
  const kept = Math.max(1, Math.floor(perHour / 3))
  if (recent.length < perHour - kept) return true
  const known = new Set(recent.flatMap(({ codes }) => codes))
  return changes.some(({ kind, code }) => kind !== 'cleared' && !known.has(code))
}
