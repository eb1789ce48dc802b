// file-layout.ts: the checksummed units of an intact file of LevelDB and what each of them holds: what damage
// may lose. Reads the formats itself, so that the reader of the gateway is not judged by itself.

import { readFile } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import type { FileKind } from './cells.ts'

export type UnitContent = {
  /** Payloads by their numbers. */
  numbers: number[]
  batchIds: string[]
  deadLetters: number
  kept: number
  state: number
  deletions: number
}

/** From `offset` up to `end`, checksum included. */
export type Unit = { offset: number; end: number; content: UnitContent }

export type TableLayout = { kind: 'table'; indexOffset: number; footerOffset: number; units: Unit[] }
export type LogLayout = { kind: 'log'; units: Unit[] }
export type FileLayout = TableLayout | LogLayout | { kind: 'other' }

export async function layoutOf(path: string, kind: FileKind, firstTime: number): Promise<FileLayout> {
  if (kind === 'table') return tableLayout(await readFile(path), firstTime)
  if (kind === 'log') return logLayout(await readFile(path), firstTime)
  return { kind: 'other' }
}

// ------------------------------------------------------------------------------------------------ tables

const footerBytes = 48
const trailerBytes = 5

function tableLayout(file: Buffer, firstTime: number): TableLayout {
  const footerOffset = file.length - footerBytes
  const footer = new Cursor(file, footerOffset)
  footer.varint()
  footer.varint()
  const [indexOffset, indexBytes] = [footer.varint(), footer.varint()]
  const units: Unit[] = []
  for (const [, handle] of entriesOf(blockAt(file, indexOffset, indexBytes))) {
    const cursor = new Cursor(handle, 0)
    const [offset, bytes] = [cursor.varint(), cursor.varint()]
    const content = emptyContent()
    for (const [key, value] of entriesOf(blockAt(file, offset, bytes))) {
      const isValue = key[key.length - 8] === 1
      addEntry(content, key.subarray(0, -8), isValue ? value : null, firstTime)
    }
    units.push({ offset, end: offset + bytes + trailerBytes, content })
  }
  return { kind: 'table', indexOffset, footerOffset, units }
}

function blockAt(file: Buffer, offset: number, bytes: number): Buffer {
  const raw = file.subarray(offset, offset + bytes)
  return file[offset + bytes] === 1 ? unsnapped(raw) : raw
}

/** Entries of a block: each shares the start of its key with the entry before it. */
function* entriesOf(block: Buffer): Generator<[key: Buffer, value: Buffer]> {
  const restarts = block.readUInt32LE(block.length - 4)
  const end = block.length - 4 - restarts * 4
  const cursor = new Cursor(block, 0)
  let key = Buffer.alloc(0)
  while (cursor.at < end) {
    const [shared, own, length] = [cursor.varint(), cursor.varint(), cursor.varint()]
    key = Buffer.concat([key.subarray(0, shared), cursor.take(own)])
    yield [key, cursor.take(length)]
  }
}

function unsnapped(raw: Buffer): Buffer {
  const cursor = new Cursor(raw, 0)
  const out = Buffer.alloc(cursor.varint())
  let used = 0
  while (cursor.at < raw.length) {
    const tag = cursor.byte()
    if ((tag & 3) === 0) {
      const code = tag >> 2
      const length = code < 60 ? code + 1 : cursor.little(code - 59) + 1
      used += cursor.take(length).copy(out, used)
      continue
    }
    const isShort = (tag & 3) === 1
    const length = isShort ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1
    const back = isShort ? ((tag >> 5) << 8) | cursor.byte() : cursor.little((tag & 3) === 2 ? 2 : 4)
    for (let index = 0; index < length; index += 1, used += 1) out[used] = out[used - back] ?? 0
  }
  return out
}

// -------------------------------------------------------------------------------------------------- logs

const logBlockBytes = 32 * 1024
const logHeadBytes = 7
const firstOrWhole = new Set([1, 2])
const lastOrWhole = new Set([1, 4])

function logLayout(file: Buffer, firstTime: number): LogLayout {
  const units: Unit[] = []
  let parts: Buffer[] = []
  let start = 0
  let at = 0
  while (at + logHeadBytes <= file.length) {
    const left = logBlockBytes - (at % logBlockBytes)
    if (left < logHeadBytes) {
      at += left
      continue
    }
    const length = file.readUInt16LE(at + 4)
    const type = file[at + 6] ?? 0
    const end = at + logHeadBytes + length
    if (type === 0 || end > file.length) break
    if (firstOrWhole.has(type)) {
      parts = []
      start = at
    }
    parts.push(file.subarray(at + logHeadBytes, end))
    if (lastOrWhole.has(type))
      units.push({ offset: start, end, content: groupContent(Buffer.concat(parts), firstTime) })
    at = end
  }
  return { kind: 'log', units }
}

function groupContent(group: Buffer, firstTime: number): UnitContent {
  const content = emptyContent()
  const cursor = new Cursor(group, 12)
  while (cursor.at < group.length) {
    const isValue = cursor.byte() === 1
    const key = cursor.take(cursor.varint())
    addEntry(content, key, isValue ? cursor.take(cursor.varint()) : null, firstTime)
  }
  return content
}

// ----------------------------------------------------------------------------------------------- entries

const tables = { chunks: 0x10, batches: 0x11, state: 0x14, deadLetters: 0x20, kept: 0x21 }

function emptyContent(): UnitContent {
  return { numbers: [], batchIds: [], deadLetters: 0, kept: 0, state: 0, deletions: 0 }
}

function addEntry(content: UnitContent, key: Buffer, value: Buffer | null, firstTime: number): void {
  if (value === null) {
    content.deletions += 1
    return
  }
  const text = () => value.toString('latin1')
  if (key[0] === tables.chunks)
    for (const [, time] of framesOf(value).matchAll(/"signalTimestamp":(\d+)/g))
      content.numbers.push(Number(time) - firstTime)
  else if (key[0] === tables.batches) content.batchIds.push(/"batchId":"([^"]+)"/.exec(text())?.[1] ?? '')
  else if (key[0] === tables.deadLetters) content.deadLetters += 1
  else if (key[0] === tables.kept) content.kept += 1
  else if (key[0] === tables.state) content.state += 1
}

const compressedVersion = 5
const chunkHeadBytes = 29

/** The payloads of a chunk, which are compressed behind its head. */
function framesOf(chunk: Buffer): string {
  const frames = chunk[0] === compressedVersion ? zstdDecompressSync(chunk.subarray(chunkHeadBytes)) : chunk
  return frames.toString('latin1')
}

class Cursor {
  private readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  byte(): number {
    this.at += 1
    return this.bytes[this.at - 1] ?? 0
  }

  varint(): number {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte()
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }

  /** A little-endian number of `bytes` bytes. */
  little(bytes: number): number {
    let value = 0
    for (let index = 0; index < bytes; index += 1) value += this.byte() * 256 ** index
    return value
  }

  take(length: number): Buffer {
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }
}
