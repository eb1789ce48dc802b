// record-sums.ts: the sums of a walk over all records, and where they disagree with the totals. Pure.

import { plural } from '../../std/quantity.ts'
import type { Held } from '../../domain/held.ts'
import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import {
  bookOf,
  LaneChunks,
  lengthOf,
  noTotals,
  within,
  type LaneBook,
  type LaneFacts,
  type SeqRange,
} from '../chunk-log/lane-book.ts'
import { emptySettled, settledPayloads } from '../chunk-log/lane.ts'
import type { FoundMark } from '../high-water-mark/high-water-mark.ts'
import { compareWithMark } from '../high-water-mark/mark-comparison.ts'
import type { LaneRecord, ShelfRecord, TotalsRecord } from '../chunk-log/record-codec.ts'

export type LaneSum = {
  record: LaneRecord | null
  totals: TotalsRecord | null
  /** Those that can be read, by first number. */
  claims: ClaimSum[]
  chunks: LaneChunks
}

export type ClaimSum = SeqRange & { payloads: number; batchId: BatchId; held: Held | null }

type ShelfSum = { record: ShelfRecord | null; messages: number; named: number; byDevice: number }

export type Sums = {
  counts: Map<number, { records: number; bytes: number; damaged: number }>
  lanes: Map<LaneId, LaneSum>
  shelves: Map<ShelfName, ShelfSum>
  deadLetters: { letters: number; bytes: number }
  deadLetterTotals: { letters: number; bytes: number } | null
  state: { entries: number; bytes: number }
  stateTotals: { entries: number; bytes: number } | null
  /** The count of writes; null if there is none. */
  writes: number | null
  /** Id of the store; null without a readable format record. */
  instance: string | null
}

export function newSums(): Sums {
  return {
    counts: new Map(),
    lanes: new Map(),
    shelves: new Map(),
    deadLetters: { letters: 0, bytes: 0 },
    deadLetterTotals: null,
    state: { entries: 0, bytes: 0 },
    stateTotals: null,
    writes: null,
    instance: null,
  }
}

export function laneSum({ lanes }: Sums, lane: LaneId): LaneSum {
  let sum = lanes.get(lane)
  if (sum === undefined) {
    sum = { record: null, totals: null, claims: [], chunks: new LaneChunks() }
    lanes.set(lane, sum)
  }
  return sum
}

export function shelfSum({ shelves }: Sums, shelf: ShelfName): ShelfSum {
  let sum = shelves.get(shelf)
  if (sum === undefined) {
    sum = { record: null, messages: 0, named: 0, byDevice: 0 }
    shelves.set(shelf, sum)
  }
  return sum
}

export function settledOf({ totals }: LaneSum): number {
  return settledPayloads({ ...emptySettled(), ...totals?.settled })
}

type Known = Pick<LaneFacts, 'marked' | 'isDeleted'> & {
  /** A lane without totals has lost them. Otherwise nothing of it was settled yet. */
  areTotalsLost: boolean
}

/** `marked`: by the mark of this database. */
export function laneBook(
  sum: LaneSum,
  { marked = null, isDeleted = false, areTotalsLost = false }: Partial<Known> = {},
): LaneBook {
  const { claims, chunks } = sum
  const { gapPayloads = 0, ...numbers } = sum.totals ?? noTotals
  const isLost = sum.totals === null && areTotalsLost
  const totals = isLost ? null : { ...numbers, gapPayloads, settled: settledOf(sum) }
  const claimsEnd = claims.at(-1)?.endSeq ?? 0
  return bookOf({ chunks, totals, claims, claimsEnd, marked, isDeleted })
}

export function* disagreements(sums: Sums): Generator<string> {
  for (const [lane, sum] of sums.lanes) {
    const book = laneBook(sum)
    for (const { firstSeq, endSeq, payloads } of sum.claims) {
      const holes = within(book.holes.claimed, { firstSeq, endSeq })
      if (holes.length > 0 || payloads !== endSeq - firstSeq)
        yield `The chunks of lane ${lane} do not hold the whole batch from ${firstSeq} to ${endSeq}.`
      yield* missingNumbers(lane, holes)
    }
  }
  for (const [lane, sum] of sums.lanes) {
    if (sum.record === null) yield `Lane ${lane} has no readable record of its provider and role.`
    const { nextSeq, holes, settledBefore } = laneBook(sum)
    const open = sum.chunks.payloads
    if (nextSeq === settledOf(sum) + open) continue
    yield `Lane ${lane} does not add up: ${nextSeq} appended, ${settledOf(sum)} settled, ${open} open.`
    yield* missingNumbers(lane, holes.pending)
    const back = lengthOf(settledBefore)
    if (back > 0) yield `Lane ${lane}: ${plural(back, 'payload')} were settled before and are there again.`
  }
  yield* shelfDisagreements(sums)
  const { deadLetters, deadLetterTotals, state, stateTotals } = sums
  const { letters, bytes } = deadLetterTotals ?? { letters: 0, bytes: 0 }
  if (deadLetters.letters !== letters || deadLetters.bytes !== bytes)
    yield `The totals count ${plural(letters, 'dead letter')}; the spool holds ${deadLetters.letters}.`
  const known = stateTotals ?? { entries: 0, bytes: 0 }
  if (state.entries !== known.entries || state.bytes !== known.bytes)
    yield `The totals count ${known.entries} entries of mapping state; the spool holds ${state.entries}.`
}

function* missingNumbers(lane: LaneId, holes: readonly SeqRange[]): Generator<string> {
  for (const { firstSeq, endSeq } of holes.slice(0, missingMax))
    yield `Lane ${lane}: payloads ${firstSeq} to ${endSeq - 1} are missing.`
  if (holes.length > missingMax)
    yield `Lane ${lane}: payloads are missing in ${holes.length - missingMax} more places.`
}

/** Places of a lane that are named one by one. */
const missingMax = 20

/** The high-water mark, and what CURRENT named, before the database was opened for the check. */
export type MarkBefore = { found: FoundMark; manifest: string | null }

/** Where the high-water mark counts more than the database holds. */
export function* missingByMark(sums: Sums, { found, manifest }: MarkBefore): Generator<string> {
  const { instance, writes, lanes } = sums
  const nextSeqOf = (lane: LaneId) => {
    const sum = lanes.get(lane)
    return sum === undefined ? null : laneBook(sum).nextSeq
  }
  const comparison = compareWithMark(found, { instance, writes, manifest, nextSeqOf })
  if (comparison.kind === 'unknown') return
  if (comparison.writes > 0)
    yield `${plural(comparison.writes, 'write')} ${verbOf(comparison.writes)} missing by the high-water mark.`
  for (const { lane, payloads } of comparison.lanes.filter((missing) => missing.payloads > 0))
    yield `Lane ${lane.id} of provider ${lane.provider}: ${plural(payloads, 'payload')} ${verbOf(payloads)} missing by the high-water mark.`
}

function* shelfDisagreements({ shelves }: Sums): Generator<string> {
  for (const [shelf, { record, messages, named, byDevice }] of shelves) {
    const name = JSON.stringify(shelf)
    if (record === null) {
      yield `The shelf ${name} has no readable totals.`
      continue
    }
    const gone = record.taken + record.damaged + record.unexplained
    if (record.messages !== messages || record.nextSeq !== gone + messages)
      yield `The shelf ${name} does not add up: ${record.nextSeq} kept, ${gone} gone, ${messages} present.`
    // A message that was set aside leaves its key by device until its device is read.
    // A damaged message leaves its keys behind.
    if (byDevice < named || (byDevice > named && record.damaged === 0))
      yield `The shelf ${name} has ${byDevice} keys by device for ${named} devices that its messages name.`
  }
}

function verbOf(count: number): string {
  return count === 1 ? 'is' : 'are'
}
