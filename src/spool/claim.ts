// claim.ts: how a claim looks in memory and on the disk.

import type { BatchId } from '../domain/ids.ts'
import type { StoreOp } from '../storage/storage.ts'
import { seqKey, table } from './keys.ts'
import type { ChunkRef, Lane } from './lane.ts'
import { claimRecord } from './records.ts'
import type { Batch } from './spool.ts'
import type { SpoolState } from './state.ts'

/** A batch with a new batchId over `refs`, which follow each other without a gap. */
export function newBatch(state: SpoolState, lane: Lane, refs: readonly ChunkRef[]): Batch {
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
    recovered: false,
  }
}

export function putClaim(batch: Batch): StoreOp {
  const { batchId, endSeq, payloads, bytes, timestamp } = batch
  return {
    type: 'put',
    key: seqKey(table.batches, batch.lane, batch.firstSeq),
    value: claimRecord.encode({ batchId, endSeq, payloads, bytes, timestamp, turn: 'batch' }),
  }
}
