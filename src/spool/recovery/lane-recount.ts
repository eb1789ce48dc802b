// lane-recount.ts: makes the totals of a lane anew where their record is lost.
//
//   with the mark      it says how many were open. What is not found of them is still to be found damaged
//   without the mark   what no claim and no chunk shows, up to the first pending chunk, was settled or is
//                      missing: nothing is left that could tell. Where the record is missing, what held it is
//                      gone and may have held payloads, so they count as damaged; else as unexplained
//
//   settled or missing | claimed, holes included | settled or missing | pending, holes included
//                                                claimsEnd            ^ sealSeq               ^ nextSeq

import { plural } from '../../std/quantity.ts'
import { addSettled, type Lane } from '../chunk-log/lane.ts'
import type { MarkedLane } from '../high-water-mark/high-water-mark.ts'
import type { SpoolState } from '../session-state.ts'
import { countOpen, type SeqRange } from './open-count.ts'

/** `missing`: nothing is left of the record. */
export type LostTotals = 'damaged' | 'missing'

export type Shown = {
  totals: LostTotals
  marked: MarkedLane | undefined
  /** Readable claims. */
  claims: readonly SeqRange[]
  /** End of the last claim, damaged ones included. */
  claimsEnd: number
}

/** The numbers of the lane must be known. Returns how many open payloads were found. */
export async function recountLane(state: SpoolState, lane: Lane, shown: Shown): Promise<number> {
  const { totals, marked, claims, claimsEnd } = shown
  const open = await countOpen(state.store, lane.id, { claims, claimsEnd })
  lane.gapPayloads = open.gapPayloads
  if (marked !== undefined) {
    lane.nextSeq = Math.max(lane.nextSeq, marked.nextSeq)
    const payloads = Math.min(lane.nextSeq, Math.max(open.payloads, marked.open))
    addSettled(lane, 'unexplained', lane.nextSeq - payloads)
    lane.sealSeq = open.firstSeq ?? lane.nextSeq
    report(state, lane, { totals, gone: 0, damaged: 0 })
    return open.payloads
  }
  lane.sealSeq = open.pendingSeq ?? Math.max(claimsEnd, lane.nextSeq)
  const claimed = claims.reduce((sum, { firstSeq, endSeq }) => sum + endSeq - firstSeq, 0)
  const gone = Math.max(0, lane.sealSeq - claimed - open.unclaimed)
  const damaged = totals === 'missing' ? gone : 0
  addSettled(lane, totals === 'missing' ? 'damaged' : 'unexplained', gone)
  // They were counted when they were found.
  addSettled(lane, 'damaged', open.gapPayloads)
  state.counters.damaged += damaged
  report(state, lane, { totals, gone, damaged })
  return open.payloads
}

function report(
  { emit }: SpoolState,
  { id: lane }: Lane,
  { totals, gone, damaged: payloads }: { totals: LostTotals; gone: number; damaged: number },
): void {
  const unclear = gone === 0 ? '' : `; which of ${plural(gone, 'payload')} were settled before is not known`
  const what = `the totals of the lane are ${totals}; they were recounted${unclear}`
  emit({ kind: 'chunk_damaged', lane, firstSeq: 0, payloads, what })
}
