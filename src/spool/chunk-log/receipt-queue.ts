// receipt-queue.ts: the receipts of settles, each in the settle's own write, until the ledger has copied them
// and lets them be forgotten. To the spool they are bytes. Numbers are assigned once and only grow, also over
// restarts.
//
//   forgotten | on the disk | numbered
//             ^ firstN       ^ nextN          reading starts at firstN, so it crosses no tombstone
//
// Bound: `receiptBytesMax`. At the bound a receipt is left out and counted: receipts must never delay a
// settle. For the same reason damage to them stops nothing. What cannot be read is skipped.

import type { Store, StoreOp } from '../../storage/storage.ts'
import type { WritePart } from './committer.ts'
import { scan } from './damage-scan.ts'
import { laneKey, numberOf, receiptKey, receiptTotalsLane, table } from './key-layout.ts'
import { receiptRecord, receiptTotalsRecord } from './record-codec.ts'
import type { NumberedReceipt } from '../types.ts'

/** Receipts in the database, including those of the write that is being put together. */
export type ReceiptQueue = {
  firstN: number
  nextN: number
  bytes: number
  /** In ascending order. */
  sizes: Map<number, number>
  /** Bytes forgotten since the last compaction. */
  drainedBytes: number
}

export function newReceiptQueue(): ReceiptQueue {
  return { firstN: 0, nextN: 0, bytes: 0, sizes: new Map(), drainedBytes: 0 }
}

/** Adds a receipt to a write; false without room. Only while a write is put together (committer.ts). */
export function putReceipt(
  receipts: ReceiptQueue,
  receipt: Buffer,
  { receiptBytesMax }: { receiptBytesMax: number },
  ops: StoreOp[],
): boolean {
  const value = receiptRecord.encode(receipt)
  if (receipts.bytes + value.length > receiptBytesMax) return false
  const n = receipts.nextN
  receipts.nextN += 1
  receipts.bytes += value.length
  receipts.sizes.set(n, value.length)
  ops.push({ type: 'put', key: receiptKey(n), value })
  return true
}

/** Oldest first. A damaged receipt has no bytes. */
export async function readReceipts(
  { firstN, nextN }: ReceiptQueue,
  store: Store,
  { limit }: { limit: number },
): Promise<readonly NumberedReceipt[]> {
  const found: NumberedReceipt[] = []
  for await (const page of scan(store, { gte: receiptKey(firstN), lt: receiptKey(nextN) })) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      found.push({ n: numberOf(key), value: receiptRecord.decode(value) ?? Buffer.alloc(0) })
      if (found.length === limit) return found
    }
  }
  return found
}

/** Forgets the receipts up to and including `last`. */
export function forgetting(receipts: ReceiptQueue, last: number): WritePart {
  return {
    prepare(ops) {
      if (last < receipts.firstN) return
      for (const [n, bytes] of receipts.sizes) {
        if (n > last) break
        ops.push({ type: 'del', key: receiptKey(n) })
        receipts.sizes.delete(n)
        receipts.bytes -= bytes
        receipts.drainedBytes += bytes
      }
      receipts.firstN = Math.min(last + 1, receipts.nextN)
      putReceiptTotals(receipts, ops)
    },
  }
}

export function putReceiptTotals({ firstN, nextN }: ReceiptQueue, ops: StoreOp[]): void {
  const value = receiptTotalsRecord.encode({ firstN, nextN })
  ops.push({ type: 'put', key: laneKey(table.totals, receiptTotalsLane), value })
}
