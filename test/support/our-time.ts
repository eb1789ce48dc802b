// our-time.ts: our time for tests: known to the extent that a test says.

import type { OurTime } from '../../src/domain/arrival.ts'
import type { KernelClock } from '../../src/app/kernel-clock.ts'
import { systemClock, type Clock } from '../../src/std/clock.ts'

export const testBootId = '11111111-1111-4111-8111-111111111111'

/** A wall clock that is off by `offsetMs()`, null while that is unknown, and a monotonic clock that is right. */
export function ourTimeOf(
  offsetMs: () => number | null = () => 0,
  clock: Clock = systemClock,
  bootId = testBootId,
): OurTime {
  return {
    now: () => clock.now(),
    offsetMs,
    stamp(message, wallMs) {
      message.arrivedAt = wallMs
      message.arrival = { bootId, monotonicMs: clock.monotonic(), offsetMs: offsetMs() }
    },
    trueTimeOf(arrival) {
      const offset = offsetMs()
      if (offset === null || arrival.bootId !== bootId) return null
      return arrival.monotonicMs + clock.now() - clock.monotonic() + offset
    },
  }
}

/** A kernel that says what a test says. */
export function testKernel(isSynchronised: () => boolean = () => false): KernelClock {
  return { bootId: testBootId, sleptMs: () => 0, isSynchronised: async () => isSynchronised() }
}
