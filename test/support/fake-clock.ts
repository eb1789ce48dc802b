// fake-clock.ts: a clock that a test moves by hand. Timers fire in order, at their own time.

import type { Clock } from '../../src/std/clock.ts'

export type FakeClock = Clock & {
  /** Moves both clocks on, firing what falls due in order; promises get their turn after each timer. */
  advance(ms: number): Promise<void>
  /** Steps the wall clock alone, as when the time is set. */
  stepWall(ms: number): void
  /** Timers that have not fired. */
  pending(): number
  /** Milliseconds until the next timer; null without one. */
  nextIn(): number | null
}

export const fakeStartMs = 1_763_700_000_000

export function createFakeClock(startMs = fakeStartMs): FakeClock {
  let monotonicMs = 0
  let wallMs = startMs
  let timers: { at: number; order: number; fire: () => void }[] = []
  let order = 0

  function next() {
    let first = timers[0]
    for (const timer of timers) {
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer
    }
    return first
  }

  return {
    now: () => wallMs,
    monotonic: () => monotonicMs,
    after(delayMs, fire) {
      order += 1
      const timer = { at: monotonicMs + Math.max(0, delayMs), order, fire }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    async advance(ms) {
      const until = monotonicMs + ms
      for (;;) {
        await turn()
        const timer = next()
        if (timer === undefined || timer.at > until) break
        timers = timers.filter((other) => other !== timer)
        wallMs += timer.at - monotonicMs
        monotonicMs = timer.at
        timer.fire()
      }
      wallMs += until - monotonicMs
      monotonicMs = until
      await turn()
    },
    stepWall(ms) {
      wallMs += ms
    },
    pending: () => timers.length,
    nextIn() {
      const timer = next()
      return timer === undefined ? null : Math.max(0, timer.at - monotonicMs)
    },
  }
}

/** Lets promises and immediates that are ready run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
