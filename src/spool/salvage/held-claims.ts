// held-claims.ts: which payloads belong to a held batch, and which were settled before. A salvage keeps both
// apart from those that are pending: the service has processed the one, and may have processed the other.

import type { HeldReason } from '../../domain/held.ts'
import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { laneSum, sealedUntil, settledOf, type ClaimSum, type SeqRange, type Sums } from './record-sums.ts'

export type HeldBatch = { batchId: BatchId; reason: HeldReason; requestId: string | null }

export type ClaimedPayloads = {
  /** Null for a chunk that belongs to no held batch. A claim covers whole chunks. */
  heldBatch(lane: LaneId, firstSeq: number): HeldBatch | null
  /**
   * True for a chunk that was settled: its deletion was lost with a damaged part of the files, so it came
   * back. It is below the sealed numbers, and no batch claims it.
   */
  isSettled(lane: LaneId, firstSeq: number): boolean
  /** Lanes where settled payloads came back. `unsettled` of them were not settled; which is not known. */
  readonly returned: readonly { lane: LaneId; payloads: number; unsettled: number }[]
}

/** Damaged claims are left out: their batchId is lost. `mark` is that of this database, if there is one. */
export function claimedPayloads(sums: Sums, mark: Mark | null): ClaimedPayloads {
  const byLane = Map.groupBy(sums.claims, ({ lane }) => lane)
  /** Lanes whose unclaimed payloads below this number were settled. */
  const settledBelow = new Map<LaneId, number>()
  const returned: ClaimedPayloads['returned'][number][] = []
  for (const [lane, { record, totals, runs }] of sums.lanes) {
    const isDeleted = record === null && mark !== null && isDeletedBy(mark, lane)
    const payloads = runs.reduce((sum, [firstSeq, endSeq]) => sum + endSeq - firstSeq, 0)
    if (isDeleted && payloads > 0) {
      settledBelow.set(lane, Infinity)
      returned.push({ lane, payloads, unsettled: 0 })
      continue
    }
    // Without the totals, nothing shows that a batch was settled and not only its claim was lost.
    if (totals === null) continue
    const sealSeq = sealedUntil(sums, lane)
    const claims = byLane.get(lane) ?? []
    const claimed = claims.reduce((sum, { payloads }) => sum + payloads, 0)
    const unclaimed = unclaimedBelow(runs, claims, sealSeq)
    // As many sealed payloads are neither claimed nor settled: the records of their batches are lost.
    const unsettled = Math.max(0, sealSeq - settledOf(laneSum(sums, lane)) - claimed)
    if (unclaimed === 0 || unsettled >= unclaimed) continue
    settledBelow.set(lane, sealSeq)
    returned.push({ lane, payloads: unclaimed, unsettled })
  }
  return {
    heldBatch(lane, firstSeq) {
      const claim = claimAt(byLane.get(lane) ?? [], firstSeq)
      if (!claim?.held) return null
      const { reason, requestId } = claim.held
      return { batchId: claim.batchId, reason, requestId }
    },
    isSettled: (lane, firstSeq) =>
      firstSeq < (settledBelow.get(lane) ?? 0) && claimAt(byLane.get(lane) ?? [], firstSeq) === null,
    returned,
  }
}

/** A lane is deleted when all its payloads are settled. */
function isDeletedBy({ lanes, lanesLeftOut, nextLane }: Mark, lane: LaneId): boolean {
  return lanesLeftOut === 0 && lane < nextLane && lanes.every(({ id }) => id !== lane)
}

/** Payloads in chunks below `sealSeq` that no batch claims. */
function unclaimedBelow(runs: readonly SeqRange[], claims: readonly ClaimSum[], sealSeq: number): number {
  let unclaimed = 0
  for (const [firstSeq, endSeq] of runs) {
    let from = firstSeq
    const until = Math.min(endSeq, sealSeq)
    for (const claim of claims) {
      if (claim.endSeq <= from || claim.firstSeq >= until) continue
      unclaimed += Math.max(0, claim.firstSeq - from)
      from = Math.max(from, claim.endSeq)
    }
    unclaimed += Math.max(0, until - from)
  }
  return unclaimed
}

function claimAt(claims: readonly ClaimSum[], seq: number): ClaimSum | null {
  let low = 0
  let high = claims.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((claims[middle]?.firstSeq ?? 0) <= seq) low = middle + 1
    else high = middle
  }
  const claim = claims[low - 1]
  return claim !== undefined && seq < claim.endSeq ? claim : null
}
