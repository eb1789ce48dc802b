// claim.ts: how a claim looks in memory and on the disk.

import type { BatchId } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import type { ChunkRef, Claim, Lane } from '../chunk-log/lane.ts'
import { claimRecord, type ClaimRecord } from '../chunk-log/record-codec.ts'
import type { Batch, BatchOperation } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

/** A batch with a new batchId over `refs`, which follow each other without a gap. */
export function newBatch(
  state: SpoolState,
  lane: Lane,
  refs: readonly ChunkRef[],
  operation: BatchOperation = 'batch',
): Batch {
  const first = refs[0]!
  const last = refs[refs.length - 1]!
  return {
    lane: lane.id,
    provider: lane.provider,
    role: lane.role,
    batchId: state.newId() as BatchId,
    firstSeq: first.firstSeq,
    endSeq: last.firstSeq + last.count,
    payloads: refs.reduce((sum, { count }) => sum + count, 0),
    bytes: refs.reduce((sum, { bytes }) => sum + bytes, 0),
    timestamp: state.clock.now(),
    operation,
    recovered: false,
  }
}

export function putClaim(batch: Batch): StoreOp {
  const { batchId, endSeq, payloads, bytes, timestamp, operation } = batch
  return {
    type: 'put',
    key: seqKey(table.batches, batch.lane, batch.firstSeq),
    value: claimRecord.encode({ batchId, endSeq, payloads, bytes, timestamp, turn: operation }),
  }
}

/** What recovery has read, or made anew, becomes a claim of the lane. */
export function addClaim(lane: Lane, firstSeq: number, record: ClaimRecord): Batch {
  const { batchId, endSeq, payloads, bytes, timestamp, turn: operation } = record
  const { id, provider, role } = lane
  const batch: Batch = {
    lane: id,
    provider,
    role,
    batchId,
    firstSeq,
    endSeq,
    payloads,
    bytes,
    timestamp,
    operation,
    recovered: true,
  }
  const claim: Claim = { batch, refs: null, settling: false }
  lane.claims.set(firstSeq, claim)
  lane.sealSeq = Math.max(lane.sealSeq, endSeq)
  return batch
}
