// receipt-queue.ts: what a settle did, in the settle's own write, until somebody has copied it and lets it be forgotten. To the
// spool they are bytes. Numbers are given once and only grow, also over restarts in which none was left.
//
//   forgotten | on the disk | numbered
//             ^ firstN       ^ nextN          reading begins at firstN: it crosses no tombstone of what was forgotten
//
// Bound: `receiptBytesMax`. At the bound a receipt is left out and counted: they are a comfort, and a settle never waits.
// For the same reason damage to them keeps nothing from going on: what cannot be read is stepped over.

import { codeOf } from '../../std/gateway-error.ts'
import type { Store, StoreOp } from '../../storage/storage.ts'
import type { Committer } from './committer.ts'
import { laneKey, receiptKey, receiptLane, receiptNumberOf, table } from './key-layout.ts'
import { findReadable, readableAt } from './chunk-log.ts'
import { receiptRecord, receiptTotalsRecord } from './record-codec.ts'

export type NumberedReceipt = { n: number; value: Buffer }

/** Receipts in the database, those of the write that is being put together included. */
export type Receipts = {
  firstN: number
  nextN: number
  bytes: number
  /** In ascending order. */
  sizes: Map<number, number>
  /** Bytes forgotten since the disk was last given back. */
  drainedBytes: number
}

export function newReceipts(): Receipts {
  return { firstN: 0, nextN: 0, bytes: 0, sizes: new Map(), drainedBytes: 0 }
}

/** Adds a receipt to a write; false where there is no room. Only while a write is put together (committer.ts). */
export function putReceipt(
  receipts: Receipts,
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

/** Oldest first. What is damaged has no bytes: it is told apart by whoever reads it. */
export async function readReceipts(
  { firstN, nextN }: Receipts,
  store: Store,
  { limit }: { limit: number },
): Promise<readonly NumberedReceipt[]> {
  const found: NumberedReceipt[] = []
  await readOver(store, firstN, nextN, (n, value) => {
    found.push({ n, value: receiptRecord.decode(value) ?? Buffer.alloc(0) })
    return found.length < limit
  })
  return found
}

/** Forgets those up to and with `last`. */
export function forgetReceipts(receipts: Receipts, committer: Committer, last: number): Promise<void> {
  return committer.control({
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
      const { firstN, nextN } = receipts
      const value = receiptTotalsRecord.encode({ firstN, nextN })
      ops.push({ type: 'put', key: laneKey(table.totals, receiptLane), value })
    },
    committed() {},
  })
}

/** Reads what is there: seldom more than a few, at most `receiptBytesMax`. */
export async function recoverReceipts(receipts: Receipts, store: Store): Promise<void> {
  const totals = receiptTotalsRecord.decode(await store.get(laneKey(table.totals, receiptLane)))
  receipts.firstN = totals?.firstN ?? 0
  receipts.nextN = totals?.nextN ?? 0
  const isWhole = await readOver(store, receipts.firstN, Number.MAX_SAFE_INTEGER, (n, value) => {
    receipts.sizes.set(n, value.length)
    receipts.bytes += value.length
    receipts.nextN = Math.max(receipts.nextN, n + 1)
    return true
  })
  if (!isWhole) receipts.nextN += numbersSkipped
}

/** More than can be kept at a time: the newest numbers may be among what cannot be read. */
const numbersSkipped = 10_000_000

/**
 * Visits the receipts from `fromN` up to `untilN` in order, until `visit` says that it has enough; false where damage had to
 * be stepped over.
 */
async function readOver(
  store: Store,
  fromN: number,
  untilN: number,
  visit: (n: number, value: Buffer) => boolean,
): Promise<boolean> {
  let nextN = fromN
  let isWhole = true
  while (nextN < untilN) {
    try {
      for await (const page of store.pages({ gte: receiptKey(nextN), lt: receiptKey(untilN) })) {
        for (const [key, value] of page) {
          nextN = receiptNumberOf(key) + 1
          if (!visit(nextN - 1, value)) return isWhole
        }
      }
      return isWhole
    } catch (error) {
      if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
      isWhole = false
      // The page that met the damage is lost as a whole: what stands before it is read one by one.
      for (;;) {
        const value = await readableAt(store, receiptKey(nextN))
        if (value === undefined) break
        nextN += 1
        if (!visit(nextN - 1, value)) return isWhole
      }
      nextN = await findReadable((n) => firstNumberFrom(store, n, untilN), nextN, untilN)
    }
  }
  return isWhole
}

async function firstNumberFrom(store: Store, fromN: number, untilN: number): Promise<number | null> {
  const range = { gte: receiptKey(fromN), lt: receiptKey(untilN) }
  for await (const [first] of store.pages(range, { limit: 1 }))
    if (first !== undefined) return receiptNumberOf(first[0])
  return null
}
