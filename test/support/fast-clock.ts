// fast-clock.ts: the clock of the system, several times as fast: a minute of a real daemon passes in two seconds.
// Sockets and disks do not become faster.

import { systemClock, type Clock } from '../../src/std/clock.ts'

export type FastClock = Clock & {
  /** From now on; a timer that waits already keeps its moment. */
  setFactor(factor: number): void
}

/** Begins at the time of the system. */
export function createFastClock(factor: number): FastClock {
  let present = factor
  let beganMs = systemClock.monotonic()
  let before = { wallMs: systemClock.now(), monotonicMs: beganMs }
  const passedMs = () => (systemClock.monotonic() - beganMs) * present
  const clock: FastClock = {
    now: () => Math.round(before.wallMs + passedMs()),
    monotonic: () => before.monotonicMs + passedMs(),
    after: (delayMs, fire) => systemClock.after(delayMs / present, fire),
    setFactor(next) {
      before = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
      beganMs = systemClock.monotonic()
      present = next
    },
  }
  return clock
}
