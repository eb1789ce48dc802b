// record-sums.ts: what a walk over the records adds up to, and where it disagrees with their totals. Pure.

import type { LaneId } from '../../domain/ids.ts'
import type { ShelfName } from '../../domain/message.ts'
import { emptySettled, settledPayloads } from '../chunk-log/lane.ts'
import type { LaneRecord, ShelfRecord, TotalsRecord } from '../chunk-log/record-codec.ts'

export type LaneSum = {
  record: LaneRecord | null
  totals: TotalsRecord | null
  open: number
  batches: number
  /** End of the last chunk and of the last claim. */
  endSeq: number
  /** Runs of chunks without a hole, as first and end. */
  runs: [firstSeq: number, endSeq: number][]
}

type ShelfSum = { record: ShelfRecord | null; messages: number; named: number; byDevice: number }

export type Sums = {
  counts: Map<number, { records: number; bytes: number; damaged: number }>
  lanes: Map<LaneId, LaneSum>
  shelves: Map<ShelfName, ShelfSum>
  letters: { letters: number; bytes: number }
  letterTotals: { letters: number; bytes: number } | null
  parts: { entries: number; bytes: number }
  partTotals: { entries: number; bytes: number } | null
  claims: { lane: LaneId; firstSeq: number; endSeq: number; payloads: number }[]
  hasFormat: boolean
}

export function newSums(): Sums {
  return {
    counts: new Map(),
    lanes: new Map(),
    shelves: new Map(),
    letters: { letters: 0, bytes: 0 },
    letterTotals: null,
    parts: { entries: 0, bytes: 0 },
    partTotals: null,
    claims: [],
    hasFormat: false,
  }
}

export function laneSum({ lanes }: Sums, lane: LaneId): LaneSum {
  let sum = lanes.get(lane)
  if (sum === undefined) {
    sum = { record: null, totals: null, open: 0, batches: 0, endSeq: 0, runs: [] }
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

/** The shelf in a key: the first JSON text behind the table. */
export function shelfIn(key: Buffer): ShelfName {
  const text = key.toString('utf8', 1, key.length - 8)
  const end = /^"(?:[^"\\]|\\.)*"/.exec(text)?.[0] ?? ''
  return JSON.parse(end) as ShelfName
}

export function settledOf({ totals }: LaneSum): number {
  return settledPayloads({ ...emptySettled(), ...totals?.settled })
}

/** Totals are written with a settle only, so the last chunk may lie behind them. */
export function appendedOf({ totals, endSeq }: LaneSum): number {
  return Math.max(totals?.nextSeq ?? 0, endSeq)
}

export function* disagreements(sums: Sums): Generator<string> {
  for (const { lane, firstSeq, endSeq, payloads } of sums.claims) {
    const runs = sums.lanes.get(lane)?.runs ?? []
    const covered = runs.some(([first, end]) => first <= firstSeq && endSeq <= end)
    if (!covered || payloads !== endSeq - firstSeq)
      yield `The batch of lane ${lane} from ${firstSeq} to ${endSeq} is not whole in the chunks of its lane.`
  }
  for (const [lane, sum] of sums.lanes) {
    if (sum.record === null) yield `Lane ${lane} has no readable record of its provider and role.`
    const appended = appendedOf(sum)
    if (appended !== settledOf(sum) + sum.open)
      yield `Lane ${lane} does not add up: ${appended} appended, ${settledOf(sum)} settled, ${sum.open} open.`
  }
  yield* shelfDisagreements(sums)
  const { letters, letterTotals, parts, partTotals } = sums
  if (letters.letters !== (letterTotals?.letters ?? 0) || letters.bytes !== (letterTotals?.bytes ?? 0))
    yield `${letterTotals?.letters ?? 0} dead letters should be there and ${letters.letters} are.`
  if (parts.entries !== (partTotals?.entries ?? 0) || parts.bytes !== (partTotals?.bytes ?? 0))
    yield `${partTotals?.entries ?? 0} entries of mapping state should be there and ${parts.entries} are.`
}

function* shelfDisagreements({ shelves }: Sums): Generator<string> {
  for (const [shelf, { record, messages, named, byDevice }] of shelves) {
    if (record === null) {
      yield `The shelf ${JSON.stringify(shelf)} has no readable totals.`
      continue
    }
    const gone = record.taken + record.damaged + record.unexplained
    if (record.messages !== messages || record.nextSeq !== gone + messages)
      yield `The shelf ${JSON.stringify(shelf)} does not add up: ${record.nextSeq} kept, ${gone} gone, ${messages} there.`
    // A message that was set aside leaves its key by device behind until its device is read.
    if (byDevice < named || byDevice > named + record.damaged)
      yield `The shelf ${JSON.stringify(shelf)} has ${byDevice} keys by device for ${named} messages that name one.`
  }
}
