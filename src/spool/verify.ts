// verify.ts: counts what is open by walking over it, so that conservation (invariant 6) is checked against
// the chunks themselves and not against the sums that it is about.

import { pause, type Clock } from '../std/clock.ts'
import type { Store } from '../storage/storage.ts'
import type { LaneId } from '../domain/ids.ts'
import { readChunk } from './chunk.ts'
import { seqOf, seqRange, table } from './keys.ts'
import { firstOpenSeq, settledPayloads, type Lane, type Walk } from './lane.ts'

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

/** A chunk as a slice shows it. */
type Shown = { firstSeq: number; count: number }

export type LaneCount = { appended: number; settled: number; open: number }

type WalkDeps = {
  store: Store
  clock: Clock
  signal: AbortSignal
  /** Calls back when no write runs: then the database holds all that was numbered. */
  quiet: (look: () => void) => void
}

/**
 * Counts the payloads of a lane at leisure, while it goes on being filled and drained; null when `signal` ended the
 * walk. Each slice is read anew: one long iteration would make LevelDB keep, for its sake, all that is deleted
 * meanwhile. What is deleted behind the walk is taken off again (lane.ts, noteDeleted).
 */
export async function walkLane(deps: WalkDeps, lane: Lane): Promise<LaneCount | null> {
  const walk: Walk = { cursorSeq: firstOpenSeq(lane), payloads: 0, deleted: new Map() }
  lane.walk = walk
  try {
    for (;;) {
      const read = await readQuietly(deps, lane, walk.cursorSeq)
      if (read === null) return null
      countSlice(walk, read.slice)
      // All of it in one turn: nothing is deleted or numbered between the last chunk and the comparison.
      if (read.slice.length === 0 || walk.cursorSeq >= read.appended)
        return countOf(lane, walk, read.appended)
      if (!(await pause(deps.clock, restMs, deps.signal))) return null
    }
  } finally {
    lane.walk = null
  }
}

/** `appended` is the lane's next number at the moment that the slice shows. */
function readQuietly(
  { store, signal, quiet }: WalkDeps,
  lane: Lane,
  fromSeq: number,
): Promise<{ slice: readonly Shown[]; appended: number } | null> {
  return new Promise((resolve, reject) => {
    quiet(() => {
      const appended = lane.nextSeq
      readSlice(store, lane.id, fromSeq).then((slice) => resolve({ slice, appended }), reject)
    })
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

function countOf(lane: Lane, walk: Walk, appended: number): LaneCount {
  let open = walk.payloads + lane.nextSeq - appended
  // Numbered, settled and deleted since the last slice was begun.
  for (const [firstSeq, count] of walk.deleted) if (firstSeq >= appended) open -= count
  return { appended: lane.nextSeq, settled: settledPayloads(lane.settled), open }
}

async function readSlice(store: Store, lane: LaneId, fromSeq: number): Promise<readonly Shown[]> {
  const slice: Shown[] = []
  let bytes = 0
  for await (const page of store.pages(seqRange(table.chunks, lane, fromSeq, Number.MAX_SAFE_INTEGER))) {
    for (const [key, value] of page) {
      slice.push({ firstSeq: seqOf(key), count: readChunk(value)?.count ?? 0 })
      bytes += value.length
    }
    if (bytes >= sliceBytes) break
  }
  return slice
}
