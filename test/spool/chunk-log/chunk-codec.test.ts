import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  addText,
  chunkRecord,
  eachFrame,
  finishChunk,
  newChunkBuilder,
  plausibleCount,
  readableFrames,
  readChunk,
  underKey,
  type Chunk,
} from '../../../src/spool/chunk-log/chunk-codec.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'

const keyOf = (seq: number) => seqKey(table.chunks, 7 as LaneId, seq)
const key = keyOf(300)
const alike = Array.from({ length: 25 }, (_, n) => `{"payloadId":"${n}","text":"${'ä lorry '.repeat(20)}"}`)
const unlike = Array.from({ length: 25 }, () => randomBytes(200).toString('latin1'))

function chunkOf(texts: readonly string[]): Chunk {
  const builder = newChunkBuilder(64)
  texts.forEach((text, n) => addText(builder, text, n))
  return finishChunk(builder, 1_700_000_000_000, 12_345)
}

function framesIn(chunk: Chunk): [number, string][] {
  const found: [number, string][] = []
  eachFrame(chunk, (attempts, start, end) => found.push([attempts, chunk.value.toString('utf8', start, end)]))
  return found
}

function read(record: Buffer, under = key): Chunk | null {
  const chunk = readChunk(under, record)
  return chunk?.kind === 'chunk' ? chunk : null
}

describe('the record of a chunk', () => {
  test.each([
    ['some payloads that are alike', alike, 5],
    ['one payload', alike.slice(0, 1), 3],
    ['payloads that do not become smaller', unlike, 3],
  ])('of %s gives back every byte of them', (_what, texts, version) => {
    const chunk = chunkOf(texts)
    const record = chunkRecord(key, chunk)
    expect(record[0]).toBe(version)
    const found = read(record)
    expect(found).toMatchObject({ count: texts.length, committedAt: 1_700_000_000_000, startBytes: 12_345 })
    expect(found?.bytes).toBe(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0))
    expect(found && framesIn(found)).toEqual(texts.map((text, n) => [n, text]))
    // It is written again as it was read: a cut makes its pieces of it.
    expect(found && chunkRecord(key, found)).toEqual(record)
  })

  test('of payloads that are alike is a small part of them, and what is in memory stays as it is', () => {
    const chunk = chunkOf(alike)
    const before = Buffer.from(chunk.value)
    expect(chunkRecord(key, chunk).length).toBeLessThan(chunk.value.length / 4)
    expect(chunk.value).toEqual(before)
  })

  test('is damaged with any flipped bit, and under any other key', () => {
    const record = chunkRecord(key, chunkOf(alike))
    for (let bit = 0; bit < record.length * 8; bit += 1) {
      const flipped = Buffer.from(record)
      flipped[bit >> 3]! ^= 1 << (bit & 7)
      expect(readChunk(key, flipped)).toBeNull()
    }
    expect(readChunk(keyOf(301), record)).toBeNull()
  })

  test('is damaged where its checksum is right and its frames are not those that it names', () => {
    for (const [offset, by] of [
      [5, 1],
      [5, -1],
      [25, 1],
      [25, -1],
    ] as const) {
      const record = chunkRecord(key, chunkOf(alike))
      record.writeUInt32BE(record.readUInt32BE(offset) + by, offset)
      record.writeUInt32BE(crc32(record.subarray(5), crc32(key.subarray(1))), 1)
      expect(readChunk(key, record)).toBeNull()
    }
  })

  test('moves to another key without being compressed again', () => {
    const record = chunkRecord(key, chunkOf(alike))
    const moved = underKey(keyOf(9), key, record)
    expect(moved.subarray(5)).toEqual(record.subarray(5))
    expect(framesIn(read(moved, keyOf(9))!)).toHaveLength(alike.length)
  })

  test('of an earlier version is read', () => {
    const first = Buffer.from(chunkOf(alike).value)
    first[0] = 1
    first.writeUInt32BE(crc32(first.subarray(5)), 1)
    expect(framesIn(read(first)!)).toHaveLength(alike.length)
  })

  test('that is damaged outside of its frames still shows its payloads and their number', () => {
    const chunk = chunkOf(alike)
    const record = chunkRecord(key, chunk)
    record[12]! ^= 1
    expect(plausibleCount(record)).toBe(alike.length)
    expect(readableFrames(record).subarray(29)).toEqual(chunk.value.subarray(29))
    const torn = record.subarray(0, record.length - 9)
    expect(readableFrames(torn)).toBe(torn)
  })
})
