// open-count.ts: counts what is open in lanes and on shelves from the records themselves, so that
// conservation (invariant 6) is checked against something else than the sums that it is about.

import { pause } from '../../std/clock.ts'
import type { Store, StoreRange } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import type { SeqRange } from '../chunk-log/lane-book.ts'
import { isKeptKey, isSeqKey, keptRange, keptSeqOf, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { firstOpenSeq, settledPayloads, type Lane, type Walk } from '../chunk-log/lane.ts'
import type { Session, Shelf } from '../session-state.ts'

/**
 * A walk reads slices of this size and rests between them, so that the daemon continues its work. Smaller
 * slices would cost memory: LevelDB frees what it holds for an iteration late, and V8 does not see it.
 */
const sliceBytes = 8 * 1024 * 1024
const restMs = 50

/** A chunk or gap of a lane, or a kept message. `open` of its numbers are open, with these bytes. */
type Counted = { firstSeq: number; endSeq: number; open: number; bytes: number }

/** A lane or a shelf, as a walk sees it. */
export type Walkable = {
  /** Deletions during the walk adjust its count here (lane.ts, adjustWalk). */
  readonly subject: { walk: Walk | null; readonly nextSeq: number }
  /** Nothing precedes this number. */
  readonly firstSeq: number
  settled(): number
  /** By the totals; 0 where they do not count them. */
  bytes(): number
  range(fromSeq: number): StoreRange
  isKey(key: Buffer): boolean
  /** Null for a damaged record. */
  read(key: Buffer, value: Buffer): Counted | null
  /**
   * Numbers, in order, that are open also where no record can be read: a hole, which is not counted as
   * damaged yet, and no fault of the counters.
   */
  mustHold(): readonly SeqRange[]
}

export type WalkCount = {
  appended: number
  settled: number
  open: number
  /** Bytes of what is open, by the totals and as found. */
  knownBytes: number
  foundBytes: number
  /** What must be there and cannot be read: the first ones. */
  holes: readonly SeqRange[]
}

/** Each costs a write. The next start finds more. */
const holesMax = 1000

export function walkableLane(lane: Lane): Walkable {
  return {
    subject: lane,
    firstSeq: firstOpenSeq(lane),
    settled: () => settledPayloads(lane.settled),
    bytes: () => 0,
    range: (fromSeq) => seqRange(table.chunks, lane.id, fromSeq, Number.MAX_SAFE_INTEGER),
    isKey: isSeqKey,
    read: (key, value) => {
      const firstSeq = seqOf(key)
      const chunk = readChunk(key, value)
      if (chunk === null) return null
      const open = chunk.kind === 'chunk' ? chunk.count : 0
      return { firstSeq, endSeq: firstSeq + chunk.count, open, bytes: 0 }
    },
    mustHold: () => openRanges(lane),
  }
}

/** The claimed ranges and the pending one; those that follow each other as one. */
function openRanges({ claims, sealSeq, nextSeq }: Lane): SeqRange[] {
  const ranges: SeqRange[] = []
  const claimed = [...claims.values()].map(({ batch }) => batch)
  const inOrder = claimed.sort((one, other) => one.firstSeq - other.firstSeq)
  for (const { firstSeq, endSeq } of [...inOrder, { firstSeq: sealSeq, endSeq: nextSeq }]) {
    const last = ranges[ranges.length - 1]
    if (last?.endSeq === firstSeq) last.endSeq = endSeq
    else ranges.push({ firstSeq, endSeq })
  }
  return ranges
}

export function walkableShelf(shelf: Shelf): Walkable {
  return {
    subject: shelf,
    firstSeq: shelf.headSeq,
    settled: () => shelf.taken + shelf.damaged + shelf.unexplained,
    bytes: () => shelf.bytes,
    range: (fromSeq) => keptRange(shelf.name, fromSeq, Number.MAX_SAFE_INTEGER),
    isKey: isKeptKey,
    read: (key, { length: bytes }) => {
      const firstSeq = keptSeqOf(key)
      return { firstSeq, endSeq: firstSeq + 1, open: 1, bytes }
    },
    // Any message may have left.
    mustHold: () => [],
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
  const walk: Walk = {
    cursorSeq: walkable.firstSeq,
    payloads: 0,
    bytes: 0,
    addedBytes: 0,
    deleted: new Map(),
  }
  subject.walk = walk
  const holes: SeqRange[] = []
  const look = () => {
    walk.addedBytes = 0
    const slice = readSlice(store, walkable, walk.cursorSeq)
    return { appended: subject.nextSeq, mustHold: walkable.mustHold(), slice }
  }
  try {
    for (;;) {
      const read = await committer.betweenWrites(look, signal)
      if (read === null) return null
      const { appended, mustHold } = read
      const { records, untilSeq } = await read.slice
      const endSeq = Math.min(untilSeq, appended)
      const found = completed(records, { firstSeq: walk.cursorSeq, endSeq }, mustHold)
      countSlice(walk, found.records, endSeq)
      holes.push(...found.holes.slice(0, holesMax - holes.length))
      // Without await in between: nothing is deleted or numbered between the last chunk and the comparison.
      if (walk.cursorSeq >= appended) return { ...countOf(walkable, walk, appended), holes }
      if (!(await pause(clock, restMs, signal))) return null
    }
  } finally {
    subject.walk = null
  }
}

/** Adds what must be there between the records and cannot be read. */
function completed(
  records: readonly Counted[],
  { firstSeq: fromSeq, endSeq }: SeqRange,
  mustHold: readonly SeqRange[],
): { records: Counted[]; holes: SeqRange[] } {
  const complete: Counted[] = []
  const holes: SeqRange[] = []
  let seq = fromSeq
  for (const record of records) {
    // Within a gap: it could not be read when the gap was counted.
    if (record.firstSeq < seq) continue
    addMissing(record.firstSeq)
    complete.push(record)
    seq = record.endSeq
  }
  addMissing(endSeq)
  return { records: complete, holes }

  function addMissing(untilSeq: number): void {
    for (const range of untilSeq > seq ? mustHold : []) {
      const firstSeq = Math.max(seq, range.firstSeq)
      const endSeq = Math.min(untilSeq, range.endSeq)
      if (firstSeq >= endSeq) continue
      complete.push({ firstSeq, endSeq, open: endSeq - firstSeq, bytes: 0 })
      holes.push({ firstSeq, endSeq })
    }
  }
}

function countSlice(walk: Walk, records: readonly Counted[], untilSeq: number): void {
  for (const { open, bytes } of records) {
    walk.payloads += open
    walk.bytes += bytes
  }
  walk.cursorSeq = Math.max(walk.cursorSeq, untilSeq)
  for (const [firstSeq, { count, bytes }] of walk.deleted) {
    if (firstSeq >= walk.cursorSeq) continue
    walk.deleted.delete(firstSeq)
    // The chunk in the slice can be larger than the deleted one, if it was cut in between.
    if (!records.some((record) => firstSeq >= record.firstSeq && firstSeq < record.endSeq)) continue
    walk.payloads -= count
    walk.bytes -= bytes
  }
}

function countOf(
  { subject, settled, bytes }: Walkable,
  walk: Walk,
  appended: number,
): Omit<WalkCount, 'holes'> {
  let open = walk.payloads + subject.nextSeq - appended
  let foundBytes = walk.bytes + walk.addedBytes
  // Numbered, settled and deleted since the last slice started.
  for (const [firstSeq, deleted] of walk.deleted) {
    if (firstSeq < appended) continue
    open -= deleted.count
    foundBytes -= deleted.bytes
  }
  return { appended: subject.nextSeq, settled: settled(), open, knownBytes: bytes(), foundBytes }
}

/** `untilSeq`: nothing before it is left to read. */
type Slice = { records: readonly Counted[]; untilSeq: number }

async function readSlice(store: Store, walkable: Walkable, fromSeq: number): Promise<Slice> {
  const records: Counted[] = []
  let lastSeq = fromSeq
  let bytes = 0
  for await (const page of store.pages(walkable.range(fromSeq))) {
    for (const [key, value] of page) {
      bytes += value.length
      if (!walkable.isKey(key)) continue
      const record = walkable.read(key, value)
      if (record !== null) records.push(record)
      else lastSeq = seqOf(key)
    }
    // What follows the last readable record is read again: only the next one shows where it ends.
    if (bytes >= sliceBytes) return { records, untilSeq: records[records.length - 1]?.endSeq ?? lastSeq + 1 }
  }
  return { records, untilSeq: Number.POSITIVE_INFINITY }
}
