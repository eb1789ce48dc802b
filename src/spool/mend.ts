// mend.ts: what recovery does about records that are damaged: what they said is found out from what stands around them, so
// that nothing of the lane is lost or sent under a batchId that it had with another content.

import type { BatchId, LaneId } from '../domain/ids.ts'
import type { Store, StoreOp } from '../storage/storage.ts'
import { readChunk } from './chunk.ts'
import { addClaim, putClaim } from './claim.ts'
import { seqKey, seqOf, seqRange, table } from './keys.ts'
import { tally, type Lane } from './lane.ts'
import type { SpoolState } from './state.ts'
import { countOpen } from './verify.ts'

/** Damaged totals: what is open is counted, and the rest of what was ever numbered is called unexplained. */
export async function explainTotals(state: SpoolState, lane: Lane): Promise<void> {
  const open = await countOpen(state.store, lane.id)
  tally(lane, 'unexplained', lane.nextSeq - open.payloads, lane.nextBytes - open.bytes)
  lane.sealSeq = open.firstSeq ?? lane.nextSeq
  reportUnreadable(state, lane.id, 0, 'the totals of the lane are damaged; they were counted anew')
}

/**
 * A claim whose record is damaged: its batchId is lost, and how far it went. What stands between it and the next claim, or
 * what was sealed when the lane was settled last, is claimed anew, in runs without a hole: a hole is what others
 * settled. Where neither is known it is pending again. Both send it under a new batchId, by the batch operation.
 */
export async function mendClaim(
  state: SpoolState,
  lane: Lane,
  firstSeq: number,
  nextSeq: number | null,
  repairs: StoreOp[],
): Promise<void> {
  reportUnreadable(
    state,
    lane.id,
    firstSeq,
    'the record of a batch is damaged; it goes again under a new batchId',
  )
  repairs.push({ type: 'del', key: seqKey(table.batches, lane.id, firstSeq) })
  lane.sealSeq = Math.max(lane.sealSeq, firstSeq)
  for (const run of await runsIn(state.store, lane.id, firstSeq, nextSeq ?? lane.sealSeq)) {
    const batch = addClaim(lane, run.firstSeq, {
      batchId: state.newId() as BatchId,
      endSeq: run.endSeq,
      payloads: run.endSeq - run.firstSeq,
      bytes: run.bytes,
      timestamp: state.clock.now(),
      turn: 'batch',
    })
    repairs.push(putClaim(batch))
  }
}

type SeqRun = { firstSeq: number; endSeq: number; bytes: number }

/** Chunks that follow each other without a hole. One that is damaged reaches as far as the next one. */
async function runsIn(store: Store, lane: LaneId, fromSeq: number, untilSeq: number): Promise<SeqRun[]> {
  const runs: SeqRun[] = []
  let isEndKnown = true
  for await (const page of store.pages(seqRange(table.chunks, lane, fromSeq, untilSeq))) {
    for (const [key, value] of page) {
      const firstSeq = seqOf(key)
      let run = runs[runs.length - 1]
      if (run === undefined || (isEndKnown && run.endSeq !== firstSeq)) {
        run = { firstSeq, endSeq: firstSeq, bytes: 0 }
        runs.push(run)
      }
      const chunk = readChunk(value)
      isEndKnown = chunk !== null
      run.endSeq = firstSeq + (chunk?.count ?? 1)
      run.bytes += chunk?.bytes ?? 0
    }
  }
  const last = runs[runs.length - 1]
  if (last !== undefined && !isEndKnown) last.endSeq = untilSeq
  return runs
}

export function reportUnreadable(state: SpoolState, lane: LaneId, firstSeq: number, what: string): void {
  state.emit({ kind: 'chunk_damaged', lane, firstSeq, payloads: 0, what })
}
