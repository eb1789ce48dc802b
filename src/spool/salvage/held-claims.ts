// held-claims.ts: which payloads belong to a held batch, and which were settled before. A salvage keeps both
// apart from those that are pending: the service has processed the one, and may have processed the other.

import type { HeldReason } from '../../domain/held.ts'
import type { BatchId, LaneId } from '../../domain/ids.ts'
import { lengthOf, type SeqRange } from '../chunk-log/lane-book.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { markedLane } from '../high-water-mark/mark-comparison.ts'
import { laneBook, type Sums } from './record-sums.ts'

export type HeldBatch = { batchId: BatchId; reason: HeldReason; requestId: string | null }

export type ClaimedPayloads = {
  /** Null for a chunk that belongs to no held batch. A claim covers whole chunks. */
  heldBatch(lane: LaneId, firstSeq: number): HeldBatch | null
  /** True for a chunk that was settled: its deletion was lost with a damaged part of the files. */
  isSettled(lane: LaneId, firstSeq: number): boolean
  /** Lanes where settled payloads came back. */
  readonly returned: readonly { lane: LaneId; payloads: number }[]
}

/** Damaged claims are left out: their batchId is lost. `mark` is that of this database, if there is one. */
export function claimedPayloads({ lanes }: Sums, mark: Mark | null): ClaimedPayloads {
  const settledBefore = new Map<LaneId, readonly SeqRange[]>()
  for (const [lane, sum] of lanes) {
    const isDeleted = sum.record === null && markedLane(mark, lane) === 'deleted'
    settledBefore.set(lane, laneBook(sum, { isDeleted }).settledBefore)
  }
  return {
    heldBatch(lane, firstSeq) {
      const claim = rangeAt(lanes.get(lane)?.claims ?? [], firstSeq)
      if (!claim?.held) return null
      const { reason, requestId } = claim.held
      return { batchId: claim.batchId, reason, requestId }
    },
    isSettled: (lane, firstSeq) => rangeAt(settledBefore.get(lane) ?? [], firstSeq) !== null,
    returned: [...settledBefore]
      .map(([lane, ranges]) => ({ lane, payloads: lengthOf(ranges) }))
      .filter(({ payloads }) => payloads > 0),
  }
}

function rangeAt<Range extends SeqRange>(ranges: readonly Range[], seq: number): Range | null {
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle]?.firstSeq ?? 0) <= seq) low = middle + 1
    else high = middle
  }
  const range = ranges[low - 1]
  return range !== undefined && seq < range.endSeq ? range : null
}
