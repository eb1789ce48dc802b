// record-codec.ts: the bytes of the small records of the spool. Each has a version and a CRC of its own.
//
//   0 version (1)   1 CRC-32 of the rest (4)   5 body
//
// The body is JSON, with these exceptions: window keys (version 2) are a float64 time and the last 8 bytes
// of each key; a state entry, a session record and a receipt are the bytes that the mapping, ingest and
// delivery gave; a journal record is a float64 time and the bytes of its entries; a kept message by device
// is a float64 time, the count of writes a float64.

import { crc32 } from 'node:zlib'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { DeadLetter, DeadLetterStore } from '../../domain/dead-letter.ts'
import type { Held } from '../../domain/held.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { BatchOperation } from '../types.ts'
import type { LaneRole } from '../views.ts'

const recordVersion = 1
const windowKeysVersion = 2
const headBytes = 5

/**
 * Raised when an older gateway can no longer read the spool. 2: the checksum of a chunk covers its key.
 * 3: the payloads of a chunk are compressed. To an older reader such a chunk is damaged.
 */
export const formatVersion = 3

export type FormatRecord = { version: number; createdAt: EpochMs; instance: string }

export type LaneRecord = { provider: ProviderName; role: LaneRole; openedAt: EpochMs }

/**
 * `turn` is the operation of the next submission; the name is part of the format. `held` is missing in the
 * claim of a batch that is not held. Version 0.1.0 ignores it.
 */
export type ClaimRecord = {
  batchId: BatchId
  endSeq: number
  payloads: number
  bytes: number
  timestamp: EpochMs
  turn: BatchOperation
  held?: Held
  /** Lane and first number, as in the key. Earlier builds do not note it. */
  at?: readonly [lane: number, firstSeq: number]
}

/** `requeued` counts the returned payloads; the name is part of the format, and version 0.1.0 reads it. */
export const settledKinds = ['delivered', 'retried', 'dead', 'requeued', 'damaged', 'unexplained'] as const

export type SettledKind = (typeof settledKinds)[number]

export type PayloadSum = { payloads: number; bytes: number }

export type TotalsRecord = {
  nextSeq: number
  nextBytes: number
  /** First number that no batch claimed when this was written. */
  sealSeq: number
  settled: Record<SettledKind, PayloadSum>
  /** Settled numbers from sealSeq on: a gap that is settled as damaged. Missing if there are none. */
  gapPayloads?: number
  /** A copy of the record of the lane, in case that is lost. Missing in records of version 0.1.0. */
  provider?: ProviderName
  role?: LaneRole
}

/** `bytesIn` is missing in records of version 0.1.0. */
export type DeadLetterTotalsRecord = {
  letters: number
  bytes: number
  bytesIn?: Record<DeadLetterStore, number>
}

/** `nextSeq` is the next number to assign, which is also how many messages were ever kept. */
export type ShelfRecord = {
  nextSeq: number
  /** No kept message has a smaller number: reading starts here and crosses no tombstones. */
  headSeq: number
  messages: number
  bytes: number
  taken: number
  damaged: number
  unexplained: number
}

/** `lateFrom`: records of late entries count from this seq on (kept/late-records.ts). */
export type StateTotalsRecord = { entries: number; bytes: number; lateFrom?: number }

/** Bytes of a key of the dedup window, and how many of them are stored. */
export const windowKeyBytes = 16
export const storedKeyBytes = 8

export type JournalRecord = { at: EpochMs; entries: Buffer }

export type WindowRecord = { at: EpochMs; keys: Buffer }

function encodeBody(body: Buffer, version = recordVersion): Buffer {
  const value = Buffer.allocUnsafe(headBytes + body.length)
  value[0] = version
  value.writeUInt32BE(crc32(body), 1)
  body.copy(value, headBytes)
  return value
}

/** The body of a record; null if it is damaged. */
function decodeBody(value: Buffer, version = recordVersion): Buffer | null {
  if (value.length < headBytes || value[0] !== version) return null
  const body = value.subarray(headBytes)
  return crc32(body) === value.readUInt32BE(1) ? body : null
}

/** A record whose body is JSON. The CRC guarantees the shape, since this code wrote it. */
type JsonRecord<Shape> = {
  encode(body: Shape): Buffer
  /** Null if there is none or it is damaged. */
  decode(value: Buffer | undefined): Shape | null
}

type BytesRecord = { encode: (body: Buffer) => Buffer; decode: (value: Buffer) => Buffer | null }

function jsonRecord<Shape extends object>(): JsonRecord<Shape> {
  return {
    encode: (body) => encodeBody(Buffer.from(JSON.stringify(body))),
    decode(value) {
      const body = value === undefined ? null : decodeBody(value)
      return body === null ? null : (JSON.parse(body.toString('utf8')) as Shape)
    },
  }
}

export const formatRecord = jsonRecord<FormatRecord>()
export const laneRecord = jsonRecord<LaneRecord>()
export const claimRecord = jsonRecord<ClaimRecord>()
export const totalsRecord = jsonRecord<TotalsRecord>()
export const deadLetterTotalsRecord = jsonRecord<DeadLetterTotalsRecord>()
export const deadLetterRecord = jsonRecord<DeadLetter>()
export const keptMessageRecord = jsonRecord<Omit<KeptMessage, 'shelf'> & { at: EpochMs }>()
export const shelfRecord = jsonRecord<ShelfRecord>()

export const stateTotalsRecord = jsonRecord<StateTotalsRecord>()

/** The next number to assign, and the first that is not forgotten; written when receipts are forgotten. */
export const receiptTotalsRecord = jsonRecord<{ firstN: number; nextN: number }>()

/** Names of the stores that were set aside and merged into this one: none is merged twice. */
export const mergedStoresRecord = jsonRecord<{ names: string[] }>()

export const receiptRecord: BytesRecord = { encode: encodeBody, decode: decodeBody }
export const stateRecord: BytesRecord = { encode: encodeBody, decode: decodeBody }
export const sessionRecord: BytesRecord = { encode: encodeBody, decode: decodeBody }

export function encodeKeptAt(at: EpochMs): Buffer {
  return encodeNumber(at)
}

/** Null if it is damaged. */
export function decodeKeptAt(value: Buffer): EpochMs | null {
  return decodeNumber(value)
}

/** A record for setWriteCount. */
export function newWriteCount(): Buffer {
  return encodeNumber(0)
}

/** The count of writes is part of every write, so its record is one buffer that is used again. */
export function setWriteCount(record: Buffer, writes: number): void {
  record.writeDoubleBE(writes, headBytes)
  record.writeUInt32BE(crc32(record.subarray(headBytes)), 1)
}

/** Null if there is none or it is damaged. */
export function decodeWriteCount(value: Buffer | undefined): number | null {
  return value === undefined ? null : decodeNumber(value)
}

function encodeNumber(number: number): Buffer {
  const body = Buffer.allocUnsafe(8)
  body.writeDoubleBE(number, 0)
  return encodeBody(body)
}

function decodeNumber(value: Buffer): number | null {
  const body = decodeBody(value)
  return body === null || body.length !== 8 ? null : body.readDoubleBE(0)
}

export function encodeJournal(at: EpochMs, entries: Buffer): Buffer {
  const body = Buffer.allocUnsafe(8 + entries.length)
  body.writeDoubleBE(at, 0)
  entries.copy(body, 8)
  return encodeBody(body)
}

/** Null if it is damaged. */
export function decodeJournal(value: Buffer): JournalRecord | null {
  const body = decodeBody(value)
  return body === null || body.length < 8 ? null : { at: body.readDoubleBE(0), entries: body.subarray(8) }
}

/** `keys` are `storedKeyBytes` each. */
export function encodeWindowKeys(at: EpochMs, keys: Buffer): Buffer {
  const body = Buffer.allocUnsafe(8 + keys.length)
  body.writeDoubleBE(at, 0)
  keys.copy(body, 8)
  return encodeBody(body, windowKeysVersion)
}

export function decodeWindowKeys(value: Buffer): WindowRecord | null {
  const body = decodeBody(value, windowKeysVersion)
  if (body === null || body.length < 8 || (body.length - 8) % storedKeyBytes !== 0) return null
  return { at: body.readDoubleBE(0), keys: body.subarray(8) }
}
