// record-keys.ts: the key layout of the ledger's records.
//
//   01              format        version
//   10 number 00    index block   describes the receipts from this number on, some hundred (receipt-index.ts)
//   10 number 01    receipt       as the spool had it (receipts/receipts.ts)
//   20, 21          devices and clients of device-records/, which the ledger does not read
//   22              samples of ops/history, likewise
//
// The number has 8 bytes, big-endian, and only grows. Index blocks lie between their receipts and not in a
// table of their own: all new keys are behind all old ones, so LevelDB never merges old tables with new.

import type { StoreRange } from '../storage/storage.ts'

const table = 0x10
const uint32 = 2 ** 32
const kinds = { indexBlock: 0, receipt: 1 } as const

export const formatKey = Buffer.from([0x01])

export const indexBlockKey = (number: number) => keyOf(number, kinds.indexBlock)
export const receiptKey = (number: number) => keyOf(number, kinds.receipt)

function keyOf(number: number, kind: number): Buffer {
  const key = Buffer.allocUnsafe(10)
  key[0] = table
  key.writeUInt32BE(Math.floor(number / uint32), 1)
  key.writeUInt32BE(number % uint32, 5)
  key[9] = kind
  return key
}

export function isIndexBlock(key: Buffer): boolean {
  return key[9] === kinds.indexBlock
}

/** Index blocks and receipts from one number up to but not including another. */
export function numberRange(from: number, until: number): StoreRange {
  return { gte: indexBlockKey(from), lt: indexBlockKey(until) }
}

export const everything: StoreRange = { gte: Buffer.from([table]), lt: Buffer.from([table + 1]) }
