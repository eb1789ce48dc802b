// trusted-time.ts: the time by which records are deleted: our clock, corrected where it is known to be wrong.
//
// When our clock steps, the known offset is void until it becomes unknown or another one. Nothing is deleted
// meanwhile. An offset that stays the same counts again after some minutes: the owner of our time has noticed
// the step by then.

import type { Clock, EpochMs } from '../std/clock.ts'

export type TrustedTime = {
  /** Null while unknown. Call it every few seconds, or a step is noticed late. */
  now(): EpochMs | null
}

const stepMs = 30_000
const voidMs = 600_000

export function createTrustedTime(deps: {
  clock: Clock
  /** To add to our clock; null while unknown. */
  offsetMs: () => number | null
}): TrustedTime {
  const { clock, offsetMs } = deps
  const ahead = () => clock.now() - clock.monotonic()
  let aheadMs = ahead()
  let voided: { offsetMs: number | null; untilMs: number } | null = null

  return { now }

  function now(): EpochMs | null {
    const offset = offsetMs()
    const nowMs = clock.monotonic()
    if (Math.abs(ahead() - aheadMs) > stepMs) voided = { offsetMs: offset, untilMs: nowMs + voidMs }
    aheadMs = ahead()
    if (voided !== null && (offset !== voided.offsetMs || nowMs >= voided.untilMs)) voided = null
    return offset === null || voided !== null ? null : clock.now() + offset
  }
}
