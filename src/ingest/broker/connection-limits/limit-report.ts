// limit-report.ts: reports that a limit acts, without an event per connection or message: the first case at
// once, then at most one report in `reportEveryMs` for each limit, with the number of cases since the last
// one and those that caused the most.

import type { CancelTimer, Clock } from '../../../std/clock.ts'

export type LimitReport<Limit extends string> = {
  /** `name`: an address, an identity or a client. `found`: what it had, where a report shows that. */
  add(limit: Limit, name: string, found?: string | null): void
  /** Cases since the start. */
  counts(): ReadonlyMap<Limit, number>
  close(): void
}

type Entry = {
  total: number
  since: number
  culprits: Map<string, number>
  /** Of the last case. */
  found: string | null
  cancel: CancelTimer | null
}

const reportEveryMs = 10_000
/** Names that are counted in one report. Further ones are counted in the number alone. */
const culpritsMax = 1000
const shownMax = 5

export function createLimitReport<Limit extends string>(
  clock: Clock,
  report: (limit: Limit, count: number, top: readonly string[], found: string | null) => void,
): LimitReport<Limit> {
  const entries = new Map<Limit, Entry>()
  return {
    add,
    counts: () => new Map(Array.from(entries, ([limit, { total }]) => [limit, total])),
    close() {
      for (const { cancel } of entries.values()) cancel?.()
    },
  }

  function add(limit: Limit, name: string, found: string | null = null): void {
    let entry = entries.get(limit)
    if (entry === undefined) {
      entry = { total: 0, since: 0, culprits: new Map(), found, cancel: null }
      entries.set(limit, entry)
    }
    entry.total += 1
    entry.since += 1
    entry.found = found
    const known = entry.culprits.get(name)
    if (known !== undefined || entry.culprits.size < culpritsMax) entry.culprits.set(name, (known ?? 0) + 1)
    if (entry.cancel === null) send(limit, entry)
  }

  /** A period without a case ends the timer. */
  function send(limit: Limit, entry: Entry): void {
    entry.cancel = null
    if (entry.since === 0) return
    const top = [...entry.culprits]
      .sort(([, a], [, b]) => b - a)
      .slice(0, shownMax)
      .map(([name, count]) => `${name} (${count})`)
    const count = entry.since
    entry.since = 0
    entry.culprits.clear()
    entry.cancel = clock.after(reportEveryMs, () => send(limit, entry))
    report(limit, count, top, entry.found)
  }
}
