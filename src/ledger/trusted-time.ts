// trusted-time.ts: the time by which records are deleted: ours, put right by what the answers of the service tell, and only
// where that is known to hold now.
//
// When our clock steps, what was learned of it before is void until an answer tells anew, which the offset shows by
// changing. Nothing is deleted meanwhile.

import type { Clock, EpochMs } from '../std/clock.ts'

export type TrustedTime = {
  /** Null while nobody knows. To be called every few seconds, or a step is seen late. */
  now(): EpochMs | null
}

const stepMs = 30_000

export function createTrustedTime(deps: {
  clock: Clock
  /** What has to be added to our clock; null while unknown. */
  offsetMs: () => number | null
}): TrustedTime {
  const { clock, offsetMs } = deps
  const ahead = () => clock.now() - clock.monotonic()
  let aheadMs = ahead()
  let voidOffsetMs: number | null = null

  return { now }

  function now(): EpochMs | null {
    const offset = offsetMs()
    if (Math.abs(ahead() - aheadMs) > stepMs) voidOffsetMs = offset
    aheadMs = ahead()
    if (offset === null || offset === voidOffsetMs) return null
    voidOffsetMs = null
    return clock.now() + offset
  }
}
