// table-writer.ts: writes a table that LevelDB opens: from entries, or from whole blocks of a damaged table
// as they are stored. Written blocks are not compressed; LevelDB compresses them when it next merges them.

import { open } from 'node:fs/promises'
import { assert } from '../../std/assert.ts'
import type { BlockPlace } from './types.ts'
import { maskedCrc } from './crc32c.ts'
import { compareInternal, trailerBytes } from './table-reader/block.ts'
import { encodeVarint } from './varint.ts'

export type TableWriter = {
  /** Keys are internal keys and ascend. */
  add(key: Buffer, value: Buffer): Promise<void>
  /** A block with its trailer, as it is stored, with its first and its last key. */
  addStored(block: Buffer, first: Buffer, last: Buffer): Promise<void>
  /** Writes the index and the footer, and syncs the file. Null if nothing was added: the file is empty. */
  finish(): Promise<WrittenTable | null>
  /** Closes the file without finishing it, where finish() was not called or failed. */
  close(): Promise<void>
}

/** `smallest` and `largest` are internal keys. */
export type WrittenTable = { bytes: number; smallest: Buffer; largest: Buffer }

/** As large as those of the spool's database. */
const blockBytes = 16 * 1024
/** Every so many entries a key is written whole. */
const restartEvery = 16
/** Written blocks are collected, so that small ones do not cost a system call each. */
const pendingBytesMax = 256 * 1024
const magic = Buffer.from('57fb808b247547db', 'hex')
const placesBytes = 40

/** Creates the file `path`, which must not exist. Rejects with the code of the file system. */
export async function createTable(path: string): Promise<TableWriter> {
  const file = await open(path, 'wx', 0o644)
  const index = newBlock(1)
  let block = newBlock(restartEvery)
  let smallest: Buffer | null = null
  let largest: Buffer | null = null
  let pending: Buffer[] = []
  let pendingBytes = 0
  let offset = 0
  let isOpen = true
  return { add, addStored, finish, close }

  async function add(key: Buffer, value: Buffer): Promise<void> {
    extend(key, key)
    block.add(key, value)
    if (block.bytes() >= blockBytes) await endBlock()
  }

  async function addStored(stored: Buffer, first: Buffer, last: Buffer): Promise<void> {
    await endBlock()
    extend(first, last)
    await append([stored])
    index.add(last, encodePlace({ offset: offset - stored.length, bytes: stored.length - trailerBytes }))
  }

  function extend(first: Buffer, last: Buffer): void {
    assert(largest === null || compareInternal(largest, first) < 0, 'the keys of a table ascend')
    smallest ??= first
    largest = last
  }

  async function endBlock(): Promise<void> {
    if (block.isEmpty() || largest === null) return
    index.add(largest, encodePlace(await writeBlock(block.finish())))
    block = newBlock(restartEvery)
  }

  async function writeBlock(bytes: Buffer): Promise<BlockPlace> {
    const place = { offset, bytes: bytes.length }
    const trailer = Buffer.alloc(trailerBytes)
    const checked = Buffer.concat([bytes, trailer])
    checked.writeUInt32LE(maskedCrc(checked, 0, bytes.length + 1), bytes.length + 1)
    await append([checked])
    return place
  }

  async function append(parts: readonly Buffer[]): Promise<void> {
    for (const part of parts) {
      pending.push(part)
      pendingBytes += part.length
      offset += part.length
    }
    if (pendingBytes > pendingBytesMax) await flush()
  }

  async function flush(): Promise<void> {
    const bytes = Buffer.concat(pending)
    pending = []
    pendingBytes = 0
    for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at, bytes.length - at)).bytesWritten
  }

  async function finish(): Promise<WrittenTable | null> {
    await endBlock()
    if (smallest === null || largest === null) {
      await close()
      return null
    }
    const filters = await writeBlock(newBlock(restartEvery).finish())
    const footer = Buffer.alloc(placesBytes + magic.length)
    Buffer.concat([encodePlace(filters), encodePlace(await writeBlock(index.finish()))]).copy(footer)
    magic.copy(footer, placesBytes)
    await append([footer])
    await flush()
    await file.sync()
    await close()
    return { bytes: offset, smallest, largest }
  }

  async function close(): Promise<void> {
    if (!isOpen) return
    isOpen = false
    await file.close()
  }
}

type BlockBuilder = {
  add(key: Buffer, value: Buffer): void
  bytes(): number
  isEmpty(): boolean
  finish(): Buffer
}

function newBlock(every: number): BlockBuilder {
  const parts: Buffer[] = []
  const restarts: number[] = []
  let used = 0
  let count = 0
  let last: Buffer = Buffer.alloc(0)
  return { add, bytes: () => used + 4 * (restarts.length + 1), isEmpty: () => count === 0, finish }

  function add(key: Buffer, value: Buffer): void {
    const isRestart = count % every === 0
    if (isRestart) restarts.push(used)
    const shared = isRestart ? 0 : sharedBytes(last, key)
    const head = Buffer.concat([shared, key.length - shared, value.length].map(encodeVarint))
    parts.push(head, key.subarray(shared), value)
    used += head.length + key.length - shared + value.length
    count += 1
    last = key
  }

  function finish(): Buffer {
    if (restarts.length === 0) restarts.push(0)
    const ends = Buffer.allocUnsafe(4 * (restarts.length + 1))
    for (const [index, restart] of restarts.entries()) ends.writeUInt32LE(restart, 4 * index)
    ends.writeUInt32LE(restarts.length, 4 * restarts.length)
    return Buffer.concat([...parts, ends])
  }
}

function sharedBytes(one: Buffer, other: Buffer): number {
  const length = Math.min(one.length, other.length)
  let shared = 0
  while (shared < length && one[shared] === other[shared]) shared += 1
  return shared
}

function encodePlace({ offset, bytes }: BlockPlace): Buffer {
  return Buffer.concat([encodeVarint(offset), encodeVarint(bytes)])
}
