// reason-counter.ts: counts by source and reason, and decides when a count is worth an event: the first of
// its kind at once, then at most one in `eventEveryMs`. Counting allocates nothing once a pair is known.

import type { Clock } from '../../std/clock.ts'

/** `source` is null where there is none. */
export type ReasonCount = { source: string | null; reason: string; count: number }

export type ReasonCounter = {
  /** Counts one; true where an event should report it. */
  add(source: string | null, reason: string): boolean
  counts(): readonly ReasonCount[]
  /** Over all sources. */
  byReason(): ReadonlyMap<string, number>
}

type Entry = { count: number; reportedAtMs: number }

/** Sources and reasons come from bounded sets; beyond this many pairs they are counted together. */
const pairsMax = 1000
const others = 'others'

export function createReasonCounter(clock: Clock, options: { eventEveryMs: number }): ReasonCounter {
  const bySource = new Map<string | null, Map<string, Entry>>()
  let pairs = 0
  return { add, counts, byReason }

  function add(source: string | null, reason: string): boolean {
    const entry = bySource.get(source)?.get(reason) ?? newEntry(source, reason)
    entry.count += 1
    const now = clock.monotonic()
    if (entry.count > 1 && now - entry.reportedAtMs < options.eventEveryMs) return false
    entry.reportedAtMs = now
    return true
  }

  function newEntry(source: string | null, reason: string): Entry {
    if (pairs >= pairsMax) {
      source = others
      reason = others
    }
    let byReason = bySource.get(source)
    if (byReason === undefined) {
      byReason = new Map()
      bySource.set(source, byReason)
    }
    let entry = byReason.get(reason)
    if (entry === undefined) {
      entry = { count: 0, reportedAtMs: 0 }
      byReason.set(reason, entry)
      pairs += 1
    }
    return entry
  }

  function counts(): readonly ReasonCount[] {
    const flat: ReasonCount[] = []
    for (const [source, byReason] of bySource)
      for (const [reason, { count }] of byReason) flat.push({ source, reason, count })
    return flat
  }

  function byReason(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>()
    for (const { reason, count } of counts()) sums.set(reason, (sums.get(reason) ?? 0) + count)
    return sums
  }
}
