// reason-counter.ts: counts by source and reason, and decides when a count is worth an event: the first of
// its kind at once, then at most one in `eventEveryMs`. Counting allocates nothing once a pair is known.

import type { Clock } from '../../std/clock.ts'

export type ReasonCounter = {
  /** Counts one; true where an event should report it. */
  add(source: string | null, reason: string): boolean
  /** Keyed `source|reason`; by the reason alone where there is no source. */
  counts(): ReadonlyMap<string, number>
}

type Entry = { count: number; reportedAtMs: number }

/** Sources and reasons come from bounded sets; beyond this many pairs they are counted together. */
const pairsMax = 1000
const others = 'others'

export function createReasonCounter(clock: Clock, options: { eventEveryMs: number }): ReasonCounter {
  const bySource = new Map<string | null, Map<string, Entry>>()
  let pairs = 0
  return { add, counts }

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

  function counts(): ReadonlyMap<string, number> {
    const flat = new Map<string, number>()
    for (const [source, byReason] of bySource)
      for (const [reason, { count }] of byReason)
        flat.set(source === null ? reason : `${source}|${reason}`, count)
    return flat
  }
}
