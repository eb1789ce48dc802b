// lane-view.ts: what the spool reports of a lane.

import type { EpochMs } from '../std/clock.ts'
import type { LaneView } from './views.ts'
import { firstOpenSeq, settledPayloads, type Lane } from './chunk-log/lane.ts'

export function laneView(lane: Lane): LaneView {
  const { claimed } = lane
  return {
    id: lane.id,
    provider: lane.provider,
    role: lane.role,
    openedAt: lane.openedAt,
    pending: lane.committedSeq - lane.sealSeq - lane.gapPayloads,
    pendingBytes: lane.committedBytes - lane.sealBytes,
    sealed: claimed.payloads,
    sealedBytes: claimed.bytes,
    heldBatches: claimed.heldBatches,
    heldPayloads: claimed.heldPayloads,
    heldBytes: claimed.heldBytes,
    oldestAt: lane.refs[0]?.committedAt ?? null,
    // For people only: there can be many thousand claims, and delivery reads this view with each batch.
    get oldestSealedAt() {
      return oldestClaimAt(lane)
    },
    get lowSeq() {
      return lowSeq(lane)
    },
    sealSeq: lane.sealSeq,
    committedSeq: lane.committedSeq,
    exchangedSeq: lane.exchangedSeq,
    appended: lane.nextSeq,
    settled: settledPayloads(lane.settled),
    open: lane.openPayloads,
  }
}

function oldestClaimAt({ claims }: Lane): EpochMs | null {
  let oldest: EpochMs | null = null
  for (const { batch, refs } of claims.values()) {
    const at = refs?.[0]?.committedAt ?? batch.timestamp
    if (oldest === null || at < oldest) oldest = at
  }
  return oldest
}

function lowSeq(lane: Lane): number {
  let low = firstOpenSeq(lane)
  for (const firstSeq of lane.leaving) if (firstSeq < low) low = firstSeq
  return low
}
