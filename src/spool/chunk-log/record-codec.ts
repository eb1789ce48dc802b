// record-codec.ts: the small records of the spool, each with a version and a CRC of its own.
//
//   0 version (1)   1 CRC-32 of the rest (4)   5 body
//
// The body is JSON, but for the seen table, whose body is a float64 time and the last 8 bytes of each key (16 bytes in
// version 1), for the parts and the receipts, whose body is the bytes of others, and for the kept messages by device, whose
// body is a float64 time.

import { crc32 } from 'node:zlib'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { LaneRole, BatchOperation } from '../spool.ts'

const recordVersion = 1
const seenVersion = 2
const headBytes = 5

/** Bumped when an older gateway could no longer read the spool. */
export const formatVersion = 1

export type FormatRecord = { version: number; createdAt: EpochMs; instance: string }

export type LaneRecord = { provider: ProviderName; role: LaneRole; openedAt: EpochMs }

/** `turn`, the name on the disk, is the operation by which the claim goes next. */
export type ClaimRecord = {
  batchId: BatchId
  endSeq: number
  payloads: number
  bytes: number
  timestamp: EpochMs
  turn: BatchOperation
}

export const settledKinds = ['delivered', 'retried', 'dead', 'requeued', 'damaged', 'unexplained'] as const

export type SettledKind = (typeof settledKinds)[number]

export type Tally = { payloads: number; bytes: number }

export type TotalsRecord = {
  nextSeq: number
  nextBytes: number
  /** First number that no batch has claimed, when this was written. */
  sealSeq: number
  settled: Record<SettledKind, Tally>
}

export type LetterTotalsRecord = { letters: number; bytes: number }

/** `nextSeq` is the next number to give, which is also how many were ever kept. */
export type ShelfRecord = {
  nextSeq: number
  /** No kept message has a smaller number. */
  headSeq: number
  messages: number
  bytes: number
  taken: number
  damaged: number
  unexplained: number
}

export type PartTotalsRecord = { entries: number; bytes: number }

/** Bytes of a key of the dedup window, and how many of them stand in a record. */
export const windowKeyBytes = 16
export const seenKeyBytes = 8

export type SeenRecord = { at: EpochMs; keys: Buffer; keyBytes: number }

function encodeBody(body: Buffer, version = recordVersion): Buffer {
  const value = Buffer.allocUnsafe(headBytes + body.length)
  value[0] = version
  value.writeUInt32BE(crc32(body), 1)
  body.copy(value, headBytes)
  return value
}

/** The body of a record; null where it is damaged. */
function decodeBody(value: Buffer, version = recordVersion): Buffer | null {
  if (value.length < headBytes || value[0] !== version) return null
  const body = value.subarray(headBytes)
  return crc32(body) === value.readUInt32BE(1) ? body : null
}

/** A record whose body is JSON. Its CRC vouches for the shape when it is read: we wrote it. */
type JsonRecord<Shape> = {
  encode(body: Shape): Buffer
  /** Null where there is none or it is damaged. */
  decode(value: Buffer | undefined): Shape | null
}

type BytesRecord = {
  encode(body: Buffer): Buffer
  /** Null where it is damaged. */
  decode(value: Buffer): Buffer | null
}

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
export const letterTotalsRecord = jsonRecord<LetterTotalsRecord>()
export const letterRecord = jsonRecord<DeadLetter>()
export const keptRecord = jsonRecord<Omit<KeptMessage, 'shelf'> & { at: EpochMs }>()
export const shelfRecord = jsonRecord<ShelfRecord>()

export const partTotalsRecord = jsonRecord<PartTotalsRecord>()

/** The next number to give, and the first that was not forgotten; written when some are forgotten. */
export const receiptTotalsRecord = jsonRecord<{ firstN: number; nextN: number }>()

/** The body of a receipt is what delivery gave. */
export const receiptRecord: BytesRecord = {
  encode: (body) => encodeBody(body),
  decode: (value) => decodeBody(value),
}

/** The body of a part is what the mapping gave. */
export const partRecord: BytesRecord = {
  encode: (body) => encodeBody(body),
  decode: (value) => decodeBody(value),
}

export function encodeKeptAt(at: EpochMs): Buffer {
  const body = Buffer.allocUnsafe(8)
  body.writeDoubleBE(at, 0)
  return encodeBody(body)
}

/** Null where it is damaged. */
export function decodeKeptAt(value: Buffer): EpochMs | null {
  const body = decodeBody(value)
  return body === null || body.length !== 8 ? null : body.readDoubleBE(0)
}

/** `keys` are `seenKeyBytes` each. */
export function encodeSeen(at: EpochMs, keys: Buffer): Buffer {
  const body = Buffer.allocUnsafe(8 + keys.length)
  body.writeDoubleBE(at, 0)
  keys.copy(body, 8)
  return encodeBody(body, seenVersion)
}

export function decodeSeen(value: Buffer): SeenRecord | null {
  const keyBytes = value[0] === seenVersion ? seenKeyBytes : windowKeyBytes
  const body = decodeBody(value, value[0] === seenVersion ? seenVersion : recordVersion)
  if (body === null || body.length < 8 || (body.length - 8) % keyBytes !== 0) return null
  return { at: body.readDoubleBE(0), keys: body.subarray(8), keyBytes }
}
