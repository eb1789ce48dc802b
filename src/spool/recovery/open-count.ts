// open-count.ts: counts what is open in lanes and on shelves from the records themselves, so that
// conservation (invariant 6) is checked against something else than the sums that it is about.

import { pause } from '../../std/clock.ts'
import type { Store, StoreRange } from '../../storage/storage.ts'
import type { LaneId } from '../../domain/ids.ts'
import { readChunk, readGap } from '../chunk-log/chunk-codec.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { isKeptKey, isSeqKey, keptRange, keptSeqOf, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { firstOpenSeq, settledPayloads, type Lane, type Walk } from '../chunk-log/lane.ts'
import type { Session, Shelf } from '../session-state.ts'

export type OpenCount = { payloads: number; bytes: number; firstSeq: number | null; gapPayloads: number }

/** Counts the payloads of a lane in the database. */
export async function countOpen(store: Store, lane: LaneId): Promise<OpenCount> {
  const count: OpenCount = { payloads: 0, bytes: 0, firstSeq: null, gapPayloads: 0 }
  for await (const page of scan(store, seqRange(table.chunks, lane, 0, Number.MAX_SAFE_INTEGER))) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      if (!isSeqKey(key)) continue
      count.firstSeq ??= seqOf(key)
      const chunk = readChunk(value)
      count.payloads += chunk?.count ?? 0
      count.bytes += chunk?.bytes ?? 0
      if (chunk === null) count.gapPayloads += readGap(value)?.count ?? 0
    }
  }
  return count
}

/**
 * A walk reads slices of this size and rests between them, so that the daemon continues its work. Smaller
 * slices would cost memory: LevelDB frees what it holds for an iteration late, and V8 does not see it.
 */
const sliceBytes = 8 * 1024 * 1024
const restMs = 50

/** A chunk of a lane, or a kept message of a shelf. Null: damaged, so it extends to the next one. */
type Counted = { firstSeq: number; count: number | null }

/** A lane or a shelf, as a walk sees it. */
export type Walkable = {
  /** Deletions during the walk adjust its count here (lane.ts, adjustWalk). */
  readonly subject: { walk: Walk | null; readonly nextSeq: number }
  /** Nothing precedes this number. */
  readonly firstSeq: number
  settled(): number
  range(fromSeq: number): StoreRange
  isKey(key: Buffer): boolean
  read(key: Buffer, value: Buffer): Counted
}

export type WalkCount = { appended: number; settled: number; open: number }

export function walkableLane(lane: Lane): Walkable {
  return {
    subject: lane,
    firstSeq: firstOpenSeq(lane),
    settled: () => settledPayloads(lane.settled),
    range: (fromSeq) => seqRange(table.chunks, lane.id, fromSeq, Number.MAX_SAFE_INTEGER),
    isKey: isSeqKey,
    read: (key, value) => {
      const gap = readGap(value)
      return { firstSeq: seqOf(key), count: gap === null ? (readChunk(value)?.count ?? null) : 0 }
    },
  }
}

export function walkableShelf(shelf: Shelf): Walkable {
  return {
    subject: shelf,
    firstSeq: shelf.headSeq,
    settled: () => shelf.taken + shelf.damaged + shelf.unexplained,
    range: (fromSeq) => keptRange(shelf.name, fromSeq, Number.MAX_SAFE_INTEGER),
    isKey: isKeptKey,
    read: (key) => ({ firstSeq: keptSeqOf(key), count: 1 }),
  }
}

/**
 * Counts what is open in a lane or shelf in the background, while it is filled and drained; null if `signal`
 * ended the walk. Each slice is a read of its own: one long iteration would make LevelDB keep everything that
 * is deleted meanwhile. What is deleted behind the walk is subtracted again (lane.ts, adjustWalk).
 */
export async function countByWalk(
  { store, clock, committer }: Session,
  walkable: Walkable,
  signal: AbortSignal,
): Promise<WalkCount | null> {
  const { subject } = walkable
  const walk: Walk = { cursorSeq: walkable.firstSeq, payloads: 0, deleted: new Map() }
  subject.walk = walk
  try {
    for (;;) {
      const read = await committer.betweenWrites(
        () => ({ appended: subject.nextSeq, slice: readSlice(store, walkable, walk.cursorSeq) }),
        signal,
      )
      if (read === null) return null
      const slice = completed(await read.slice, read.appended)
      countSlice(walk, slice)
      // Without await in between: nothing is deleted or numbered between the last chunk and the comparison.
      if (slice.length === 0 || walk.cursorSeq >= read.appended) return countOf(walkable, walk, read.appended)
      if (!(await pause(clock, restMs, signal))) return null
    }
  } finally {
    subject.walk = null
  }
}

type Complete = { firstSeq: number; count: number }

/** A damaged chunk is open until it is set aside. The next slice starts with one at the end of this one. */
function completed(records: readonly Counted[], appended: number): Complete[] {
  const last = records.length - 1
  const isCut = last > 0 && records[last]?.count === null
  return records.slice(0, isCut ? last : last + 1).map(({ firstSeq, count }, index) => {
    const endSeq = records[index + 1]?.firstSeq ?? appended
    return { firstSeq, count: count ?? Math.max(0, endSeq - firstSeq) }
  })
}

function countSlice(walk: Walk, records: readonly Complete[]): void {
  for (const { firstSeq, count } of records) {
    walk.payloads += count
    walk.cursorSeq = firstSeq + Math.max(1, count)
  }
  for (const [firstSeq, count] of walk.deleted) {
    if (firstSeq >= walk.cursorSeq) continue
    walk.deleted.delete(firstSeq)
    // The chunk in the slice can be larger than the deleted one, if it was cut in between.
    const isInSlice = records.some(
      (record) => firstSeq >= record.firstSeq && firstSeq < record.firstSeq + record.count,
    )
    if (isInSlice) walk.payloads -= count
  }
}

function countOf({ subject, settled }: Walkable, walk: Walk, appended: number): WalkCount {
  let open = walk.payloads + subject.nextSeq - appended
  // Numbered, settled and deleted since the last slice started.
  for (const [firstSeq, count] of walk.deleted) if (firstSeq >= appended) open -= count
  return { appended: subject.nextSeq, settled: settled(), open }
}

async function readSlice(store: Store, walkable: Walkable, fromSeq: number): Promise<readonly Counted[]> {
  const slice: Counted[] = []
  let bytes = 0
  for await (const page of store.pages(walkable.range(fromSeq))) {
    for (const [key, value] of page) {
      if (walkable.isKey(key)) slice.push(walkable.read(key, value))
      bytes += value.length
    }
    if (bytes >= sliceBytes) break
  }
  return slice
}
