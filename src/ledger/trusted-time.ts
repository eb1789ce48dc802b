// trusted-time.ts: the time by which records are deleted: our clock, corrected by what the answers of the
// service show.
//
// When our clock steps, the known offset is void until an answer brings another one. Nothing is deleted
// meanwhile.

import type { Clock, EpochMs } from '../std/clock.ts'

export type TrustedTime = {
  /** Null while unknown. Call it every few seconds, or a step is noticed late. */
  now(): EpochMs | null
}

const stepMs = 30_000

export function createTrustedTime(deps: {
  clock: Clock
  /** To add to our clock; null while unknown. */
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
