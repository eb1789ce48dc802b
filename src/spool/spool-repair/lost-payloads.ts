// lost-payloads.ts: which payloads are lost with damaged files, by lane and number, and which entries come
// back although they were settled. Reads the newest versions of everything that can be read; lane-book.ts
// says what they show. lost-kept.ts counts dead letters, kept messages and mapping state.

import type { EpochMs } from '../../std/clock.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { LevelFiles } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import {
  isLane,
  isSeqKey,
  laneKey,
  laneOf,
  seqOf,
  seqRange,
  table,
  tableRange,
  writeCountLane,
} from '../chunk-log/key-layout.ts'
import { within, type LaneChunks, type SeqRange } from '../chunk-log/lane-book.ts'
import { claimRecord, decodeWriteCount, laneRecord, totalsRecord } from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { markedLane } from '../high-water-mark/mark-comparison.ts'
import { laneBook, laneSum, newSums, type LaneSum, type Sums } from '../salvage/record-sums.ts'
import { findLostKept, type LostMessages } from './lost-kept.ts'
import { eachRecord } from './readable-keys.ts'

export type LostRange = {
  lane: LaneId
  provider: string
  firstSeq: number
  endSeq: number
  /** Fewer than the range has where it is not known which ones. */
  payloads: number
  /** Sealed batches that they belong to. */
  batchIds: readonly string[]
  /** Commit times of the payloads before and behind them; null if there are none. */
  after: EpochMs | null
  before: EpochMs | null
}

export type Losses = {
  payloads: number
  ranges: readonly LostRange[]
  rangesHidden: number
  /** Payloads and messages that come back and were settled: the repair deletes them. */
  returned: { payloads: number; messages: number; keys: readonly Buffer[] }
  /** Lanes of which the totals are lost: payloads with smaller numbers are lost, or were settled before. */
  unknown: readonly { lane: number; belowSeq: number }[]
  /** By the totals, which the next start corrects. */
  deadLetters: number
  messages: readonly LostMessages[]
  stateEntries: number
  /** By the high-water mark. */
  writes: number
  /** Keys of messages by device that are missing; the repair writes them. */
  added: readonly (readonly [key: Buffer, value: Buffer])[]
}

const rangesMax = 1000

export async function findLosses(files: LevelFiles, mark: Mark | null, signal: AbortSignal): Promise<Losses> {
  const counted = decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane)))
  const sums = await readLanes(files, mark, signal)
  // What was settled behind an old mark is not known.
  const isMarkOld = mark !== null && counted !== null && counted > mark.writes
  const ranges: (LostInLane & Pick<LostRange, 'lane' | 'provider'>)[] = []
  const unknown: { lane: number; belowSeq: number }[] = []
  const returned: SettledRange[] = []
  for (const [lane, sum] of [...sums.lanes].sort(([one], [other]) => one - other)) {
    const known = markedLane(mark, lane)
    const isDeleted = known === 'deleted' && sum.record === null
    const marked = known === 'deleted' || isMarkOld ? null : known
    const book = laneBook(sum, { marked, isDeleted, areTotalsLost: true })
    const provider = sum.record?.provider ?? (known === 'deleted' ? null : known?.provider) ?? 'unknown'
    ranges.push(...lostRanges(sum, book).map((range) => ({ lane, provider, ...range })))
    returned.push(...book.settledBefore.map((range) => ({ ...range, lane })))
    const [first] = sum.chunks.runs
    if (sum.totals === null && marked === null && !isDeleted && first !== undefined && first.firstSeq > 0)
      unknown.push({ lane, belowSeq: first.firstSeq })
  }
  const kept = await findLostKept(files, signal)
  const keys = [...(await keysIn(files, returned)), ...kept.returned.keys]
  const { deadLetters, messages, stateEntries, added } = kept
  return {
    payloads: ranges.reduce((sum, { payloads }) => sum + payloads, 0),
    ranges: ranges
      .slice(0, rangesMax)
      .map((range) => ({ ...range, ...timesAround(laneSum(sums, range.lane).chunks, range) })),
    rangesHidden: Math.max(0, ranges.length - rangesMax),
    returned: {
      payloads: returned.reduce((sum, { firstSeq, endSeq }) => sum + endSeq - firstSeq, 0),
      messages: kept.returned.messages,
      keys: keys.sort((one, other) => one.compare(other)),
    },
    unknown,
    deadLetters,
    messages,
    stateEntries,
    writes: mark === null ? 0 : Math.max(0, mark.writes - (counted ?? 0)),
    added,
  }
}

type SettledRange = SeqRange & { lane: LaneId }

/** Of every lane that a record, a chunk or the mark shows. */
async function readLanes(files: LevelFiles, mark: Mark | null, signal: AbortSignal): Promise<Sums> {
  const sums = newSums()
  for (const { id } of mark?.lanes ?? []) laneSum(sums, id)
  await eachRecord(files, tableRange(table.lanes), (key, value) => {
    const record = laneRecord.decode(value)
    if (record !== null) laneSum(sums, laneOf(key)).record = record
  })
  await eachRecord(files, tableRange(table.totals), (key, value) => {
    const totals = isLane(laneOf(key)) ? totalsRecord.decode(value) : null
    if (totals !== null) laneSum(sums, laneOf(key)).totals = totals
  })
  await eachRecord(files, tableRange(table.batches), (key, value) => {
    const record = claimRecord.decode(value)
    if (record === null) return
    const { batchId, endSeq, payloads, held = null } = record
    laneSum(sums, laneOf(key)).claims.push({ firstSeq: seqOf(key), endSeq, payloads, batchId, held })
  })
  await eachRecord(files, tableRange(table.chunks), (key, value) => {
    signal.throwIfAborted()
    if (isSeqKey(key)) laneSum(sums, laneOf(key)).chunks.add(seqOf(key), readChunk(key, value))
  })
  return sums
}

type LostInLane = Pick<LostRange, 'firstSeq' | 'endSeq' | 'payloads' | 'batchIds'>

function lostRanges({ claims }: LaneSum, book: ReturnType<typeof laneBook>): LostInLane[] {
  const { holes, sealSeq, unknown, settledAtEnd } = book
  const lost: LostInLane[] = []
  const add = ({ firstSeq, endSeq }: SeqRange, batchIds: string[], settled = 0) => {
    const payloads = endSeq - firstSeq - settled
    if (payloads > 0) lost.push({ firstSeq, endSeq, payloads, batchIds })
  }
  for (const claim of claims) for (const hole of within(holes.claimed, claim)) add(hole, [claim.batchId])
  for (const hole of holes.pending) add(hole, [], hole === holes.pending.at(-1) ? settledAtEnd : 0)
  const sealed = { firstSeq: 0, endSeq: sealSeq }
  if (unknown > 0 && sealSeq > 0) add(sealed, [], Math.max(0, sealSeq - unknown))
  return lost
}

function timesAround({ runs }: LaneChunks, { firstSeq, endSeq }: SeqRange) {
  return {
    after: runs.findLast((run) => run.endSeq <= firstSeq)?.lastAt ?? null,
    before: runs.find((run) => run.firstSeq >= endSeq)?.firstAt ?? null,
  }
}

async function keysIn(files: LevelFiles, ranges: readonly SettledRange[]): Promise<Buffer[]> {
  const keys: Buffer[] = []
  for (const { lane, firstSeq, endSeq } of ranges)
    for await (const page of files.pages(seqRange(table.chunks, lane, firstSeq, endSeq)))
      for (const [key] of page) keys.push(key)
  return keys
}
