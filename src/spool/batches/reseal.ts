// reseal.ts: what a claim covers goes on under other claims, or by the other operation. Nothing moves: chunks are cut where
// a new batch ends inside of one, and claims are written, all in one atomic write. A crash before it leaves the batch
// as it was, which may go again under its batchId; a crash after it leaves the new ones.

import { assert } from '../../std/assert.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { splitChunk, type Chunk } from '../chunk-log/chunk-codec.ts'
import { newBatch, putClaim } from './claim.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import type { ChunkRef, Claim, Lane } from '../chunk-log/lane.ts'
import type { Batch, BatchOperation } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

type Piece = { ref: ChunkRef; chunk: Chunk }

/** `chunks` are those that the claim covers, and `counts` are all of its payloads. Resolves after the fsync. */
export async function reseal(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  claim: Claim,
  chunks: readonly Chunk[],
  counts: readonly number[],
): Promise<readonly Batch[]> {
  const { runs, cut } = runsOf(claim.batch, chunks, counts)
  const claims = runs.map((refs): Claim => ({ batch: newBatch(state, lane, refs), refs, settling: false }))
  // The first one stands under the key of the batch that it replaces.
  for (const claim of claims) lane.claims.set(claim.batch.firstSeq, claim)
  for (const { ref, chunk } of cut) state.recent.put(lane.id, ref.firstSeq, chunk)
  await committer.control({
    prepare(ops: StoreOp[]) {
      for (const { ref, chunk } of cut)
        ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, ref.firstSeq), value: chunk.value })
      for (const { batch } of claims) ops.push(putClaim(batch))
    },
    committed() {},
  })
  return claims.map(({ batch }) => batch)
}

/** Notes by which operation the batch goes next; everything else of the claim stays. */
export async function setClaimOperation(
  committer: Committer,
  claim: Claim,
  operation: BatchOperation,
): Promise<Batch> {
  assert(operation === 'batch' || claim.batch.payloads === 1, 'the single operation takes one payload')
  assert(!claim.settling, 'a batch that is being settled changes its operation no more')
  const batch = { ...claim.batch, operation }
  claim.batch = batch
  await committer.control({
    prepare: (ops) => ops.push(putClaim(batch)),
    committed() {},
  })
  return batch
}

/** The refs of each part, and the chunks that had to be cut for them. */
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
    const pieces =
      shares.length === 1
        ? [chunk]
        : splitChunk(
            chunk,
            shares.map(({ count }) => count),
          )
    for (const [index, piece] of pieces.entries()) {
      const { count, bytes, startBytes, committedAt } = piece
      const ref = { firstSeq: seq, count, bytes, startBytes, committedAt }
      runs[shares[index]?.part ?? 0]?.push(ref)
      if (pieces.length > 1) cut.push({ ref, chunk: piece })
      seq += count
    }
  }
  return { runs, cut }
}
