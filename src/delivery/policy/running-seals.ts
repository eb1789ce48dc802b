// running-seals.ts: which lanes are being sealed, and whether another seal of one may start.
//
//   held      a seal was chosen and waits for credentials, or payloads of the lane are being returned: no
//             other seal of the lane starts
//   runs      the spool is claiming payloads: another seal may start where the lane holds a full batch behind
//             all that run
//
// Bound: one held seal of a lane, and as many that run as the provider has places.

import type { LaneId } from '../../domain/ids.ts'
import type { LaneView, SealLimits } from '../../spool/spool.ts'
import type { ProviderOptions } from '../delivery-options.ts'

export type RunningSeal = {
  readonly lane: LaneId
  /** It was held until now. */
  runs(): void
  ended(): void
}

export type RunningSeals = {
  /** Held or running. */
  of(lane: LaneId): number
  isAny(): boolean
  /** Begins as held. */
  begin(lane: LaneId): RunningSeal
  allow(lane: LaneView, limits: SealLimits): boolean
}

/**
 * Several seals of a lane may run. Not with rate limits: each batch would be sealed for what may be sent now.
 */
export function createRunningSeals(rate: ProviderOptions['rate']): RunningSeals {
  const together = () => rate.payloadsPerS === null && rate.requestsPerS === null
  const held = new Set<LaneId>()
  const running = new Map<LaneId, number>()
  const countOf = (lane: LaneId) => running.get(lane) ?? 0
  return {
    of: (lane) => countOf(lane) + (held.has(lane) ? 1 : 0),
    isAny: () => held.size + running.size > 0,
    begin,
    allow,
  }

  function begin(lane: LaneId): RunningSeal {
    let state: 'held' | 'runs' | 'ended' = 'held'
    held.add(lane)
    return {
      lane,
      runs() {
        state = 'runs'
        held.delete(lane)
        running.set(lane, countOf(lane) + 1)
      },
      ended() {
        if (state === 'held') held.delete(lane)
        if (state === 'runs') leave(lane)
        state = 'ended'
      },
    }
  }

  function leave(lane: LaneId): void {
    if (countOf(lane) > 1) running.set(lane, countOf(lane) - 1)
    else running.delete(lane)
  }

  /**
   * A batch that is not full would end a linger early. What the running seals have claimed may still count as
   * pending, or no more: then the next seal starts a little later.
   */
  function allow({ id, role, pending, pendingBytes }: LaneView, limits: SealLimits): boolean {
    if (held.has(id)) return false
    const batches = countOf(id) + 1
    if (batches === 1) return true
    // The head of a retry lane may still wait for the delay of its step.
    if (!together() || role.kind === 'retry') return false
    return pending >= batches * limits.payloadsMax || pendingBytes >= batches * limits.bodyBytesMax
  }
}
