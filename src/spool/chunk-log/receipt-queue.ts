// receipt-queue.ts: the receipts of settles, each in the settle's own write, until the ledger has copied them
// and lets them be forgotten. To the spool they are bytes. Numbers are assigned once and only grow, also over
// restarts.
//
//   forgotten | on the disk | numbered
//             ^ firstN       ^ nextN          reading starts at firstN, so it crosses no tombstone
//
// Bound: `receiptBytesMax`. At the bound a receipt is left out and counted: receipts must never delay a
// settle. For the same reason damage to them stops nothing. What cannot be read is skipped.
//
// Receipts of this session stay in memory as well, up to `receiptMemoryBytesMax`, so that the ledger usually
// gets them without a read. Where one is not there, they are read from the disk, and counted.

import type { Store, StoreOp } from '../../storage/storage.ts'
import type { NumberedReceipt } from '../return-calls.ts'
import type { WritePart } from './committer.ts'
import { scan } from './damage-scan.ts'
import { laneKey, numberOf, receiptKey, receiptTotalsLane, table } from './key-layout.ts'
import { receiptRecord, receiptTotalsRecord } from './record-codec.ts'

/** Receipts in the database, including those of the write that is being put together. */
export type ReceiptQueue = {
  firstN: number
  nextN: number
  bytes: number
  /** In ascending order. */
  sizes: Map<number, number>
  /** Receipts with lower numbers are durable. */
  durableN: number
  /** Those in memory, and their bytes. */
  inMemory: Map<number, Buffer>
  bytesInMemory: number
  /** Bytes forgotten since the last compaction. */
  drainedBytes: number
}

export function newReceiptQueue(): ReceiptQueue {
  const memory = { inMemory: new Map<number, Buffer>(), bytesInMemory: 0 }
  return { firstN: 0, nextN: 0, durableN: 0, bytes: 0, sizes: new Map(), ...memory, drainedBytes: 0 }
}

/** Adds a receipt to a write; false without room. Only while a write is put together (committer.ts). */
export function putReceipt(
  receipts: ReceiptQueue,
  receipt: Buffer,
  { receiptBytesMax, receiptMemoryBytesMax }: { receiptBytesMax: number; receiptMemoryBytesMax: number },
  ops: StoreOp[],
): boolean {
  const value = receiptRecord.encode(receipt)
  if (receipts.bytes + value.length > receiptBytesMax) return false
  const n = receipts.nextN
  receipts.nextN += 1
  receipts.bytes += value.length
  receipts.sizes.set(n, value.length)
  ops.push({ type: 'put', key: receiptKey(n), value })
  if (receipts.bytesInMemory + receipt.length <= receiptMemoryBytesMax) {
    receipts.inMemory.set(n, receipt)
    receipts.bytesInMemory += receipt.length
  }
  return true
}

/** The write of the last putReceipt() is durable. */
export function receiptsCommitted(receipts: ReceiptQueue): void {
  receipts.durableN = receipts.nextN
}

/** Oldest first; only what is durable. A damaged receipt has no bytes. */
export async function readReceipts(
  receipts: ReceiptQueue,
  store: Store,
  { limit, counters }: { limit: number; counters: { receiptsReread: number } },
): Promise<readonly NumberedReceipt[]> {
  const found = oldestInMemory(receipts, limit)
  if (found !== null) return found
  const read: NumberedReceipt[] = []
  const { firstN, nextN } = receipts
  for await (const page of scan(store, { gte: receiptKey(firstN), lt: receiptKey(nextN) })) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      const n = numberOf(key)
      if (!receipts.inMemory.has(n)) counters.receiptsReread += 1
      read.push({ n, value: receiptRecord.decode(value) ?? Buffer.alloc(0) })
      if (read.length === limit) return read
    }
  }
  return read
}

/** Null where one of them is only on the disk. */
function oldestInMemory(
  { sizes, inMemory, durableN }: ReceiptQueue,
  limit: number,
): NumberedReceipt[] | null {
  const found: NumberedReceipt[] = []
  for (const n of sizes.keys()) {
    if (n >= durableN || found.length === limit) break
    const value = inMemory.get(n)
    if (value === undefined) return null
    found.push({ n, value })
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
        receipts.bytesInMemory -= receipts.inMemory.get(n)?.length ?? 0
        receipts.inMemory.delete(n)
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
