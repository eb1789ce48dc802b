// write-watch.ts: how long the writes of the store take. A disk that hangs or crawls fails no write, so
// nothing else notices it: acknowledgements wait, and counters stand still.
//
//   hanging   the running write is older than 10 s, until it ends
//   slow      the 99th percentile of the writes of the last 30 s is a second or more, and so are two of them
//             at least: one pause alone is usual. The running write counts
//
// Bound: writes follow each other, so at most 31 of 30 s took a second or more. The others are only counted.

import type { Clock } from '../std/clock.ts'
import type { State } from '../domain/condition-state.ts'
import type { Store } from '../storage/storage.ts'

export type WriteState = 'fine' | 'slow' | 'hanging'

/** As the spool shows them. */
export type WriteViews = {
  /** Whether the running write hangs, or writes take long. */
  writeState(): WriteState
  /** Then the numbers of the lanes may be ahead of the totals by what is written. */
  isWriting(): boolean
}

export type WriteWatch = {
  /** The same store, whose writes are timed. */
  timed(store: Store): Store
  state(): WriteState
  isWriting(): boolean
  states(): Iterable<State>
}

type Deps = { clock: Clock; ended: (tookMs: number) => void }

const hangsAfterMs = 10_000
const slowMs = 1000
const slowMin = 2
const windowS = 30

export function createWriteWatch({ clock, ended }: Deps): WriteWatch {
  /** Monotonic starts of the running writes, the oldest first; after a loss of the store, more than one. */
  const running = new Set<{ startedMs: number }>()
  let slow: { endedMs: number; tookMs: number }[] = []
  /** Writes that ended in each second of the window. */
  const counts = new Map<number, number>()

  return {
    timed: (store) => ({ ...store, write: (ops, options) => time(() => store.write(ops, options)) }),
    state,
    isWriting: () => running.size > 0,
    states,
  }

  async function time(write: () => Promise<void>): Promise<void> {
    const one = { startedMs: clock.monotonic() }
    running.add(one)
    try {
      await write()
    } finally {
      running.delete(one)
      const endedMs = clock.monotonic()
      const tookMs = endedMs - one.startedMs
      const second = Math.floor(endedMs / 1000)
      counts.set(second, (counts.get(second) ?? 0) + 1)
      for (const old of counts.keys()) if (old <= second - windowS) counts.delete(old)
      if (tookMs >= slowMs) slow.push({ endedMs, tookMs })
      ended(tookMs)
    }
  }

  function state(): WriteState {
    if (ageMs() >= hangsAfterMs) return 'hanging'
    return ageMs() >= slowMs || slowness() !== null ? 'slow' : 'fine'
  }

  /** Of the oldest running write; 0 where none runs. */
  function ageMs(): number {
    const [oldest] = running
    return oldest === undefined ? 0 : clock.monotonic() - oldest.startedMs
  }

  function* states(): Generator<State> {
    const age = ageMs()
    const sinceAt = Math.round(clock.now() - age)
    if (age >= hangsAfterMs) yield { code: 'SPOOL_WRITE_HANGING', sinceAt, ageMs: age }
    const found = slowness()
    if (found !== null) yield { code: 'SPOOL_WRITE_SLOW', ...found }
  }

  function slowness(): { p99Ms: number; writes: number } | null {
    if (slow.length === 0 && ageMs() < slowMs) return null
    const fromMs = clock.monotonic() - windowS * 1000
    slow = slow.filter(({ endedMs }) => endedMs > fromMs)
    const age = ageMs()
    const long = [...slow.map(({ tookMs }) => tookMs), ...(age >= slowMs ? [age] : [])]
    if (long.length < slowMin) return null
    let writes = long.length - slow.length
    for (const [second, count] of counts) if (second * 1000 > fromMs) writes += count
    const p99Ms = long.toSorted((a, b) => b - a)[Math.floor(writes / 100)]
    return p99Ms === undefined ? null : { p99Ms: Math.round(p99Ms), writes }
  }
}
