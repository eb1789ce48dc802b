// repair.ts: rebuilds damaged records of a lane from the records around them, so that nothing of the lane is
// lost, and nothing is sent under a batchId that had other content.

import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { addClaim, putClaim } from '../batches/claim.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { readOne, scan } from '../chunk-log/damage-scan.ts'
import { isSeqKey, seqKey, seqRange, table } from '../chunk-log/key-layout.ts'
import { bookOf, lengthOf, type SeqRange } from '../chunk-log/lane-book.ts'
import { settledPayloads, addSettled, putTotals, type Lane } from '../chunk-log/lane.ts'
import type { SpoolState } from '../session-state.ts'
import { chunksOf } from './lane-recount.ts'

/** A claim with a damaged record: its batchId and its end are lost. `repairClaims` finds what it held. */
export function dropDamagedClaim(state: SpoolState, lane: Lane, firstSeq: number): void {
  const what = 'the record of a batch is damaged; its payloads are sent again under a new batchId'
  reportUnreadable(state, lane.id, firstSeq, what)
  // If neither the totals nor a claim behind it shows that it was sealed, it is pending again.
  lane.sealSeq = Math.max(lane.sealSeq, firstSeq)
}

/**
 * Everything sealed is claimed or settled. Where the sums disagree, the record of a claim was damaged, or was
 * lost with a part of LevelDB's log. Its chunks are claimed again under new batchIds, for the batch
 * operation, in runs without a hole, since other batches settled the holes.
 */
export async function repairClaims(
  state: SpoolState,
  lane: Lane,
  reported: ReadonlySet<number>,
  repairs: StoreOp[],
): Promise<void> {
  const { id, nextSeq, sealSeq, gapPayloads } = lane
  const claims = [...lane.claims.values()].map(({ batch }) => batch)
  claims.sort((one, other) => one.firstSeq - other.firstSeq)
  const settled = settledPayloads(lane.settled)
  const owed = sealSeq - (settled - gapPayloads) - lane.claimed.payloads
  if (owed === 0) return
  const chunks = await chunksOf(state.store, id, owed > 0 ? sealSeq : undefined)
  const totals = { nextSeq, sealSeq, settled, gapPayloads }
  const book = bookOf({ chunks, totals, claims, claimsEnd: sealSeq, marked: null, isDeleted: false })
  lane.sealSeq = book.sealSeq
  for (const run of book.unclaimed) {
    const what = 'a batch has no record; its payloads are sent again under a new batchId'
    if (!reported.has(run.firstSeq)) reportUnreadable(state, id, run.firstSeq, what)
    await claimRun(state, lane, run, repairs)
  }
  // Some of them were settled, and nothing shows which: they are open again.
  const returned = lengthOf(book.unclaimed) - owed
  if (owed > 0 && returned > 0) {
    addSettled(lane, 'unexplained', -returned)
    putTotals(lane, repairs)
  }
  if (book.unknown === 0) return
  for (const firstSeq of chunks.bad)
    if (!claims.some((claim) => claim.firstSeq <= firstSeq && firstSeq < claim.endSeq))
      await setBadAside(state, id, firstSeq, repairs)
  countMissing(state, lane, book.unknown, repairs)
}

/** Sealed payloads of which neither a claim nor a chunk can be read. */
function countMissing(state: SpoolState, lane: Lane, payloads: number, repairs: StoreOp[]): void {
  addSettled(lane, 'damaged', payloads)
  putTotals(lane, repairs)
  state.counters.damaged += payloads
  const what = 'payloads of a batch without a record are missing'
  state.emit({ kind: 'chunk_damaged', lane: lane.id, firstSeq: 0, payloads, what })
}

async function claimRun(
  state: SpoolState,
  lane: Lane,
  { firstSeq, endSeq }: SeqRange,
  repairs: StoreOp[],
): Promise<void> {
  let bytes = 0
  for await (const page of scan(state.store, seqRange(table.chunks, lane.id, firstSeq, endSeq)))
    if (page.kind === 'entries')
      for (const [key, value] of page.entries) if (isSeqKey(key)) bytes += readChunk(key, value)?.bytes ?? 0
  const batch = addClaim(lane, firstSeq, {
    batchId: state.newId() as BatchId,
    endSeq,
    payloads: endSeq - firstSeq,
    bytes,
    timestamp: state.clock.now(),
    turn: 'batch',
  })
  repairs.push(putClaim(batch))
}

/** Keeps a chunk that cannot be read as one that was damaged. */
export async function setBadAside(
  { store }: SpoolState,
  lane: LaneId,
  firstSeq: number,
  repairs: StoreOp[],
): Promise<Buffer> {
  const { value = Buffer.alloc(0) } = await readOne(store, seqKey(table.chunks, lane, firstSeq))
  repairs.push({ type: 'put', key: seqKey(table.damaged, lane, firstSeq), value })
  repairs.push({ type: 'del', key: seqKey(table.chunks, lane, firstSeq) })
  return value
}

export function reportUnreadable(state: SpoolState, lane: LaneId, firstSeq: number, what: string): void {
  state.emit({ kind: 'chunk_damaged', lane, firstSeq, payloads: 0, what })
}
