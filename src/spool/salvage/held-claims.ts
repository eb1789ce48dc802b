// held-claims.ts: which payloads belong to a held batch. The service may have processed them, so a salvage
// keeps them apart from those that are pending.

import type { HeldReason } from '../../domain/held.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { Store } from '../../storage/storage.ts'
import { scan, type ScanOptions } from '../chunk-log/damage-scan.ts'
import { laneOf, seqOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { claimRecord } from '../chunk-log/record-codec.ts'

export type HeldBatch = { batchId: BatchId; reason: HeldReason; requestId: string | null }

/** Null for a chunk that belongs to no held batch. A claim covers whole chunks. */
export type HeldClaims = (lane: number, firstSeq: number) => HeldBatch | null

type Range = { firstSeq: number; endSeq: number; held: HeldBatch }

/** Damaged claims are left out: their batchId is lost. */
export async function readHeldClaims(store: Store, options: ScanOptions): Promise<HeldClaims> {
  /** Ascending in each lane, as the keys are. */
  const ranges = new Map<number, Range[]>()
  for await (const page of scan(store, tableRange(table.batches), options)) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      const record = claimRecord.decode(value)
      if (!record?.held) continue
      const { batchId, endSeq, held } = record
      const { reason, requestId } = held
      const inLane = ranges.get(laneOf(key)) ?? []
      ranges.set(laneOf(key), inLane)
      inLane.push({ firstSeq: seqOf(key), endSeq, held: { batchId, reason, requestId } })
    }
  }
  return (lane, seq) => {
    const inLane = ranges.get(lane) ?? []
    const range = inLane[lastNotAfter(inLane, seq)]
    return range !== undefined && seq < range.endSeq ? range.held : null
  }
}

/** The index of the last range that starts at `seq` or before it; -1 if none does. */
function lastNotAfter(ranges: readonly Range[], seq: number): number {
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle]?.firstSeq ?? 0) <= seq) low = middle + 1
    else high = middle
  }
  return low - 1
}
