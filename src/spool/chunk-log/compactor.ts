// compactor.ts: gives the disk of what was delivered back. LevelDB keeps deleted data until a compaction comes
// by, and crosses its tombstones when it looks for the first key of a range.
//
// One compaction runs at a time, in LevelDB's own thread; writes go on. A lane is considered after each
// settle, shelves and dead letters after each exchange, receipts when some were forgotten: when enough was drained since the
// last time, or when one ran empty.

import type { StoreRange } from '../../storage/storage.ts'
import { byDeviceRange, keptRange, receiptKey, seenKey, seqRange, table, tableRange } from './key-layout.ts'
import { firstOpenSeq, type Lane } from './lane.ts'
import type { Shelf } from '../kept/message-shelf.ts'
import type { SpoolState } from '../session-state.ts'

const drainedBytesMax = 64 * 1024 * 1024
const drainedBytesWhenEmpty = 1024 * 1024
const forgottenRecordsMax = 2000
/** Receipts come and go all the time, and each compaction writes out what LevelDB has in memory. */
const receiptBytesWhenEmpty = 4 * 1024 * 1024

function enough(empty: boolean): number {
  return empty ? drainedBytesWhenEmpty : drainedBytesMax
}

export type Compactor = {
  consider(lane: Lane): void
  considerSeen(): void
  considerReceipts(): void
  /** After an exchange: kept messages or dead letters have left. */
  considerTaken(): void
  /** Resolves when no compaction runs. */
  idle(): Promise<void>
}

export function createCompactor(deps: { state: SpoolState; failed: (error: unknown) => void }): Compactor {
  const { state } = deps
  let running: Promise<void> | null = null

  function consider(lane: Lane): void {
    if (running !== null) return
    const empty = lane.claims.size === 0 && lane.sealSeq === lane.nextSeq
    if (lane.drainedBytes < enough(empty)) return
    const untilSeq = firstOpenSeq(lane)
    const fromSeq = lane.compactedSeq
    lane.drainedBytes = 0
    lane.compactedSeq = untilSeq
    const ranges = [seqRange(table.chunks, lane.id, fromSeq, untilSeq)]
    if (empty) ranges.push(tableRange(table.batches))
    run(lane, ranges)
  }

  function considerSeen(): void {
    if (running !== null || state.forgotten.records < forgottenRecordsMax) return
    state.forgotten.records = 0
    run(null, [{ gte: seenKey(0), lt: seenKey(state.forgotten.last + 1) }])
  }

  function considerReceipts(): void {
    const { receipts } = state
    const bytesMin = receipts.sizes.size === 0 ? receiptBytesWhenEmpty : drainedBytesMax
    if (running !== null || receipts.drainedBytes < bytesMin) return
    receipts.drainedBytes = 0
    run(null, [{ gte: receiptKey(0), lt: receiptKey(receipts.firstN) }])
  }

  function considerTaken(): void {
    for (const shelf of state.shelves.values()) if (running === null) considerShelf(shelf)
    const { letters, lettersDrainedBytes } = state
    if (running !== null || lettersDrainedBytes < enough(letters.letters === 0)) return
    state.lettersDrainedBytes = 0
    run(null, [tableRange(table.deadLetters)])
  }

  function considerShelf(shelf: Shelf): void {
    if (shelf.drainedBytes < enough(shelf.messages === 0)) return
    const { name, compactedSeq, headSeq } = shelf
    shelf.drainedBytes = 0
    shelf.compactedSeq = headSeq
    // The head stays behind where one message is kept long: then the whole shelf is gone over.
    const untilSeq = headSeq > compactedSeq ? headSeq : Number.MAX_SAFE_INTEGER
    run(null, [keptRange(name, compactedSeq, untilSeq), byDeviceRange(name)])
  }

  function run(lane: Lane | null, ranges: readonly StoreRange[]): void {
    const startedAtMs = state.clock.monotonic()
    running = compactAll(ranges)
      .then(
        () => {
          if (lane === null) return
          state.emit({
            kind: 'spool_compacted',
            lane: lane.id,
            tookMs: state.clock.monotonic() - startedAtMs,
          })
        },
        (error: unknown) => deps.failed(error),
      )
      .finally(() => {
        running = null
        // What drained meanwhile, the end of a drain above all.
        for (const other of state.lanes.values()) consider(other)
        considerTaken()
      })
  }

  async function compactAll(ranges: readonly StoreRange[]): Promise<void> {
    for (const range of ranges) await state.store.compact(range)
  }

  return { consider, considerSeen, considerReceipts, considerTaken, idle: () => running ?? Promise.resolve() }
}
