// fake-clock.ts: a clock that a test moves by hand. Timers fire in order, at their own time.

import type { Clock } from '../../src/std/clock.ts'

export type FakeClock = Clock & {
  /** Moves both clocks and fires due timers in order; promises run after each timer. */
  advance(ms: number): Promise<void>
  /** Steps only the wall clock, as when the time is set. */
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
  /** The next one is the last; of timers for the same time the older one comes first. */
  const timers: { at: number; fire: () => void }[] = []

  return {
    now: () => wallMs,
    monotonic: () => monotonicMs,
    after(delayMs, fire) {
      const timer = { at: monotonicMs + Math.max(0, delayMs), fire }
      let place = timers.length
      while (place > 0 && (timers[place - 1]?.at ?? Infinity) <= timer.at) place -= 1
      timers.splice(place, 0, timer)
      return () => {
        const found = timers.indexOf(timer)
        if (found >= 0) timers.splice(found, 1)
      }
    },
    async advance(ms) {
      const until = monotonicMs + ms
      for (;;) {
        await turn()
        const timer = timers.at(-1)
        if (timer === undefined || timer.at > until) break
        timers.pop()
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
      const timer = timers.at(-1)
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
