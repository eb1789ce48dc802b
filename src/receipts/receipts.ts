// receipts.ts: what one settle did, for the ledger: the batch, the time, the service's requestId, and what
// became of each payload. The settle's own write stores it in the spool until the ledger has copied it.
//
//   0  version (1)   1  CRC-32 of the rest (4)   5  outcomes that occur (1)   6  time of the settle (8)
//   14 lane (4)      18 bytes of the text (4)    22 bytes of the settlements (4)
//   26 text | settlements | entries
//
// The text is JSON: provider, batchId, requestId. The settlements are empty if all were delivered. Else they
// are JSON with a table of the different ones, and behind it the row of each payload (2 bytes). The entries
// are those of receipt-entries.ts; the receipt adds batchId and requestId to their filter. Little-endian.

import { crc32 } from 'node:zlib'
import { assertNever } from '../std/assert.ts'
import type { EpochMs } from '../std/clock.ts'
import { addToBloom, hashOfText } from './bloom-filter.ts'
import { decodeEntries, entriesHead, type Entries, type EntriesHead } from './receipt-entries.ts'
import type { BatchId, LaneId, ProviderName } from '../domain/ids.ts'
import type { LedgerOutcome, PayloadSettlement, Settlement } from '../domain/settlement.ts'

/** What became of a payload: `step` and `schedule` of a retry; the reason of what was not delivered. */
export type ReceiptSettlement = {
  outcome: LedgerOutcome
  schedule: string | null
  /** How often it had failed before; the first retry is step 0. */
  step: number | null
  reason: string | null
  detail: string | null
}

export type Receipt = {
  provider: ProviderName
  lane: LaneId
  batchId: BatchId
  requestId: string | null
  at: EpochMs
  entries: Entries
  settlement(index: number): ReceiptSettlement
}

/** What a query reads before the payloads. */
export type ReceiptHead = {
  at: EpochMs
  outcomes: number
  entries: EntriesHead
  /** Where the filter of the entries is in the receipt. */
  filterStart: number
}

const version = 1
const headBytes = 26
/** Bound of a text of the service; the dead letter has the whole text. */
const textLengthMax = 200
/** Different settlements of one batch. Above it details are left out, above its double reasons as well. */
const rowsMax = 256
/** Keys that a receipt adds to the filter of its entries. */
export const receiptKeys = 2

/** In the head of a receipt. */
export const outcomeBits: Record<LedgerOutcome, number> = { delivered: 1, retried: 2, dead: 4, returned: 8 }

const delivered: ReceiptSettlement = {
  outcome: 'delivered',
  schedule: null,
  step: null,
  reason: null,
  detail: null,
}

/** `entries` come from the sending thread, with room for `receiptKeys` in the filter. */
export function encodeReceipt(settled: {
  provider: ProviderName
  lane: LaneId
  batchId: BatchId
  requestId: string | null
  at: EpochMs
  entries: Uint8Array
  settlements: Settlement['payloads']
}): Buffer {
  const { provider, lane, batchId, requestId, at, entries, settlements } = settled
  const text = Buffer.from(JSON.stringify([provider, batchId, requestId]))
  const packed = settlements === 'all delivered' ? null : packSettlements(settlements)
  const packedBytes = packed?.bytes.length ?? 0
  const entriesStart = headBytes + text.length + packedBytes
  const value = Buffer.allocUnsafe(entriesStart + entries.length)
  value[0] = version
  value[5] = packed?.outcomes ?? outcomeBits.delivered
  value.writeDoubleLE(at, 6)
  value.writeUInt32LE(lane, 14)
  value.writeUInt32LE(text.length, 18)
  value.writeUInt32LE(packedBytes, 22)
  text.copy(value, headBytes)
  packed?.bytes.copy(value, headBytes + text.length)
  value.set(entries, entriesStart)
  const head = entriesHead(entries)
  if (head !== null)
    for (const key of requestId === null ? [batchId] : [batchId, requestId])
      addToBloom(value, entriesStart + head.filterStart, head.filterBytes, hashOfKey(key))
  value.writeUInt32LE(crc32(value.subarray(5)), 1)
  return value
}

/** The key of a batchId or a requestId in the filter. */
export function hashOfKey(id: string): number {
  return hashOfText(id.toLowerCase())
}

/** Null if the bytes are no receipt, or damaged. */
export function receiptHead(value: Buffer): ReceiptHead | null {
  if (!isWhole(value)) return null
  const entriesStart = entriesStartOf(value)
  const entries = entriesHead(value.subarray(entriesStart))
  if (entries === null) return null
  const filterStart = entriesStart + entries.filterStart
  return { at: value.readDoubleLE(6), outcomes: value[5] ?? 0, entries, filterStart }
}

/** Null if the bytes are no receipt, or damaged. */
export function decodeReceipt(value: Buffer): Receipt | null {
  if (!isWhole(value)) return null
  const entriesStart = entriesStartOf(value)
  const entries = decodeEntries(value.subarray(entriesStart))
  if (entries === null) return null
  const packedStart = headBytes + value.readUInt32LE(18)
  const [provider, batchId, requestId] = JSON.parse(value.toString('utf8', headBytes, packedStart)) as [
    ProviderName,
    BatchId,
    string | null,
  ]
  const settlement = unpackSettlements(value.subarray(packedStart, entriesStart))
  const lane = value.readUInt32LE(14) as LaneId
  return { provider, batchId, requestId, lane, at: value.readDoubleLE(6), entries, settlement }
}

function isWhole(value: Buffer): boolean {
  return (
    value.length >= headBytes &&
    value[0] === version &&
    crc32(value.subarray(5)) === value.readUInt32LE(1) &&
    entriesStartOf(value) <= value.length
  )
}

function entriesStartOf(value: Buffer): number {
  return headBytes + value.readUInt32LE(18) + value.readUInt32LE(22)
}

// ---- settlements

type Row = [LedgerOutcome, string | null, number | null, string | null, string | null]

function packSettlements(payloads: readonly PayloadSettlement[]): { bytes: Buffer; outcomes: number } {
  const numbers = new Map<string, number>()
  const indexes = Buffer.allocUnsafe(payloads.length * 2)
  let outcomes = 0
  for (const [index, payload] of payloads.entries()) {
    const row = rowOf(payload)
    outcomes |= outcomeBits[row[0]]
    if (numbers.size >= rowsMax) row[4] = null
    if (numbers.size >= rowsMax * 2) row[3] = null
    const name = JSON.stringify(row)
    const number = numbers.get(name) ?? numbers.size
    numbers.set(name, number)
    indexes.writeUInt16LE(number, index * 2)
  }
  const table = Buffer.from(`[${[...numbers.keys()].join()}]`)
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32LE(table.length)
  return { bytes: Buffer.concat([length, table, indexes]), outcomes }
}

function rowOf(payload: PayloadSettlement): Row {
  switch (payload.kind) {
    case 'delivered':
      return ['delivered', null, null, short(payload.note?.reason), short(payload.note?.detail)]
    case 'retry': {
      const { errorType, errorMessage } = payload.failure
      return ['retried', payload.schedule, payload.step, short(errorType), short(errorMessage)]
    }
    case 'dead':
    case 'returned':
      return [payload.kind, null, null, short(payload.reason), short(payload.detail)]
    default:
      return assertNever(payload)
  }
}

function short(text: string | undefined): string | null {
  if (text === undefined) return null
  return text.slice(0, textLengthMax).toWellFormed()
}

function unpackSettlements(bytes: Buffer): (index: number) => ReceiptSettlement {
  if (bytes.length === 0) return () => delivered
  const indexesStart = 4 + bytes.readUInt32LE(0)
  const rows = JSON.parse(bytes.toString('utf8', 4, indexesStart)) as Row[]
  return (index) => {
    const row = rows[bytes.readUInt16LE(indexesStart + index * 2)]
    if (row === undefined) return delivered
    const [outcome, schedule, step, reason, detail] = row
    return { outcome, schedule, step, reason, detail }
  }
}
