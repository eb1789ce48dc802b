// write-watch.ts: how long the writes of the store take. A disk that hangs or crawls fails no write, so
// nothing else notices it: acknowledgements wait, and counters stand still.
//
//   hanging   the running write is older than 10 s, until it ends
//   slow      the 99th percentile of the writes of the last 30 s is a second or more, and so are two of them
//             at least: one pause alone is usual. The running write counts
//
// Its timer waits for nothing else: what measures the disk may hang as well. It runs while something was
// written in the last 30 s.
//
// Bound: writes follow each other, so at most 31 of 30 s took a second or more. The others are only counted.

import type { CancelTimer, Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Store } from '../storage/storage.ts'

export type WriteState = 'fine' | 'slow' | 'hanging'

export type WriteWatch = {
  /** The same store, whose writes are timed. */
  timed(store: Store): Store
  state(): WriteState
  isWriting(): boolean
  stop(): void
}

type Deps = { clock: Clock; emit: Emit; ended: (tookMs: number) => void }

const hangsAfterMs = 10_000
const slowMs = 1000
const slowMin = 2
const checkMs = 1000
const windowMs = 30_000
/** So that the numbers of a condition are current. */
const againMs = 10_000

export function createWriteWatch({ clock, emit, ended }: Deps): WriteWatch {
  /** Monotonic starts of the running writes, the oldest first; after a loss of the store, more than one. */
  const running = new Set<{ startedMs: number }>()
  let slow: { endedMs: number; tookMs: number }[] = []
  /** Writes that ended between the checks of the window. */
  let counts: number[] = []
  let count = 0
  /** When each was reported last; null where it does not hold. */
  const reportedMs: { hanging: number | null; slow: number | null } = { hanging: null, slow: null }
  let cancel: CancelTimer | null = null
  let isStopped = false

  return {
    timed: (store) => ({ ...store, write: (ops, options) => time(() => store.write(ops, options)) }),
    state,
    isWriting: () => running.size > 0,
    stop() {
      isStopped = true
      cancel?.()
      endSlow()
    },
  }

  async function time(write: () => Promise<void>): Promise<void> {
    const one = { startedMs: clock.monotonic() }
    running.add(one)
    if (cancel === null) arm()
    try {
      await write()
    } finally {
      running.delete(one)
      const endedMs = clock.monotonic()
      const tookMs = endedMs - one.startedMs
      count += 1
      if (tookMs >= slowMs) slow.push({ endedMs, tookMs })
      if (reportedMs.hanging !== null && ageMs() < hangsAfterMs) {
        reportedMs.hanging = null
        emit({ kind: 'spool_write_ended', tookMs })
      }
      ended(tookMs)
    }
  }

  function state(): WriteState {
    const age = ageMs()
    if (age >= hangsAfterMs) return 'hanging'
    return age >= slowMs || reportedMs.slow !== null ? 'slow' : 'fine'
  }

  /** Of the oldest running write; 0 where none runs. */
  function ageMs(): number {
    const [oldest] = running
    return oldest === undefined ? 0 : clock.monotonic() - oldest.startedMs
  }

  function arm(): void {
    if (!isStopped) cancel = clock.after(checkMs, check)
  }

  function check(): void {
    checkHanging()
    checkSlow()
    cancel = null
    // Those of the window that count as slow are among the counted ones.
    if (running.size > 0 || counts.some((ended) => ended > 0)) arm()
    else counts = []
  }

  function checkHanging(): void {
    const age = ageMs()
    if (age < hangsAfterMs || !isDue('hanging')) return
    const first = reportedMs.hanging === null
    reportedMs.hanging = clock.monotonic()
    emit({ kind: 'spool_write_hanging', sinceAt: Math.round(clock.now() - age), ageMs: age, first })
  }

  function checkSlow(): void {
    const nowMs = clock.monotonic()
    counts = [...counts, count].slice(-windowMs / checkMs)
    count = 0
    slow = slow.filter(({ endedMs }) => nowMs - endedMs < windowMs)
    const age = ageMs()
    const long = [...slow.map(({ tookMs }) => tookMs), ...(age >= slowMs ? [age] : [])]
    const writes = counts.reduce((sum, one) => sum + one, long.length - slow.length)
    const p99Ms = long.toSorted((a, b) => b - a)[Math.floor(writes / 100)]
    if (long.length < slowMin || p99Ms === undefined) endSlow()
    else if (isDue('slow')) {
      const first = reportedMs.slow === null
      reportedMs.slow = nowMs
      emit({ kind: 'spool_writes_slow', p99Ms: Math.round(p99Ms), writes, first })
    }
  }

  function isDue(what: keyof typeof reportedMs): boolean {
    return clock.monotonic() - (reportedMs[what] ?? -Infinity) >= againMs
  }

  function endSlow(): void {
    if (reportedMs.slow === null) return
    reportedMs.slow = null
    emit({ kind: 'spool_writes_fast' })
  }
}
