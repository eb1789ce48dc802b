// chunk-codec.ts: the bytes of a chunk, the unit of storage: a run of payloads that one commit wrote to one
// lane.
//
//   offset  size  field
//        0     1  version: 3, 4 for a gap, or 5 with the frames compressed
//        1     4  CRC-32 of the lane and the number in the key, and of everything behind this field
//        5     4  count: payloads in it
//        9     8  committedAt: wall clock of the commit, float64
//       17     8  startBytes: payload bytes of the lane before this chunk, float64
//       25     4  bytes: payload bytes in it
//       29     .  one frame for each payload: attempts (1), length (4), the payload's JSON
//
// In version 5 the frames are one frame of zstd. In memory they are as in version 3: the request body is made
// of them, so it has the same bytes. A chunk is compressed where that pays: the payloads of one write are
// alike, one alone hardly becomes smaller, and each call costs some 30 us.
//
// Numbers are big-endian. `attempts` counts how often the service answered `failed` for that payload. With
// `startBytes`, recovery knows the size of a lane from its last chunk alone.
//
// A gap stands where payloads are missing that were counted as damaged when that was found: it has their
// count and no frames, so that they are not counted again when the head of the lane gets there.
//
// The CRC covers the key: one flipped bit there would move a chunk into the batch of another provider. The
// byte of the table is not part of it, so that a chunk that was set aside can still be checked. Versions 1
// and 2 are those of 0.1.0: the same bytes, with a CRC of the value alone. They are read, and not written.

import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { EpochMs } from '../../std/clock.ts'
import { assert } from '../../std/assert.ts'
import { isSeqKey } from './key-layout.ts'
import type { ChunkBuffers } from './recent-chunks/chunk-buffers.ts'

const versions = { chunk: 3, gap: 4, compressed: 5 } as const
/** Of 0.1.0: their CRC does not cover the key. */
const versionsWithoutKey = { chunk: 1, gap: 2 } as const
const headerBytes = 29
/** The checksum is of what follows it. */
const checkedFrom = 5
/** Offset of the first frame. */
export const firstFrame = headerBytes
export const frameHeadBytes = 5
const attemptsMax = 255
/** Some four payloads. */
const compressedFromBytes = 2048
/** Less is not worth the time to read it again. */
const compressedShareMax = 3 / 4
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export type Chunk = {
  kind: 'chunk'
  count: number
  committedAt: EpochMs
  startBytes: number
  bytes: number
  /** The whole record with its frames, never compressed. Empty once the buffer was given back. */
  value: Buffer
  /** The buffer that `value` is a part of, where it is to be used again (chunk-buffers.ts). */
  buffer: Buffer | null
  use: ChunkUse
}

/** Its size in the lane, without payloads. */
export type Gap = { kind: 'gap' } & Pick<Chunk, 'count' | 'startBytes' | 'bytes'>

/** `shared`: parts of its bytes were handed out. */
export type ChunkUse = 'unread' | 'read' | 'shared'

/** A chunk that grows until its group is written. Plain fields, since it is filled once for each message. */
export type ChunkBuilder = {
  count: number
  bytes: number
  used: number
  buffer: Buffer
  /** Where its buffers come from; null for memory of its own. */
  readonly buffers: ChunkBuffers | null
}

/** allocUnsafe takes small buffers from a shared slab: a few messages a second cost no allocations. */
export function newChunkBuilder(capacityBytes: number, buffers: ChunkBuffers | null = null): ChunkBuilder {
  const buffer = newBuffer(buffers, headerBytes + capacityBytes)
  return { count: 0, bytes: 0, used: headerBytes, buffer, buffers }
}

function newBuffer(buffers: ChunkBuffers | null, bytes: number): Buffer {
  return buffers === null ? Buffer.allocUnsafe(bytes) : buffers.take(bytes)
}

/** Adds a payload's JSON text; returns its length in bytes. */
export function addText(builder: ChunkBuilder, json: string, attempts: number): number {
  // A UTF-16 unit is at most three bytes of UTF-8.
  reserve(builder, frameHeadBytes + json.length * 3)
  const start = builder.used + frameHeadBytes
  const length = builder.buffer.write(json, start, 'utf8')
  addHead(builder, length, attempts)
  return length
}

/** Adds a payload's stored JSON bytes. */
export function addBytes(builder: ChunkBuilder, json: Buffer, attempts: number): void {
  reserve(builder, frameHeadBytes + json.length)
  json.copy(builder.buffer, builder.used + frameHeadBytes)
  addHead(builder, json.length, attempts)
}

function addHead(builder: ChunkBuilder, length: number, attempts: number): void {
  builder.buffer[builder.used] = Math.min(attempts, attemptsMax)
  builder.buffer.writeUInt32BE(length, builder.used + 1)
  builder.used += frameHeadBytes + length
  builder.bytes += length
  builder.count += 1
}

function reserve(builder: ChunkBuilder, moreBytes: number): void {
  const needed = builder.used + moreBytes
  if (needed <= builder.buffer.length) return
  moveTo(builder, Math.max(needed, builder.buffer.length * 2))
}

/** Another buffer, with room for so many bytes. */
function moveTo(builder: ChunkBuilder, bytes: number): void {
  const { buffer, buffers, used } = builder
  builder.buffer = newBuffer(buffers, bytes)
  buffer.copy(builder.buffer, 0, 0, used)
  buffers?.giveBack(buffer)
}

/**
 * Makes a chunk of the builder's buffer; `chunkRecord` makes its record when it has a key. The builder must
 * not be used afterwards.
 */
export function finishChunk(builder: ChunkBuilder, committedAt: EpochMs, startBytes: number): Chunk {
  assert(builder.count > 0, 'a chunk holds at least one payload')
  const { count, bytes, used, buffers } = builder
  // A buffer that is mostly empty is copied: the chunk stays in memory until it is delivered.
  if (used * 2 < builder.buffer.length) moveTo(builder, used)
  const value = builder.buffer.subarray(0, used)
  value[0] = versions.chunk
  value.writeUInt32BE(count, 5)
  value.writeDoubleBE(committedAt, 9)
  value.writeDoubleBE(startBytes, 17)
  value.writeUInt32BE(bytes, 25)
  const buffer = buffers === null ? null : builder.buffer
  return { kind: 'chunk', count, committedAt, startBytes, bytes, value, buffer, use: 'unread' }
}

/** What its field has room for. */
export const gapPayloadsMax = 2 ** 32 - 1

/** The record of a gap of `count` missing payloads, behind `startBytes` of the lane. */
export function gapRecord(key: Buffer, count: number, startBytes: number): Buffer {
  const { value } = finishChunk({ ...newChunkBuilder(0), count }, 0, startBytes)
  value[0] = versions.gap
  setChecksum(key, value)
  return value
}

/** The record of a chunk for the key under which it is written. */
export function chunkRecord(key: Buffer, { value }: Chunk): Buffer {
  const record = compressed(value) ?? value
  setChecksum(key, record)
  return record
}

function compressed(value: Buffer): Buffer | null {
  if (value.length < compressedFromBytes) return null
  const frames = zstdCompressSync(value.subarray(headerBytes), compression)
  if (frames.length > value.length * compressedShareMax) return null
  const record = Buffer.concat([value.subarray(0, headerBytes), frames])
  record[0] = versions.compressed
  return record
}

/** A record of version 5 as one of version 3, without its checksum; null if its frames cannot be read. */
function decompressed(value: Buffer): Buffer | null {
  const framesBytes = value.readUInt32BE(5) * frameHeadBytes + value.readUInt32BE(25)
  try {
    const frames = zstdDecompressSync(value.subarray(headerBytes), { maxOutputLength: framesBytes })
    if (frames.length !== framesBytes) return null
    const record = Buffer.concat([value.subarray(0, headerBytes), frames])
    record[0] = versions.chunk
    return record
  } catch {
    return null
  }
}

function setChecksum(key: Buffer, value: Buffer): void {
  value.writeUInt32BE(checksum(key, value), 1)
}

function checksum(key: Buffer, value: Buffer): number {
  return crc32(value.subarray(checkedFrom), crc32(key.subarray(1)))
}

/** A record that moves to another key: with a new checksum, if the old one was right and covered its key. */
export function underKey(newKey: Buffer, key: Buffer, value: Buffer): Buffer {
  const isWithKey = Object.values<number | undefined>(versions).includes(value[0])
  if (!isWithKey || readChunk(key, value) === null) return value
  const moved = Buffer.from(value)
  setChecksum(newKey, moved)
  return moved
}

/** Reads the record under a key of a chunk, or of one that was set aside. Null if either is damaged. */
export function readChunk(key: Buffer, value: Buffer): Chunk | Gap | null {
  if (value.length < headerBytes) return null
  const [version] = value
  const isWithKey = Object.values<number | undefined>(versions).includes(version)
  const isChunk = version === versions.chunk || version === versionsWithoutKey.chunk
  const isGap = version === versions.gap || version === versionsWithoutKey.gap
  const expected = isWithKey ? checksum(key, value) : crc32(value.subarray(checkedFrom))
  if (value.readUInt32BE(1) !== expected) return null
  const size = {
    count: value.readUInt32BE(5),
    startBytes: value.readDoubleBE(17),
    bytes: value.readUInt32BE(25),
  }
  if (isGap) return value.length === headerBytes ? { kind: 'gap', ...size } : null
  const frames = version === versions.compressed ? decompressed(value) : isChunk ? value : null
  if (frames === null) return null
  const committedAt = value.readDoubleBE(9)
  return { kind: 'chunk', ...size, committedAt, value: frames, buffer: null, use: 'unread' }
}

/** The key that a damaged chunk had if one bit of it has flipped: its checksum shows it. Else null. */
export function keyBeforeFlip(key: Buffer, value: Buffer): Buffer | null {
  for (let bit = 8; bit < key.length * 8; bit += 1) {
    const before = Buffer.from(key)
    before[bit >> 3]! ^= 0x80 >> (bit & 7)
    if (isSeqKey(before) && readChunk(before, value) !== null) return before
  }
  return null
}

/** A damaged record with the frames that can be read of it: those of a compressed one, if they all can. */
export function readableFrames(value: Buffer): Buffer {
  return value[0] === versions.compressed && value.length > headerBytes
    ? (decompressed(value) ?? value)
    : value
}

/** How many payloads a damaged chunk held: its count, if that can be right; at least one. */
export function plausibleCount(value: Buffer): number {
  const count = value.length < headerBytes ? 0 : value.readUInt32BE(5)
  const bytes = value[0] === versions.compressed ? value.readUInt32BE(25) : value.length - headerBytes
  return count > 0 && count * frameHeadBytes <= bytes ? count : 1
}

/** Calls `visit` for each payload with its attempts and the position of its JSON in `chunk.value`. */
export function eachFrame(chunk: Chunk, visit: (attempts: number, start: number, end: number) => void): void {
  const { value } = chunk
  let offset = headerBytes
  for (let index = 0; index < chunk.count; index += 1) {
    const attempts = value[offset] ?? 0
    const start = offset + frameHeadBytes
    offset = start + value.readUInt32BE(offset + 1)
    visit(attempts, start, offset)
  }
  assert(offset === value.length, 'the frames fill the chunk')
}

/** Cuts a chunk into runs of `counts` payloads, which add up to it. Attempts and commit time stay. */
export function splitChunk(chunk: Chunk, counts: readonly number[]): Chunk[] {
  const meanBytes = Math.ceil(chunk.value.length / chunk.count) + frameHeadBytes
  const builders = counts.map((count) => newChunkBuilder(count * meanBytes))
  let part = 0
  eachFrame(chunk, (attempts, start, end) => {
    if (builders[part]?.count === counts[part]) part += 1
    const builder = builders[part]
    assert(builder !== undefined, 'the parts of a chunk add up to it')
    addBytes(builder, chunk.value.subarray(start, end), attempts)
  })
  let { startBytes } = chunk
  return builders.map((builder) => {
    const piece = finishChunk(builder, chunk.committedAt, startBytes)
    startBytes += piece.bytes
    return piece
  })
}
