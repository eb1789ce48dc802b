// fast-clock.ts: the clock of the system, several times as fast: a minute of a real daemon passes in two seconds.
// Sockets and disks do not become faster.

import { systemClock, type Clock } from '../../src/std/clock.ts'

/** Begins at the time of the system. */
export function createFastClock(factor: number): Clock {
  const startedAt = systemClock.now()
  const startedMs = systemClock.monotonic()
  const passedMs = () => (systemClock.monotonic() - startedMs) * factor
  return {
    now: () => Math.round(startedAt + passedMs()),
    monotonic: () => startedMs + passedMs(),
    after: (delayMs, fire) => systemClock.after(delayMs / factor, fire),
  }
}
