// block.ts: the entries of a block of a table. Strict: what LevelDB would not have written gives null.
//
//   block         entries, then the offsets of the restarts (4 bytes each, little-endian), then their number
//   entry         shared, unshared, valueBytes (varints), unshared bytes of the key, value. The key starts
//                 with `shared` bytes of the key before it; a restart shares none
//   stored block  block or its Snappy form, type (0 plain, 1 Snappy), masked CRC-32C of both (4 bytes)
//   internal key  user key, then (sequence << 8 | kind) in 8 bytes, little-endian. kind: 1 value, 0 deletion
//
// Internal keys ascend by user key; versions of one user key follow each other, the newest first.

import { maskedCrc } from '../crc32c.ts'
import { unsnappy } from './snappy.ts'

export type BlockEntry = { key: Buffer; value: Buffer }

/** Bytes of type and checksum behind each block. */
export const trailerBytes = 5
export const tagBytes = 8

/** Versions of this number and above do not fit into a number; no store comes near it. */
const sequenceUnit = 2 ** 24

/** True if the checksum behind a stored block is right. `end` is the end of the block without its trailer. */
export function hasChecksum(bytes: Buffer, start: number, end: number): boolean {
  return bytes.readUInt32LE(end + 1) === maskedCrc(bytes, start, end + 1)
}

/** The entries of a stored block with a right checksum; null if it is malformed. */
export function readStored(bytes: Buffer, start: number, end: number): BlockEntry[] | null {
  const plain = plainBytes(bytes, start, end)
  return plain === null ? null : readBlock(plain)
}

function plainBytes(bytes: Buffer, start: number, end: number): Buffer | null {
  if (bytes[end] === 1) return unsnappy(bytes, start, end)
  return bytes[end] === 0 ? bytes.subarray(start, end) : null
}

/** The entries of a plain block in the order of their internal keys; null if it is malformed. */
export function readBlock(block: Buffer): BlockEntry[] | null {
  const restarts = restartsOf(block)
  if (restarts === null) return null
  const entriesEnd = block.length - 4 * (restarts.length + 1)
  const entries: BlockEntry[] = []
  const head = { at: 0, value: 0 }
  let last: Buffer | null = null
  let restart = 0
  while (head.at < entriesEnd) {
    const isRestart = head.at === restarts[restart]
    if (isRestart) restart += 1
    if (!readVarint(block, head, entriesEnd)) return null
    const shared = head.value
    if (!readVarint(block, head, entriesEnd)) return null
    const keyBytes = head.value
    if (!readVarint(block, head, entriesEnd)) return null
    const keyEnd = head.at + keyBytes
    const valueEnd = keyEnd + head.value
    if (valueEnd > entriesEnd || shared > (last?.length ?? 0) || (isRestart && shared > 0)) return null
    if (shared + keyBytes < tagBytes) return null
    const key: Buffer = keyOf(block, head.at, keyEnd, last?.subarray(0, shared))
    if (last !== null && compareInternal(last, key) >= 0) return null
    entries.push({ key, value: block.subarray(keyEnd, valueEnd) })
    last = key
    head.at = valueEnd
  }
  // A block without entries has one restart at its start.
  return restart === restarts.length || (entries.length === 0 && restarts.length === 1) ? entries : null
}

function restartsOf(block: Buffer): number[] | null {
  if (block.length < 8) return null
  const count = block.readUInt32LE(block.length - 4)
  if (count === 0 || count > (block.length - 4) / 4) return null
  const start = block.length - 4 * (count + 1)
  const restarts: number[] = []
  for (let index = 0; index < count; index += 1) {
    const restart = block.readUInt32LE(start + 4 * index)
    if (restart > start || (index === 0 ? restart !== 0 : restart <= restarts[index - 1]!)) return null
    restarts.push(restart)
  }
  return restarts
}

function keyOf(block: Buffer, start: number, end: number, shared: Buffer | undefined): Buffer {
  if (shared === undefined || shared.length === 0) return block.subarray(start, end)
  const key = Buffer.allocUnsafe(shared.length + end - start)
  key.set(shared)
  key.set(block.subarray(start, end), shared.length)
  return key
}

/** Reads a varint of at most 32 bits at `head.at`, before `end`, and moves behind it. */
export function readVarint(bytes: Uint8Array, head: { at: number; value: number }, end: number): boolean {
  let value = 0
  for (let shift = 0; shift <= 28; shift += 7) {
    if (head.at >= end) return false
    const byte = bytes[head.at++]!
    value += (byte & 127) * 2 ** shift
    if (byte < 128) {
      head.value = value
      return value < 2 ** 32
    }
  }
  return false
}

/** A block's place in an index or a footer. Varints here have up to 64 bits; no file needs more than 53. */
export function readPlace(
  bytes: Buffer,
  head: { at: number },
  end: number,
): { offset: number; bytes: number } | null {
  const offset = readLongVarint(bytes, head, end)
  const length = offset === null ? null : readLongVarint(bytes, head, end)
  return offset === null || length === null ? null : { offset, bytes: length }
}

function readLongVarint(bytes: Buffer, head: { at: number }, end: number): number | null {
  let value = 0
  for (let shift = 0; shift <= 49; shift += 7) {
    if (head.at >= end) return null
    const byte = bytes[head.at++]!
    value += (byte & 127) * 2 ** shift
    if (byte < 128) return value <= Number.MAX_SAFE_INTEGER ? value : null
  }
  return null
}

export function userKeyOf(internalKey: Buffer): Buffer {
  return internalKey.subarray(0, internalKey.length - tagBytes)
}

export function sequenceOf(internalKey: Buffer): number {
  const at = internalKey.length - tagBytes
  return internalKey.readUInt32LE(at + 4) * sequenceUnit + (internalKey.readUInt32LE(at) >>> 8)
}

/** 1 for a value, 0 for a deletion; no other is written. */
export function kindOf(internalKey: Buffer): number {
  return internalKey[internalKey.length - tagBytes]!
}

export function internalKeyOf(userKey: Buffer, sequence: number, kind: 0 | 1): Buffer {
  const key = Buffer.allocUnsafe(userKey.length + tagBytes)
  key.set(userKey)
  key.writeUInt32LE((((sequence % sequenceUnit) << 8) | kind) >>> 0, userKey.length)
  key.writeUInt32LE(Math.floor(sequence / sequenceUnit), userKey.length + 4)
  return key
}

/** The order of a table: by user key, then the newest first. */
export function compareInternal(one: Buffer, other: Buffer): number {
  const oneEnd = one.length - tagBytes
  const otherEnd = other.length - tagBytes
  const order = one.compare(other, 0, otherEnd, 0, oneEnd)
  if (order !== 0) return order
  const high = other.readUInt32LE(otherEnd + 4) - one.readUInt32LE(oneEnd + 4)
  return high === 0 ? other.readUInt32LE(otherEnd) - one.readUInt32LE(oneEnd) : high
}

/** A key below `key`, with nothing of the store between them. Null below the first key. */
export function keyBefore(key: Buffer): Buffer | null {
  const last = key[key.length - 1]
  if (last === undefined) return null
  const head = key.subarray(0, key.length - 1)
  return last === 0 ? Buffer.from(head) : Buffer.concat([head, Buffer.of(last - 1), Buffer.alloc(16, 255)])
}
