// open-record.ts: the values of an open record, and their stored form.
//
// The bytes only grow: each value is a frame after the last one. So the stored form after any message is a
// view of the first `length` bytes, and no value is encoded twice.
//
//   version (1)  frame  frame  ...
//   frame: arrivedAt (8)  time (8)  messages (4)  name length (2)  value length (4)  name  value (JSON)
//   time: NaN for a value without its own; of two frames of one name the later one counts
//
// Decoding is total: bytes that are not such a record give `damaged`, never an exception.

import { isUtf8 } from 'node:buffer'
import { messageOf } from '../../std/gateway-error.ts'
import type { EpochMs } from '../../std/clock.ts'

/** A value to be added to a record. */
export type Value = {
  name: string
  value: unknown
  /** `value` as JSON. */
  text: string
  /** NaN for a value without a time of its own. */
  time: EpochMs
  arrivedAt: EpochMs
  /** Messages that end with this value. They are counted as open until the record closes. */
  messages: number
}

type StoredValue = { value: unknown; time: EpochMs }

export type OpenRecord = {
  /** The device or asset of the values. */
  readonly owner: string
  readonly values: Map<string, StoredValue>
  /** Arrival of the first and of the last value. */
  openedAt: EpochMs
  arrivedAt: EpochMs
  /** The earliest and the latest own time of the values; NaN while none has one. */
  earliest: EpochMs
  latest: EpochMs
  messages: number
  buffer: Buffer
  length: number
}

const version = 1
const frameHead = 26
const nameBytesMax = 65_535
const firstBytes = 256

export function newRecord(owner: string, openedAt: EpochMs): OpenRecord {
  const buffer = Buffer.allocUnsafeSlow(firstBytes)
  buffer[0] = version
  return {
    owner,
    values: new Map(),
    openedAt,
    arrivedAt: openedAt,
    earliest: Number.NaN,
    latest: Number.NaN,
    messages: 0,
    buffer,
    length: 1,
  }
}

/** The most bytes that a value can take. */
export function frameBytesMax(name: string, text: string): number {
  return frameHead + 3 * (name.length + text.length)
}

export function addValue(record: OpenRecord, value: Value): void {
  include(record, value)
  const { name, text, time, arrivedAt, messages } = value
  const start = record.length
  const needed = start + frameBytesMax(name, text)
  if (needed > record.buffer.length) {
    // Bytes given out before are a view of the old buffer, which is not written any more.
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, record.buffer.length * 2))
    record.buffer.copy(larger, 0, 0, start)
    record.buffer = larger
  }
  const { buffer } = record
  const nameBytes = buffer.write(name, start + frameHead)
  const valueBytes = buffer.write(text, start + frameHead + nameBytes)
  buffer.writeDoubleBE(arrivedAt, start)
  buffer.writeDoubleBE(time, start + 8)
  buffer.writeUInt32BE(messages, start + 16)
  buffer.writeUInt16BE(nameBytes, start + 20)
  buffer.writeUInt32BE(valueBytes, start + 22)
  record.length = start + frameHead + nameBytes + valueBytes
}

/** The stored form. It does not change when the record grows. */
export function bytesOf(record: OpenRecord): Buffer {
  return record.buffer.subarray(0, record.length)
}

/** Whether the record has this reading already: the same value with the same name and own time. */
export function hasReading({ values }: OpenRecord, { name, value, text, time }: Value): boolean {
  const known = values.get(name)
  if (known === undefined || known.time !== time) return false
  return known.value === value || JSON.stringify(known.value) === text
}

function include(record: OpenRecord, { name, value, time, arrivedAt, messages }: Omit<Value, 'text'>): void {
  record.values.set(name, { value, time })
  record.arrivedAt = arrivedAt
  record.messages += messages
  if (!(time >= record.earliest)) record.earliest = Number.isNaN(time) ? record.earliest : time
  if (!(time <= record.latest)) record.latest = Number.isNaN(time) ? record.latest : time
}

export type Decoded = { kind: 'record'; record: OpenRecord } | { kind: 'damaged'; why: string }

export function decodeRecord(owner: string, bytes: Buffer): Decoded {
  if (bytes[0] !== version) return { kind: 'damaged', why: `its version is ${bytes[0] ?? 'missing'}` }
  let record: OpenRecord | null = null
  let at = 1
  while (at < bytes.length) {
    const frame = decodeFrame(bytes, at)
    if (typeof frame === 'string') return { kind: 'damaged', why: `${frame} at byte ${at}` }
    record ??= newRecord(owner, frame.value.arrivedAt)
    include(record, frame.value)
    at = frame.end
  }
  if (record === null) return { kind: 'damaged', why: 'it has no values' }
  record.buffer = Buffer.from(bytes)
  record.length = bytes.length
  return { kind: 'record', record }
}

function decodeFrame(bytes: Buffer, at: number): { value: Omit<Value, 'text'>; end: number } | string {
  if (bytes.length - at < frameHead) return 'a frame is truncated'
  const nameStart = at + frameHead
  const valueStart = nameStart + bytes.readUInt16BE(at + 20)
  const end = valueStart + bytes.readUInt32BE(at + 22)
  if (end > bytes.length) return 'a frame is longer than the rest of the bytes'
  const arrivedAt = bytes.readDoubleBE(at)
  const time = bytes.readDoubleBE(at + 8)
  const messages = bytes.readUInt32BE(at + 16)
  if (!Number.isFinite(arrivedAt) || Math.abs(time) === Number.POSITIVE_INFINITY)
    return 'a frame has no valid time'
  if (!isUtf8(bytes.subarray(nameStart, end))) return 'a frame is not UTF-8'
  const name = bytes.toString('utf8', nameStart, valueStart)
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8', valueStart, end))
    return { value: { name, value, time, arrivedAt, messages }, end }
  } catch (error) {
    return `a value is not JSON (${messageOf(error)})`
  }
}

/** A value as it is after it was stored and decoded, and its JSON; null for a value that cannot be stored. */
export function storedFormOf(name: string, found: unknown): { value: unknown; text: string } | null {
  if (name.length * 3 > nameBytesMax) return null
  // JSON has neither NaN nor infinities. As text they are refused where a number is required, as the numbers
  // would be. JSON has no negative zero either.
  const plain = typeof found === 'number' ? (Number.isFinite(found) ? found + 0 : String(found)) : found
  try {
    const text = JSON.stringify(plain) as string | undefined
    if (text === undefined) return null
    return { value: typeof plain === 'object' && plain !== null ? JSON.parse(text) : plain, text }
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError))
      throw error
    return null
  }
}
