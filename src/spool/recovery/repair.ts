// repair.ts: rebuilds damaged records of a lane from the records around them, so that nothing of the lane is
// lost, and nothing is sent under a batchId that had other content.

import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { Store, StoreOp, StoreRange } from '../../storage/storage.ts'
import { readChunk, type Chunk, type Gap } from '../chunk-log/chunk-codec.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { addClaim, putClaim } from '../batches/claim.ts'
import { isSeqKey, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { settledPayloads, addSettled, putTotals, type Lane } from '../chunk-log/lane.ts'
import type { Batch } from '../types.ts'
import type { SpoolState } from '../session-state.ts'

/** A claim with a damaged record: its batchId and its end are lost. `mendSealed` finds what it held. */
export function dropDamagedClaim(state: SpoolState, lane: Lane, firstSeq: number): void {
  const what = 'the record of a batch is damaged; its payloads are sent again under a new batchId'
  reportUnreadable(state, lane.id, firstSeq, what)
  // If neither the totals nor a claim behind it shows that it was sealed, it is pending again.
  lane.sealSeq = Math.max(lane.sealSeq, firstSeq)
}

/**
 * Everything sealed is claimed or settled. Where the sums disagree, the record of a claim was damaged, or was
 * lost with a part of LevelDB's log. The chunks there are claimed again under new batchIds, for the batch
 * operation, in runs without a hole, since other batches settled the holes. Where more was settled than
 * sealed, the totals were recounted and are right, and the pending payloads start behind the hole.
 */
export async function repairClaims(
  state: SpoolState,
  lane: Lane,
  reported: ReadonlySet<number>,
  repairs: StoreOp[],
): Promise<void> {
  const batches = [...lane.claims.values()].map(({ batch }) => batch)
  const claimed = batches.reduce((sum, { payloads }) => sum + payloads, 0)
  const left = lane.sealSeq - (settledPayloads(lane.settled) - lane.gapPayloads) - claimed
  if (left === 0) return
  if (left < 0) {
    lane.sealSeq = await firstChunkFrom(state.store, lane)
    return
  }
  let unclaimed = left
  let fromSeq = 0
  for (const { firstSeq, endSeq } of [...batches, { firstSeq: lane.sealSeq, endSeq: lane.sealSeq }]) {
    for (const run of await runsIn(state.store, lane.id, fromSeq, firstSeq)) {
      if (!reported.has(run.firstSeq))
        reportUnreadable(
          state,
          lane.id,
          run.firstSeq,
          'a batch has no record; its payloads are sent again under a new batchId',
        )
      repairs.push(putClaim(claimRun(state, lane, run)))
      unclaimed -= run.endSeq - run.firstSeq
    }
    fromSeq = endSeq
  }
  if (unclaimed > 0) countMissing(state, lane, unclaimed, repairs)
}

/** Sealed payloads of which neither a claim nor a chunk can be read. */
function countMissing(state: SpoolState, lane: Lane, payloads: number, repairs: StoreOp[]): void {
  addSettled(lane, 'damaged', payloads)
  putTotals(lane, repairs)
  state.counters.damaged += payloads
  const what = 'payloads of a batch without a record are missing'
  state.emit({ kind: 'chunk_damaged', lane: lane.id, firstSeq: 0, payloads, what })
}

function claimRun(state: SpoolState, lane: Lane, { firstSeq, endSeq, bytes }: SeqRun): Batch {
  return addClaim(lane, firstSeq, {
    batchId: state.newId() as BatchId,
    endSeq,
    payloads: endSeq - firstSeq,
    bytes,
    timestamp: state.clock.now(),
    turn: 'batch',
  })
}

async function firstChunkFrom(store: Store, { id, sealSeq, nextSeq }: Lane): Promise<number> {
  let first: number | null = null
  const isWhole = await eachChunk(store, seqRange(table.chunks, id, sealSeq, nextSeq), (firstSeq) => {
    first = firstSeq
    return false
  })
  return first ?? (isWhole ? nextSeq : sealSeq)
}

type SeqRun = { firstSeq: number; endSeq: number; bytes: number }

/** Chunks that follow each other without a hole. A damaged chunk extends to the next one. */
async function runsIn(store: Store, lane: LaneId, fromSeq: number, untilSeq: number): Promise<SeqRun[]> {
  const runs: SeqRun[] = []
  let isEndKnown = true
  await eachChunk(store, seqRange(table.chunks, lane, fromSeq, untilSeq), (firstSeq, chunk) => {
    if (chunk?.kind === 'gap') return true
    let run = runs[runs.length - 1]
    if (run === undefined || (isEndKnown && run.endSeq !== firstSeq)) {
      run = { firstSeq, endSeq: firstSeq, bytes: 0 }
      runs.push(run)
    }
    isEndKnown = chunk !== null
    run.endSeq = firstSeq + (chunk?.count ?? 1)
    run.bytes += chunk?.bytes ?? 0
    return true
  })
  const last = runs[runs.length - 1]
  if (last !== undefined && !isEndKnown) last.endSeq = untilSeq
  return runs
}

/** Until `visit` returns false. False if a block cannot be read. */
async function eachChunk(
  store: Store,
  range: StoreRange,
  visit: (firstSeq: number, chunk: Chunk | Gap | null) => boolean,
): Promise<boolean> {
  let isWhole = true
  for await (const page of scan(store, range)) {
    if (page.kind === 'gap') {
      isWhole = false
      continue
    }
    for (const [key, value] of page.entries)
      if (isSeqKey(key) && !visit(seqOf(key), readChunk(key, value))) return true
  }
  return isWhole
}

export function reportUnreadable(state: SpoolState, lane: LaneId, firstSeq: number, what: string): void {
  state.emit({ kind: 'chunk_damaged', lane, firstSeq, payloads: 0, what })
}
