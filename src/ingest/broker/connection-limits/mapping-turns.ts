// mapping-turns.ts: when clients whose messages take long are read again.
//
// Most messages take some microseconds of the only thread. One of 80,000 keys, or of 300 bytes that unpack to
// 256 KiB, takes milliseconds, and 40 clients with ten of them per second would leave no time to others. So
// such clients wait for a turn, and together they get half of the thread:
//
//   | messages of a | as long for others | messages of c | as long for others | ...
//
// The next turn is that of the client that took least lately. So one that has a single slow message, which
// may be that of a garbage collection, does not wait behind those that send nothing else.

import type { CancelTimer, Clock } from '../../../std/clock.ts'

/** A client that waits for its turn. */
export type TurnTaker = {
  /** What its messages took lately. */
  readonly recentMs: number
  /** It may read until its messages have taken long again. */
  turnCame(): void
}

export type MappingTurns = {
  /** The messages of the client took `usedMs`. `turnCame` is called later, also where it is the only one. */
  wait(taker: TurnTaker, usedMs: number): void
  leave(taker: TurnTaker): void
}

const restMaxMs = 100

export function createMappingTurns(clock: Pick<Clock, 'monotonic' | 'after'>): MappingTurns {
  const waiting = new Set<TurnTaker>()
  let nextAtMs = 0
  let cancel: CancelTimer | null = null
  return {
    wait(taker, usedMs) {
      waiting.add(taker)
      const now = clock.monotonic()
      // Of many that begin at once, none waits for all that the others took.
      nextAtMs = Math.min(Math.max(nextAtMs, now) + usedMs, now + Math.max(usedMs, restMaxMs))
      arm()
    },
    leave(taker) {
      waiting.delete(taker)
      if (waiting.size > 0) return
      cancel?.()
      cancel = null
    },
  }

  function arm(): void {
    cancel ??= clock.after(Math.max(1, nextAtMs - clock.monotonic()), giveTurn)
  }

  function giveTurn(): void {
    cancel = null
    // What was added meanwhile comes first.
    if (nextAtMs <= clock.monotonic()) {
      let next: TurnTaker | null = null
      for (const one of waiting) if (next === null || one.recentMs < next.recentMs) next = one
      if (next !== null) waiting.delete(next)
      next?.turnCame()
    }
    if (waiting.size > 0) arm()
  }
}
