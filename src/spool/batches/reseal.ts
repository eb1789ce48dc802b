// reseal.ts: replaces the claim of a batch by other claims on the same payloads, or changes its operation or
// held state.
// Nothing moves: a chunk is cut where a new batch ends inside it, and claims are written, all in one atomic
// write. A crash before the write leaves the old batch, which may be sent again under its batchId. A crash
// after it leaves the new batches.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import { heldWhyMax, type Held } from '../../domain/held.ts'
import { splitChunk, type Chunk } from '../chunk-log/chunk-codec.ts'
import { putChunk, refOf, type ChunkRef } from '../chunk-log/lane.ts'
import { setClaim, setClaimBatch } from '../chunk-log/lane-claims.ts'
import type { Session } from '../session-state.ts'
import type { Batch, BatchOperation } from '../types.ts'
import { newClaim, putClaim, type Claimed } from './claim.ts'

/** Payloads of each new batch, and the timestamp of all of them. */
export type ResealParts = { counts: readonly number[]; timestamp?: EpochMs | undefined }

type Piece = { ref: ChunkRef; chunk: Chunk }

/** `chunks` are those of the claim, and `counts` add up to its payloads. Resolves after the fsync. */
export async function reseal(
  session: Session,
  { lane, claim }: Claimed,
  chunks: readonly Chunk[],
  { counts, timestamp }: ResealParts,
): Promise<readonly Batch[]> {
  const { runs, cut } = runsOf(claim.batch, chunks, counts)
  const claims = runs.map((refs) => newClaim(session, lane, refs, { timestamp }))
  // The first one has the key of the batch that it replaces.
  for (const added of claims) setClaim(lane, added)
  for (const { ref, chunk } of cut) session.recent.put(lane.id, ref.firstSeq, chunk)
  await session.committer.commit({
    prepare(ops) {
      for (const { ref, chunk } of cut) putChunk(lane, ref.firstSeq, chunk, ops)
      for (const { batch } of claims) ops.push(putClaim(batch))
    },
  })
  return claims.map(({ batch }) => batch)
}

/** Writes the operation of the next submission; everything else of the claim stays. */
export function setClaimOperation(
  session: Session,
  claimed: Claimed,
  operation: BatchOperation,
): Promise<Batch> {
  const { claim } = claimed
  assert(operation === 'batch' || claim.batch.payloads === 1, 'the single operation takes one payload')
  assert(!claim.settling, 'the operation of a batch that is being settled stays')
  return rewrite(session, claimed, { ...claim.batch, operation })
}

/** Writes or removes the held state; everything else of the claim stays. */
export function setClaimHeld(session: Session, claimed: Claimed, held: Held | null): Promise<Batch> {
  const { claim } = claimed
  assert(!claim.settling, 'a batch that is being settled is not held')
  const stored = held === null ? null : { ...held, why: held.why.slice(0, heldWhyMax) }
  return rewrite(session, claimed, { ...claim.batch, held: stored })
}

async function rewrite({ committer }: Session, { lane, claim }: Claimed, batch: Batch): Promise<Batch> {
  setClaimBatch(lane, claim, batch)
  await committer.commit({ prepare: (ops) => void ops.push(putClaim(batch)) })
  return batch
}

/** The refs of each part, and the chunks that must be cut for them. */
function runsOf(
  batch: Batch,
  chunks: readonly Chunk[],
  counts: readonly number[],
): { runs: ChunkRef[][]; cut: Piece[] } {
  const runs: ChunkRef[][] = counts.map(() => [])
  const cut: Piece[] = []
  let part = 0
  let room = counts[0] ?? 0
  let seq = batch.firstSeq
  for (const chunk of chunks) {
    const shares: { part: number; count: number }[] = []
    for (let left = chunk.count; left > 0;) {
      if (room === 0) room = counts[++part] ?? 0
      const count = Math.min(left, room)
      assert(count > 0, 'a claim covers whole chunks')
      shares.push({ part, count })
      left -= count
      room -= count
    }
    const shareCounts = shares.map(({ count }) => count)
    const pieces = shares.length === 1 ? [chunk] : splitChunk(chunk, shareCounts)
    for (const [index, piece] of pieces.entries()) {
      const ref = refOf(seq, piece)
      runs[shares[index]?.part ?? 0]?.push(ref)
      if (pieces.length > 1) cut.push({ ref, chunk: piece })
      seq += piece.count
    }
  }
  return { runs, cut }
}
