// claim.ts: a claim in memory and on the disk.

import type { BatchId } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { laneOf, seqKey, seqOf, table } from '../chunk-log/key-layout.ts'
import type { ChunkRef, Claim, Lane } from '../chunk-log/lane.ts'
import { setClaim } from '../chunk-log/lane-claims.ts'
import { claimRecord, type ClaimRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'
import type { Batch, SealLimits } from '../types.ts'

/** A claim and its lane. */
export type Claimed = { lane: Lane; claim: Claim }

/** A claim with a new batchId on `refs`, which follow each other without a gap. */
export function newClaim(
  state: SpoolState,
  lane: Lane,
  refs: readonly ChunkRef[],
  { operation = 'batch', timestamp = state.clock.now() }: Pick<SealLimits, 'operation' | 'timestamp'> = {},
): Claim {
  const first = refs[0]!
  const last = refs[refs.length - 1]!
  const batch: Batch = {
    lane: lane.id,
    provider: lane.provider,
    role: lane.role,
    batchId: state.newId() as BatchId,
    firstSeq: first.firstSeq,
    endSeq: last.firstSeq + last.count,
    payloads: refs.reduce((sum, { count }) => sum + count, 0),
    bytes: refs.reduce((sum, { bytes }) => sum + bytes, 0),
    timestamp: Math.round(timestamp),
    operation,
    held: null,
    recovered: false,
  }
  return { batch, refs, settling: false }
}

export function putClaim(batch: Batch): StoreOp {
  const { lane, firstSeq, batchId, endSeq, payloads, bytes, timestamp, operation, held } = batch
  const at: ClaimRecord['at'] = [lane, firstSeq]
  const record: ClaimRecord = { batchId, endSeq, payloads, bytes, timestamp, turn: operation, at }
  if (held !== null) record.held = held
  return {
    type: 'put',
    key: seqKey(table.batches, lane, firstSeq),
    value: claimRecord.encode(record),
  }
}

/** False where a bit of the key has flipped: other payloads would be sent under its batchId. */
export function isClaimOf(key: Buffer, value: Buffer): boolean {
  const record = claimRecord.decode(value)
  if (record === null) return true
  const { at: [lane, firstSeq] = [laneOf(key), record.endSeq - record.payloads] } = record
  return lane === laneOf(key) && firstSeq === seqOf(key)
}

/** Adds a claim that recovery has read, or rebuilt, to its lane. */
export function addClaim(lane: Lane, firstSeq: number, record: ClaimRecord): Batch {
  const { turn: operation, held = null, at: _, ...rest } = record
  const { id, provider, role } = lane
  const batch: Batch = { lane: id, provider, role, firstSeq, ...rest, operation, held, recovered: true }
  setClaim(lane, { batch, refs: null, settling: false })
  lane.sealSeq = Math.max(lane.sealSeq, batch.endSeq)
  return batch
}
