// missing-writes.ts: finds what the high-water mark knows and the database lost: its log was deleted or cut
// short, or the disk lost writes that it had confirmed.
//
// What is missing is reported and counted as damaged in its lane, so that appended = settled + open holds.
// Numbers go on from the larger of mark and database. A lane of which nothing is left is opened again with
// the provider and the role of the mark.
//
//   pending | gap: missing, counted as damaged | what comes next
//           ^ end of what was found            ^ nextSeq of the mark
//
// The gap is a record of its own (chunk-codec.ts), which sealing steps over.

import type { LaneId } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { gapRecord } from '../chunk-log/chunk-codec.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import { addSettled, newLane, putLane, putTotals, type Lane } from '../chunk-log/lane.ts'
import {
  compareWithMark,
  missingPayloads,
  missingText,
  type FoundNumbers,
  type MarkComparison,
  type MissingLane,
} from '../high-water-mark/mark-comparison.ts'
import type { SettledKind } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'

export type Compared = Extract<MarkComparison, { kind: 'compared' }>

/** Null if the mark is unknown, which is reported. The lanes must be read, and not changed yet. */
export function compareMark(state: SpoolState, found: Omit<FoundNumbers, 'nextSeqOf'>): Compared | null {
  const nextSeqOf = (id: LaneId) => state.lanes.get(id)?.nextSeq ?? null
  const comparison = compareWithMark(state.mark.found, { ...found, nextSeqOf })
  if (comparison.kind === 'compared') return comparison
  if (comparison.why !== null) state.emit({ kind: 'high_water_mark_unknown', why: comparison.why })
  return null
}

/** Opens lanes of which nothing is left, with the numbers and the roles of the mark. */
export function restoreLanes(state: SpoolState, { mark, lanes, writes }: Compared, repairs: StoreOp[]): void {
  state.nextLane = Math.max(state.nextLane, mark.nextLane)
  for (const { lane: marked, foundSeq } of lanes) {
    if (foundSeq !== null) continue
    const lane = newLane(marked.id, marked.provider, marked.role, state.clock.now())
    state.lanes.set(lane.id, lane)
    putLane(lane, repairs)
  }
  // A rotation can be among the missing writes: a provider would have two live lanes.
  if (writes === 0) return
  for (const { id, role } of mark.lanes) {
    const lane = state.lanes.get(id)
    if (lane === undefined || lane.role.kind === role.kind) continue
    lane.role = role
    putLane(lane, repairs)
  }
}

/** Counts what is missing, raises the numbers of the lanes, and reports it. The lanes must be complete. */
export function closeGaps(state: SpoolState, { mark, writes }: Compared, repairs: StoreOp[]): void {
  const missing: MissingLane[] = []
  for (const marked of mark.lanes) {
    const lane = state.lanes.get(marked.id)
    if (lane === undefined || lane.nextSeq >= marked.nextSeq) continue
    const numbers = marked.nextSeq - lane.nextSeq
    // The rest was settled, in writes that are missing, too.
    const payloads = Math.min(numbers, marked.open)
    if (payloads > 0) missing.push({ lane: marked, foundSeq: lane.nextSeq, payloads })
    addGap(lane, payloads, 'damaged', repairs)
    addGap(lane, numbers - payloads, 'unexplained', repairs)
  }
  const payloads = missingPayloads(missing)
  if (payloads === 0 && writes === 0) return
  state.counters.damaged += payloads
  state.emit({ kind: 'writes_missing', writes, payloads, lanes: missingText(missing) })
}

/**
 * Numbers `payloads` that are missing or were never given, behind the end of a lane. They count as settled of
 * this kind; null: they are counted already.
 */
export function addGap(lane: Lane, payloads: number, kind: SettledKind | null, repairs: StoreOp[]): void {
  if (payloads <= 0) return
  const firstSeq = lane.nextSeq
  raiseNumbers(lane, firstSeq + payloads)
  if (lane.sealSeq === firstSeq) {
    lane.sealSeq = lane.nextSeq
    lane.refsEnd = lane.nextSeq
  } else {
    lane.gapPayloads += payloads
    const key = seqKey(table.chunks, lane.id, firstSeq)
    repairs.push({ type: 'put', key, value: gapRecord(key, payloads, lane.nextBytes) })
  }
  if (kind !== null) addSettled(lane, kind, payloads)
  putTotals(lane, repairs)
}

export function raiseNumbers(lane: Lane, nextSeq: number): void {
  lane.nextSeq = nextSeq
  lane.committedSeq = nextSeq
  lane.appendedSeq = nextSeq
}
