// record-sums.ts: the sums of a walk over all records, and where they disagree with the totals. Pure.

import { plural } from '../../std/quantity.ts'
import type { Held } from '../../domain/held.ts'
import type { BatchId, LaneId } from '../../domain/ids.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import { emptySettled, settledPayloads } from '../chunk-log/lane.ts'
import type { FoundMark } from '../high-water-mark/high-water-mark.ts'
import { compareWithMark } from '../high-water-mark/mark-comparison.ts'
import type { LaneRecord, ShelfRecord, TotalsRecord } from '../chunk-log/record-codec.ts'

export type LaneSum = {
  record: LaneRecord | null
  totals: TotalsRecord | null
  open: number
  batches: number
  /** End of the last chunk and of the last claim. */
  endSeq: number
  /** Runs of chunks without a hole, as first and end. */
  runs: SeqRange[]
  /** Numbers that are known to be missing. */
  gaps: SeqRange[]
}

export type SeqRange = [firstSeq: number, endSeq: number]

export type ClaimSum = {
  lane: LaneId
  firstSeq: number
  endSeq: number
  payloads: number
  batchId: BatchId
  held: Held | null
}

type ShelfSum = { record: ShelfRecord | null; messages: number; named: number; byDevice: number }

export type Sums = {
  counts: Map<number, { records: number; bytes: number; damaged: number }>
  lanes: Map<LaneId, LaneSum>
  shelves: Map<ShelfName, ShelfSum>
  deadLetters: { letters: number; bytes: number }
  deadLetterTotals: { letters: number; bytes: number } | null
  state: { entries: number; bytes: number }
  stateTotals: { entries: number; bytes: number } | null
  /** By lane and first number. */
  claims: ClaimSum[]
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
    claims: [],
    writes: null,
    instance: null,
  }
}

export function laneSum({ lanes }: Sums, lane: LaneId): LaneSum {
  let sum = lanes.get(lane)
  if (sum === undefined) {
    sum = { record: null, totals: null, open: 0, batches: 0, endSeq: 0, runs: [], gaps: [] }
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

/** Only a settle writes the totals, so the last chunk may be behind them. */
export function appendedOf({ totals, endSeq }: LaneSum): number {
  return Math.max(totals?.nextSeq ?? 0, endSeq)
}

export function* disagreements(sums: Sums): Generator<string> {
  for (const { lane, firstSeq, endSeq, payloads } of sums.claims) {
    const runs = sums.lanes.get(lane)?.runs ?? []
    const covered = runs.some(([first, end]) => first <= firstSeq && endSeq <= end)
    if (!covered || payloads !== endSeq - firstSeq)
      yield `The chunks of lane ${lane} do not hold the whole batch from ${firstSeq} to ${endSeq}.`
    if (!covered) yield* missingNumbers(sums, lane, [firstSeq, endSeq])
  }
  for (const [lane, sum] of sums.lanes) {
    if (sum.record === null) yield `Lane ${lane} has no readable record of its provider and role.`
    const appended = appendedOf(sum)
    if (appended === settledOf(sum) + sum.open) continue
    yield `Lane ${lane} does not add up: ${appended} appended, ${settledOf(sum)} settled, ${sum.open} open.`
    yield* missingNumbers(sums, lane, [sealedUntil(sums, lane), appended])
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

/** No payload of the lane with a smaller number waits to be sealed. */
export function sealedUntil({ lanes, claims }: Sums, lane: LaneId): number {
  return claims.reduce(
    (sealed, claim) => (claim.lane === lane ? Math.max(sealed, claim.endSeq) : sealed),
    lanes.get(lane)?.totals?.sealSeq ?? 0,
  )
}

/** Payloads of a range that are in no chunk. A hole outside of pending and claimed ones can be settled. */
function* missingNumbers({ lanes }: Sums, lane: LaneId, [firstSeq, endSeq]: SeqRange): Generator<string> {
  const { runs = [], gaps = [] } = lanes.get(lane) ?? {}
  const known = [...runs, ...gaps].filter(([first, end]) => first < endSeq && end > firstSeq)
  let from = firstSeq
  let found = 0
  for (const [first, end] of [...known.sort(([one], [other]) => one - other), [endSeq, Infinity]] as const) {
    if (first > from) {
      found += 1
      if (found <= missingMax) yield `Lane ${lane}: payloads ${from} to ${first - 1} are missing.`
    }
    from = Math.max(from, end)
  }
  if (found > missingMax) yield `Lane ${lane}: payloads are missing in ${found - missingMax} more places.`
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
    return sum === undefined ? null : appendedOf(sum)
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
