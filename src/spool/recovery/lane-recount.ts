// lane-recount.ts: reads the chunks of a lane where its totals are lost, or do not agree with its claims.
// lane-book.ts decides what they show.
//
// Totals that are lost are made anew. What is not open counts as unexplained, since nothing is left that
// could tell. Where nothing of the record is left and the mark does not help, it counts as damaged: what held
// the record is gone, and may have held payloads.

import { plural } from '../../std/quantity.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { Store } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { isSeqKey, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { bookOf, LaneChunks, lengthOf, type LaneFacts, type SeqRange } from '../chunk-log/lane-book.ts'
import { addSettled, type Lane } from '../chunk-log/lane.ts'
import type { SpoolState } from '../session-state.ts'

/** `missing`: nothing is left of the record. */
export type LostTotals = 'damaged' | 'missing'

/** Those before `untilSeq`. What is in a block that cannot be read is missing in them. */
export async function chunksOf(
  store: Store,
  lane: LaneId,
  untilSeq = Number.MAX_SAFE_INTEGER,
): Promise<LaneChunks> {
  const chunks = new LaneChunks()
  for await (const page of scan(store, seqRange(table.chunks, lane, 0, untilSeq)))
    if (page.kind === 'entries')
      for (const [key, value] of page.entries)
        if (isSeqKey(key)) chunks.add(seqOf(key), readChunk(key, value))
  return chunks
}

export type Recount = {
  /** So many numbers at the end were settled in lost writes. */
  settledAtEnd: number
  /** Damaged chunks where nothing is open, beyond those that are missing elsewhere. */
  strays: number
}

/** Makes the totals of a lane anew. */
export async function recountLane(
  state: SpoolState,
  lane: Lane,
  { lost, ...shown }: Pick<LaneFacts, 'claims' | 'claimsEnd' | 'marked'> & { lost: LostTotals },
): Promise<Recount> {
  const chunks = await chunksOf(state.store, lane.id)
  const book = bookOf({ ...shown, chunks, totals: null, isDeleted: false })
  lane.nextSeq = Math.max(lane.nextSeq, book.nextSeq)
  lane.sealSeq = book.sealSeq
  lane.gapPayloads = book.gapPayloads
  // They were counted when they were found.
  addSettled(lane, 'damaged', book.gapPayloads)
  const gone = book.nextSeq - book.open - book.gapPayloads
  const isKnown = shown.marked !== null
  const damaged = lost === 'missing' && !isKnown ? gone : 0
  addSettled(lane, damaged > 0 ? 'damaged' : 'unexplained', gone)
  state.counters.damaged += damaged
  const unclear =
    isKnown || gone === 0 ? '' : `; which of ${plural(gone, 'payload')} were settled before is not known`
  const what = `the totals of the lane are ${lost}; they were recounted${unclear}`
  state.emit({ kind: 'chunk_damaged', lane: lane.id, firstSeq: 0, payloads: damaged, what })
  const { claimed, pending } = book.holes
  const strays = chunks.bad.filter((seq) => seq < book.sealSeq && !isIn(shown.claims, seq))
  const missing = lengthOf([...claimed, ...pending]) + book.unknown
  return { settledAtEnd: book.settledAtEnd, strays: Math.max(0, strays.length - missing) }
}

function isIn(ranges: readonly SeqRange[], seq: number): boolean {
  return ranges.some(({ firstSeq, endSeq }) => firstSeq <= seq && seq < endSeq)
}
