// compactor.ts: frees the disk space of what was deleted. LevelDB keeps deleted data until a compaction, and
// crosses its tombstones when it looks for the first key of a range.
//
// One compaction runs at a time, in LevelDB's own thread; writes continue. Lanes are considered after each
// settle, shelves and dead letters after each exchange, receipts and window keys after some were forgotten. A
// compaction starts when enough was deleted since the last one, or when a lane, a shelf or a table became
// empty; and at once where intake waits for the disk space of what was deleted.

import type { StoreRange } from '../../storage/storage.ts'
import {
  byDeviceRange,
  keptRange,
  receiptKey,
  seqRange,
  table,
  tableRange,
  windowRecordKey,
} from './key-layout.ts'
import { firstOpenSeq, type Lane } from './lane.ts'
import type { Compactor, Shelf, SpoolState } from '../session-state.ts'

const drainedBytesMax = 64 * 1024 * 1024
const drainedBytesWhenEmpty = 1024 * 1024
/** Between two compactions of little, so that a full spool that is drained does not write all the time. */
const freeDiskEveryMs = 10_000
const expiredRecordsMax = 2000
/** Receipts come and go all the time, and each compaction writes out the memory of LevelDB. */
const receiptBytesWhenEmpty = 4 * 1024 * 1024

function enough(empty: boolean): number {
  return empty ? drainedBytesWhenEmpty : drainedBytesMax
}

/** `failed` is called with the error of a compaction. */
export function createCompactor(state: SpoolState, failed: (error: unknown) => void): Compactor {
  let running: Promise<void> | null = null
  let freedAtMs = -Infinity

  function afterSettle(lane: Lane): void {
    if (running !== null) return
    const empty = lane.claims.size === 0 && lane.sealSeq === lane.nextSeq
    if (lane.drainedBytes < enough(empty)) return
    const ranges = [drainedOf(lane)]
    if (empty) ranges.push(tableRange(table.batches))
    run(lane, ranges)
  }

  function drainedOf(lane: Lane): StoreRange {
    const untilSeq = firstOpenSeq(lane)
    const fromSeq = lane.compactedSeq
    lane.drainedBytes = 0
    lane.compactedSeq = untilSeq
    return seqRange(table.chunks, lane.id, fromSeq, untilSeq)
  }

  function afterExpiry(): void {
    if (running === null && state.expired.records >= expiredRecordsMax) run(null, [expiredRecords()])
  }

  function expiredRecords(): StoreRange {
    state.expired.records = 0
    return { gte: windowRecordKey(0), lt: windowRecordKey(state.expired.last + 1) }
  }

  function afterForgottenReceipts(): void {
    const { receipts } = state
    const bytesMin = receipts.sizes.size === 0 ? receiptBytesWhenEmpty : drainedBytesMax
    if (running === null && receipts.drainedBytes >= bytesMin) run(null, [forgottenReceipts()])
  }

  function forgottenReceipts(): StoreRange {
    state.receipts.drainedBytes = 0
    return { gte: receiptKey(0), lt: receiptKey(state.receipts.firstN) }
  }

  function afterExchange(): void {
    for (const shelf of state.shelves.values())
      if (running === null && shelf.drainedBytes >= enough(shelf.messages === 0)) run(null, takenFrom(shelf))
    const { deadLetters } = state
    if (running === null && deadLetters.drainedBytes >= enough(deadLetters.count === 0))
      run(null, [removedDeadLetters()])
  }

  function removedDeadLetters(): StoreRange {
    state.deadLetters.drainedBytes = 0
    return tableRange(table.deadLetters)
  }

  function takenFrom(shelf: Shelf): StoreRange[] {
    const { name, compactedSeq, headSeq } = shelf
    shelf.drainedBytes = 0
    shelf.compactedSeq = headSeq
    // The head does not move while one message is kept long: then the whole shelf is compacted.
    const untilSeq = headSeq > compactedSeq ? headSeq : Number.MAX_SAFE_INTEGER
    return [keptRange(name, compactedSeq, untilSeq), byDeviceRange(name)]
  }

  function freeDisk(): void {
    const now = state.clock.monotonic()
    if (running !== null || now - freedAtMs < freeDiskEveryMs) return
    const { lanes, shelves, deadLetters, expired, receipts } = state
    const ranges: StoreRange[] = []
    for (const lane of lanes.values()) if (lane.drainedBytes > 0) ranges.push(drainedOf(lane))
    for (const shelf of shelves.values()) if (shelf.drainedBytes > 0) ranges.push(...takenFrom(shelf))
    if (deadLetters.drainedBytes > 0) ranges.push(removedDeadLetters())
    if (expired.records > 0) ranges.push(expiredRecords())
    if (receipts.drainedBytes > 0) ranges.push(forgottenReceipts())
    if (ranges.length === 0) return
    freedAtMs = now
    run(null, [...ranges, tableRange(table.batches)])
  }

  function run(lane: Lane | null, ranges: readonly StoreRange[]): void {
    const startedAtMs = state.clock.monotonic()
    running = compactAll(ranges)
      .then(() => {
        if (lane === null) return
        state.emit({
          kind: 'spool_compacted',
          lane: lane.id,
          tookMs: state.clock.monotonic() - startedAtMs,
        })
      }, failed)
      .finally(() => {
        running = null
        // What drained meanwhile, above all the end of a drain.
        for (const other of state.lanes.values()) afterSettle(other)
        afterExchange()
      })
  }

  async function compactAll(ranges: readonly StoreRange[]): Promise<void> {
    for (const range of ranges) await state.store.compact(range)
  }

  return {
    afterSettle,
    afterExpiry,
    afterForgottenReceipts,
    afterExchange,
    freeDisk,
    idle: () => running ?? Promise.resolve(),
  }
}
