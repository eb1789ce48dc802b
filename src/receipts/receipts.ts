// receipts.ts: what one settle did, for the ledger: which batch, when, the service's requestId, and what became of each
// payload. The spool keeps it in the settle's own write until the ledger has copied it.
//
//   0  version (1)   1  CRC-32 of the rest (4)   5  outcomes that occur (1)   6  time of the settle (8)
//   14 lane (4)      18 bytes of the head's text (4)      22 bytes of the fates (4)      26 text | fates | entries
//
// The text is JSON: provider, batchId, requestId. The fates are empty where all were delivered, else JSON with a table
// of different fates and, behind it, which of them each payload has (2). The entries are those of receipt-entries.ts, whose set
// learns the batchId and the requestId as well. Little-endian.

import { crc32 } from 'node:zlib'
import { assertNever } from '../std/assert.ts'
import type { EpochMs } from '../std/clock.ts'
import { addToBloom, hashOfText } from './bloom-filter.ts'
import { decodeEntries, entriesHead, type Entries, type EntriesHead } from './receipt-entries.ts'
import type { BatchId, LaneId, ProviderName } from '../domain/ids.ts'
import type { PayloadSettlement, Settlement } from '../domain/settlement.ts'

export type LedgerOutcome = 'delivered' | 'retried' | 'dead'

/** A fate as the ledger keeps it: `step` and `schedule` of a retry; why, of a retry or a death. */
export type ReceiptSettlement = {
  outcome: LedgerOutcome
  schedule: string | null
  /** How often it had failed before, so that the first retry is step 0. */
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

/** What a query looks at before it reads the payloads. */
export type ReceiptHead = {
  at: EpochMs
  outcomes: number
  entries: EntriesHead
  /** Where the set of the entries is in the receipt. */
  setStart: number
}

const version = 1
const headBytes = 26
/** A foreign text; what is longer is in the dead letter. */
const textLengthMax = 200
/** Different fates of one batch; beyond, their details are left out, and at the double their reasons. */
const fatesMax = 256
/** Keys that a receipt adds to the set of its entries. */
export const receiptKeys = 2

/** As they are noted in the head. */
export const outcomeBits: Record<LedgerOutcome, number> = { delivered: 1, retried: 2, dead: 4 }

const delivered: ReceiptSettlement = {
  outcome: 'delivered',
  schedule: null,
  step: null,
  reason: null,
  detail: null,
}

/** `entries` as the sending thread made them, with room in the set for `receiptKeys`. */
export function encodeReceipt(settled: {
  provider: ProviderName
  lane: LaneId
  batchId: BatchId
  requestId: string | null
  at: EpochMs
  entries: Uint8Array
  settlements: Settlement['payloads']
}): Buffer {
  const { provider, lane, batchId, requestId, at, entries, settlements: fates } = settled
  const text = Buffer.from(JSON.stringify([provider, batchId, requestId]))
  const packed = fates === 'all delivered' ? null : packFates(fates)
  const fatesLength = packed?.bytes.length ?? 0
  const entriesStart = headBytes + text.length + fatesLength
  const value = Buffer.allocUnsafe(entriesStart + entries.length)
  value[0] = version
  value[5] = packed?.outcomes ?? outcomeBits.delivered
  value.writeDoubleLE(at, 6)
  value.writeUInt32LE(lane, 14)
  value.writeUInt32LE(text.length, 18)
  value.writeUInt32LE(fatesLength, 22)
  text.copy(value, headBytes)
  packed?.bytes.copy(value, headBytes + text.length)
  value.set(entries, entriesStart)
  const head = entriesHead(entries)
  if (head !== null)
    for (const key of requestId === null ? [batchId] : [batchId, requestId])
      addToBloom(value, entriesStart + head.setStart, head.setBytes, hashOfKey(key))
  value.writeUInt32LE(crc32(value.subarray(5)), 1)
  return value
}

/** The hash by which a batchId or a requestId is in the set. */
export function hashOfKey(id: string): number {
  return hashOfText(id.toLowerCase())
}

/** Null where the bytes are no receipt, or damaged. */
export function receiptHead(value: Buffer): ReceiptHead | null {
  if (!isWhole(value)) return null
  const entriesStart = entriesStartOf(value)
  const entries = entriesHead(value.subarray(entriesStart))
  if (entries === null) return null
  const setStart = entriesStart + entries.setStart
  return { at: value.readDoubleLE(6), outcomes: value[5] ?? 0, entries, setStart }
}

/** Null where the bytes are no receipt, or damaged. */
export function decodeReceipt(value: Buffer): Receipt | null {
  if (!isWhole(value)) return null
  const entriesStart = entriesStartOf(value)
  const entries = decodeEntries(value.subarray(entriesStart))
  if (entries === null) return null
  const fatesStart = headBytes + value.readUInt32LE(18)
  const [provider, batchId, requestId] = JSON.parse(value.toString('utf8', headBytes, fatesStart)) as [
    ProviderName,
    BatchId,
    string | null,
  ]
  const fate = unpackFates(value.subarray(fatesStart, entriesStart))
  const lane = value.readUInt32LE(14) as LaneId
  return { provider, batchId, requestId, lane, at: value.readDoubleLE(6), entries, settlement: fate }
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

// ---- fates

type Row = [LedgerOutcome, string | null, number | null, string | null, string | null]

function packFates(fates: readonly PayloadSettlement[]): { bytes: Buffer; outcomes: number } {
  const numbers = new Map<string, number>()
  const indexes = Buffer.allocUnsafe(fates.length * 2)
  let outcomes = 0
  for (const [index, fate] of fates.entries()) {
    const row = rowOf(fate)
    outcomes |= outcomeBits[row[0]]
    if (numbers.size >= fatesMax) row[4] = null
    if (numbers.size >= fatesMax * 2) row[3] = null
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

function rowOf(fate: PayloadSettlement): Row {
  switch (fate.kind) {
    case 'delivered':
      return ['delivered', null, null, null, null]
    case 'retry': {
      const { errorType, errorMessage } = fate.failure
      return ['retried', fate.schedule, fate.step, short(errorType), short(errorMessage)]
    }
    case 'dead':
      return ['dead', null, null, short(fate.reason), short(fate.detail)]
    default:
      return assertNever(fate)
  }
}

function short(text: string): string {
  return text.slice(0, textLengthMax).toWellFormed()
}

function unpackFates(bytes: Buffer): (index: number) => ReceiptSettlement {
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
