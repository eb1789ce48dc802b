// running-seals.ts: which lanes are being sealed, and whether another seal of one may start.

import type { LaneId } from '../../domain/ids.ts'
import type { LaneView, SealLimits } from '../../spool/spool.ts'

export type RunningSeals = {
  of(lane: LaneId): number
  isAny(): boolean
  began(lane: LaneId): void
  ended(lane: LaneId): void
  /**
   * While seals of the lane run, only where it holds a full batch behind theirs: a batch that is not full
   * would end a linger early. What they have claimed may still count as pending, or no more: then the next
   * seal starts a little later.
   */
  allow(lane: LaneView, limits: SealLimits): boolean
}

/** Bound: the lanes. */
export function createRunningSeals(): RunningSeals {
  const counts = new Map<LaneId, number>()
  const of = (lane: LaneId) => counts.get(lane) ?? 0
  return { of, isAny: () => counts.size > 0, began, ended, allow }

  function began(lane: LaneId): void {
    counts.set(lane, of(lane) + 1)
  }

  function ended(lane: LaneId): void {
    if (of(lane) > 1) counts.set(lane, of(lane) - 1)
    else counts.delete(lane)
  }

  function allow({ id, role, pending, pendingBytes }: LaneView, limits: SealLimits): boolean {
    const running = of(id)
    if (running === 0) return true
    // Its head may still wait for the delay of its step.
    if (role.kind === 'retry') return false
    const batches = running + 1
    return pending >= batches * limits.payloadsMax || pendingBytes >= batches * limits.bodyBytesMax
  }
}
