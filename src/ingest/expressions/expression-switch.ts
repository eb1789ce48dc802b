// expression-switch.ts: switches the expression of a source off that only costs time: each timeout keeps the
// one thread that all sources share busy, so a source whose expression times out again and again would make
// all others wait.
//
//   on   `timeoutsMax` messages in a row time out (or end the thread) -> off
//   off  its messages wait on the disk, in order (spool.deferred_max_bytes); after `offMs` the next ones are
//        evaluated: a value -> on; a timeout -> off for twice as long, at most `offMaxMs`
//
// They wait and do not become dead letters, because the expression may be right and the load wrong, or a
// reload brings a better one: another mapping switches everything on again.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'

export type ExpressionSwitch = {
  isOff(source: string): boolean
  /** A message was evaluated; `cost` where that ended by its time or memory. */
  ended(source: string, how: 'in time' | 'cost'): void
  /** Another mapping is in force. */
  reset(): void
}

type Source = { inRow: number; offUntilMs: number; offMs: number }

const timeoutsMax = 10
const firstOffMs = 60_000
const offMaxMs = 600_000

export function createExpressionSwitch({ clock, emit }: { clock: Clock; emit: Emit }): ExpressionSwitch {
  const sources = new Map<string, Source>()
  return { isOff, ended, reset }

  function isOff(source: string): boolean {
    const state = sources.get(source)
    return state !== undefined && clock.monotonic() < state.offUntilMs
  }

  function ended(source: string, how: 'in time' | 'cost'): void {
    const state = sources.get(source)
    if (how === 'in time') {
      if (state === undefined) return
      sources.delete(source)
      if (state.offMs > 0) emit({ kind: 'expressions_switched_on', source })
      return
    }
    const { inRow, offMs } = state ?? { inRow: 0, offMs: 0 }
    const next = { inRow: inRow + 1, offUntilMs: state?.offUntilMs ?? 0, offMs }
    sources.set(source, next)
    // Messages that were evaluated together with the last one that counts change nothing more.
    if (isOff(source) || (offMs === 0 && next.inRow < timeoutsMax)) return
    next.offMs = Math.min(offMaxMs, offMs === 0 ? firstOffMs : offMs * 2)
    next.offUntilMs = clock.monotonic() + next.offMs
    emit({ kind: 'expressions_switched_off', source, timeouts: next.inRow, retryInMs: next.offMs })
  }

  function reset(): void {
    for (const [source, { offMs }] of sources)
      if (offMs > 0) emit({ kind: 'expressions_switched_on', source })
    sources.clear()
  }
}
