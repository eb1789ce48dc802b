// mark-comparison.ts: compares the high-water mark with what a database holds. Pure.
//
// A lane that is missing altogether may have been deleted after it drained. So it is reported where writes
// are missing, or where mark and database have the same count of writes. Version 0.1.0 counts no writes:
// where another program opened the database since, the same count shows nothing.

import type { LaneId } from '../../domain/ids.ts'
import type { FoundMark, Mark, MarkedLane } from './high-water-mark.ts'

/** What the database holds. */
export type FoundNumbers = {
  /** Null if the store has no id, or a damaged one: then the mark counts as its own. */
  instance: string | null
  /** Null if its record is missing or damaged; where there is a mark, it was lost. */
  writes: number | null
  /** What CURRENT named before this opening; null if unknown. */
  manifest: string | null
  /** The next number of a lane; null if nothing shows that the lane exists. */
  nextSeqOf(lane: LaneId): number | null
}

export type MissingLane = { lane: MarkedLane; foundSeq: number | null; payloads: number }

export type MarkComparison =
  /** The mark says nothing about this database. */
  | { kind: 'unknown'; why: string | null }
  | { kind: 'compared'; mark: Mark; writes: number; lanes: readonly MissingLane[] }

export function compareWithMark(found: FoundMark, numbers: FoundNumbers): MarkComparison {
  if (found.kind === 'unreadable') return { kind: 'unknown', why: found.why }
  if (found.kind === 'none')
    return { kind: 'unknown', why: (numbers.writes ?? 0) > 0 ? 'the file is missing or new' : null }
  const { mark } = found
  if (numbers.instance !== null && mark.instance !== numbers.instance)
    return { kind: 'unknown', why: 'it belongs to another spool' }
  const writes = numbers.writes === null ? 0 : mark.writes - numbers.writes
  const isOwn = numbers.manifest === null || mark.manifest === '' || mark.manifest === numbers.manifest
  const mayMissLanes = numbers.writes === null || writes > 0 || (writes === 0 && isOwn)
  const lanes: MissingLane[] = []
  for (const lane of mark.lanes) {
    const foundSeq = numbers.nextSeqOf(lane.id)
    if (foundSeq === null && !mayMissLanes) continue
    // What is beyond the open ones was settled, in writes that are missing, too.
    const payloads = Math.min(lane.nextSeq - (foundSeq ?? 0), lane.open)
    if (payloads > 0 || foundSeq === null) lanes.push({ lane, foundSeq, payloads })
  }
  return { kind: 'compared', mark, writes: Math.max(0, writes), lanes }
}

/** `deleted`: it had the lane, and all of it was settled. Null: the mark says nothing about it. */
export function markedLane(mark: Mark | null, lane: LaneId): MarkedLane | 'deleted' | null {
  if (mark === null) return null
  const known = mark.lanes.find(({ id }) => id === lane)
  if (known !== undefined) return known
  return mark.lanesLeftOut === 0 && lane < mark.nextLane ? 'deleted' : null
}

export function missingPayloads(lanes: readonly MissingLane[]): number {
  return lanes.reduce((sum, { payloads }) => sum + payloads, 0)
}

/** `lane 1 of provider north: 40, lane 2 of provider south: 7`; at most ten lanes. */
export function missingText(lanes: readonly MissingLane[]): string {
  const shown = lanes.slice(0, shownMax).map(({ lane: { id, provider }, payloads }) => {
    return `lane ${id} of provider ${provider}: ${payloads}`
  })
  if (lanes.length > shownMax) shown.push(`${lanes.length - shownMax} more lanes`)
  return shown.join(', ')
}

const shownMax = 10
