// partition.ts: a partition before its first message.

import type { Sender } from '../../domain/message.ts'
import type { Partition } from './types.ts'

/** `nowMs`: monotonic. */
export function newPartition(
  {
    label,
    sender,
    holds,
    budget = null,
  }: { label: string; sender: Sender; holds: Partition['holds']; budget?: Partition['budget'] },
  nowMs: number,
): Partition {
  return {
    label,
    holds,
    budget,
    // A copy: the intake finds what waits by the object.
    sender: { ...sender },
    assigned: true,
    taken: 0,
    acked: 0,
    lastAcked: 0,
    committed: 0,
    lastCommitted: 0,
    collected: 0,
    lastTakenAtMs: nowMs,
  }
}
