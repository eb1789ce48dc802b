// compact.ts: gives the disk of what was delivered back. LevelDB keeps deleted data until a compaction comes
// by, and crosses its tombstones when it looks for the first key of a range.
//
// One compaction runs at a time, in LevelDB's own thread; writes go on. A lane is considered after each
// settle: when enough was drained since the last time, or when it ran empty.

import type { StoreRange } from '../storage/storage.ts'
import { seenKey, seqRange, table, tableRange } from './keys.ts'
import { firstOpenSeq, type Lane } from './lane.ts'
import type { SpoolState } from './state.ts'

const drainedBytesMax = 64 * 1024 * 1024
const drainedBytesWhenEmpty = 1024 * 1024
const forgottenRecordsMax = 2000

export type Compactor = {
  consider(lane: Lane): void
  considerSeen(): void
  /** Resolves when no compaction runs. */
  idle(): Promise<void>
}

export function createCompactor(deps: { state: SpoolState; failed: (error: unknown) => void }): Compactor {
  const { state } = deps
  let running: Promise<void> | null = null

  function consider(lane: Lane): void {
    if (running !== null) return
    const empty = lane.claims.size === 0 && lane.sealSeq === lane.nextSeq
    if (lane.drainedBytes < (empty ? drainedBytesWhenEmpty : drainedBytesMax)) return
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
      })
  }

  async function compactAll(ranges: readonly StoreRange[]): Promise<void> {
    for (const range of ranges) await state.store.compact(range)
  }

  return { consider, considerSeen, idle: () => running ?? Promise.resolve() }
}
