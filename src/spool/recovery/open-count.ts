// open-count.ts: counts what is open by walking over it, so that conservation (invariant 6) is checked against
// the records themselves and not against the sums that it is about.

import { pause, type Clock } from '../../std/clock.ts'
import type { Store, StoreRange } from '../../storage/storage.ts'
import type { LaneId } from '../../domain/ids.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { keptRange, keptSeqOf, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { firstOpenSeq, settledPayloads, type Lane, type Walk } from '../chunk-log/lane.ts'
import type { Shelf } from '../kept/message-shelf.ts'

export type OpenCount = { payloads: number; bytes: number; firstSeq: number | null }

/** Counts the payloads of a lane that stand in the database. */
export async function countOpen(
  store: Store,
  lane: LaneId,
  range: { fromSeq: number; untilSeq: number } = { fromSeq: 0, untilSeq: Number.MAX_SAFE_INTEGER },
): Promise<OpenCount> {
  const count: OpenCount = { payloads: 0, bytes: 0, firstSeq: null }
  for await (const page of store.pages(seqRange(table.chunks, lane, range.fromSeq, range.untilSeq))) {
    for (const [key, value] of page) {
      count.firstSeq ??= seqOf(key)
      const chunk = readChunk(value)
      count.payloads += chunk?.count ?? 0
      count.bytes += chunk?.bytes ?? 0
    }
  }
  return count
}

/**
 * A walk reads slices of so many bytes and rests between them, so that the daemon gets on with its work. Smaller ones
 * would cost memory: what LevelDB holds for an iteration is given back late, and V8 does not see it.
 */
const sliceBytes = 8 * 1024 * 1024
const restMs = 50

/** A record as a slice shows it: a chunk of a lane, or a kept message of a shelf. */
type Shown = { firstSeq: number; count: number }

/** What is walked over: a lane, or a shelf. */
export type Walked = {
  /** Where the walk can be seen by those who delete (noteGone). */
  readonly subject: { walk: Walk | null; readonly nextSeq: number }
  /** Nothing stands before this number. */
  readonly firstSeq: number
  settled(): number
  range(fromSeq: number): StoreRange
  show(key: Buffer, value: Buffer): Shown
}

export type WalkCount = { appended: number; settled: number; open: number }

export type WalkDeps = {
  store: Store
  clock: Clock
  signal: AbortSignal
  /** Calls back when no write runs: then the database holds all that was numbered. */
  quiet: (look: () => void) => void
}

export function walkedLane(lane: Lane): Walked {
  return {
    subject: lane,
    firstSeq: firstOpenSeq(lane),
    settled: () => settledPayloads(lane.settled),
    range: (fromSeq) => seqRange(table.chunks, lane.id, fromSeq, Number.MAX_SAFE_INTEGER),
    show: (key, value) => ({ firstSeq: seqOf(key), count: readChunk(value)?.count ?? 0 }),
  }
}

export function walkedShelf(shelf: Shelf): Walked {
  return {
    subject: shelf,
    firstSeq: shelf.headSeq,
    settled: () => shelf.taken + shelf.damaged + shelf.unexplained,
    range: (fromSeq) => keptRange(shelf.name, fromSeq, Number.MAX_SAFE_INTEGER),
    show: (key) => ({ firstSeq: keptSeqOf(key), count: 1 }),
  }
}

/**
 * Counts what is open of a lane or shelf at leisure, while it goes on being filled and drained; null when `signal`
 * ended the walk. Each slice is read anew: one long iteration would make LevelDB keep, for its sake, all that is
 * deleted meanwhile. What is deleted behind the walk is taken off again (lane.ts, noteGone).
 */
export async function walk(deps: WalkDeps, walked: Walked): Promise<WalkCount | null> {
  const { subject } = walked
  const walk: Walk = { cursorSeq: walked.firstSeq, payloads: 0, deleted: new Map() }
  subject.walk = walk
  try {
    for (;;) {
      const read = await quietly(deps, () => ({
        appended: subject.nextSeq,
        slice: readSlice(deps.store, walked, walk.cursorSeq),
      }))
      if (read === null) return null
      const slice = await read.slice
      countSlice(walk, slice)
      // All of it in one turn: nothing is deleted or numbered between the last chunk and the comparison.
      if (slice.length === 0 || walk.cursorSeq >= read.appended) return countOf(walked, walk, read.appended)
      if (!(await pause(deps.clock, restMs, deps.signal))) return null
    }
  } finally {
    subject.walk = null
  }
}

/** Calls `look` in a moment when no write runs, with what it returns; null when `signal` ended the wait. */
export function quietly<Seen>({ signal, quiet }: WalkDeps, look: () => Seen): Promise<Seen | null> {
  return new Promise((resolve) => {
    quiet(() => resolve(signal.aborted ? null : look()))
    if (signal.aborted) resolve(null)
    signal.addEventListener('abort', () => resolve(null), { once: true })
  })
}

function countSlice(walk: Walk, chunks: readonly Shown[]): void {
  for (const { firstSeq, count } of chunks) {
    walk.payloads += count
    walk.cursorSeq = firstSeq + Math.max(1, count)
  }
  for (const [firstSeq, count] of walk.deleted) {
    if (firstSeq >= walk.cursorSeq) continue
    walk.deleted.delete(firstSeq)
    // A cut may have come between, so the chunk that the slice shows can be larger than the one that was deleted.
    const shown = chunks.some(
      (chunk) => firstSeq >= chunk.firstSeq && firstSeq < chunk.firstSeq + chunk.count,
    )
    if (shown) walk.payloads -= count
  }
}

function countOf({ subject, settled }: Walked, walk: Walk, appended: number): WalkCount {
  let open = walk.payloads + subject.nextSeq - appended
  // Numbered, settled and deleted since the last slice was begun.
  for (const [firstSeq, count] of walk.deleted) if (firstSeq >= appended) open -= count
  return { appended: subject.nextSeq, settled: settled(), open }
}

async function readSlice(store: Store, walked: Walked, fromSeq: number): Promise<readonly Shown[]> {
  const slice: Shown[] = []
  let bytes = 0
  for await (const page of store.pages(walked.range(fromSeq))) {
    for (const [key, value] of page) {
      slice.push(walked.show(key, value))
      bytes += value.length
    }
    if (bytes >= sliceBytes) break
  }
  return slice
}
