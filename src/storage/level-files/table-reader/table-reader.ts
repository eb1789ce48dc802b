// table-reader.ts: reads a table of LevelDB that may be damaged. Entry file of this folder.
//
// With a whole footer and index, a bad data block costs its own entries. Without them the blocks are found by
// their checksums, and often the index among them. What lies between the found blocks is reported as damage,
// with the keys that it can hold.
//
// A whole table can be another one than the manifest names, from a copy or with another name. LevelDB reads a
// table by the size and the keys that the manifest names, so that is damage, too.
//
// table-layout.ts finds the blocks, with block-search.ts; block.ts decodes them, snappy.ts decompresses them.

import { join } from 'node:path'
import type { FileDamage } from '../types.ts'
import { openFileBytes, type FileBytes } from '../file-bytes.ts'
import { keyBefore, readStored, trailerBytes, userKeyOf, type BlockEntry } from './block.ts'
import { damageOfFilter, isWhole, layoutOf, type KnownTable, type TableLayout } from './table-layout.ts'

export type { KnownTable, TableBlock, TableLayout } from './table-layout.ts'

export type TableReader = Pick<TableLayout, 'blocks' | 'damage'> & {
  /** To open the same table again without a search. */
  readonly layout: TableLayout
  /** The index of the first block that can hold `userKey` or keys behind it; `blocks.length` if none can. */
  seek(userKey: Buffer): number
  /** The entries of a block, or what is wrong with it. */
  entries(index: number): Promise<BlockEntry[] | FileDamage>
  /** A block with its trailer, as it is stored; or what is wrong with it. */
  stored(index: number): Promise<Buffer | FileDamage>
  /** Reads every block. `onBytes` gets the bytes read since the call before. */
  check(options?: { signal?: AbortSignal; onBytes?: (bytes: number) => void }): Promise<FileDamage[]>
  close(): Promise<void>
}

/** The thread that checks tables has little memory. */
const readBytes = 256 * 1024

/** Opens a table in the directory `path`. Never rejects for damage, but with the code of the file system. */
export async function openTable(path: string, table: KnownTable, known?: TableLayout): Promise<TableReader> {
  const file = await openFileBytes(join(path, table.name))
  try {
    return readerOf(file, table, known ?? (await layoutOf(file, table)))
  } catch (error) {
    await file.close()
    throw error
  }
}

function readerOf(file: FileBytes, table: KnownTable, layout: TableLayout): TableReader {
  const { name } = table
  const { blocks, damage } = layout
  return { layout, blocks, damage, seek, entries, stored, check, close: () => file.close() }

  function seek(userKey: Buffer): number {
    let low = 0
    let high = blocks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (userKeyOf(blocks[middle]!.lastKey).compare(userKey) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  async function stored(index: number): Promise<Buffer | FileDamage> {
    const { offset, bytes } = blocks[index]!
    const read = await file.read(offset, bytes + trailerBytes)
    return isWhole(read, 0, bytes) ? read : damageOf(index, wrongChecksum(offset, bytes))
  }

  async function entries(index: number): Promise<BlockEntry[] | FileDamage> {
    const block = await stored(index)
    if (!Buffer.isBuffer(block)) return block
    return readStored(block, 0, block.length - trailerBytes) ?? damageOf(index, 'its content is malformed')
  }

  async function check(
    options: { signal?: AbortSignal; onBytes?: (bytes: number) => void } = {},
  ): Promise<FileDamage[]> {
    const found: FileDamage[] = [...damage]
    let from = 0
    let read: Buffer = Buffer.alloc(0)
    for (const [index, { offset, bytes }] of blocks.entries()) {
      const end = offset + bytes + trailerBytes
      if (offset < from || end > from + read.length) {
        options.signal?.throwIfAborted()
        from = offset
        read = await file.read(from, Math.max(readBytes, end - offset))
        options.onBytes?.(read.length)
      }
      if (!isWhole(read, offset - from, bytes)) found.push(damageOf(index, wrongChecksum(offset, bytes)))
    }
    const filter = layout.filters === null ? null : await damageOfFilter(file, name, layout.filters)
    if (filter !== null) found.push(filter)
    const other = found.length === 0 ? await otherTable() : null
    return other === null ? found : [other]
  }

  /** A whole table that is not the one that is known. LevelDB reads one by its known size and keys. */
  async function otherTable(): Promise<FileDamage | null> {
    const { smallest, largest, bytes } = table
    const first = await entries(0)
    if (!Array.isArray(first)) return first
    const last = await entries(blocks.length - 1)
    if (!Array.isArray(last)) return last
    const isKnown =
      file.size >= bytes &&
      (smallest === null || isKeyOf(first[0], smallest)) &&
      (largest === null || isKeyOf(last[last.length - 1], largest))
    if (isKnown) return null
    const size = file.size < bytes ? `it has ${file.size} bytes instead of ${bytes}` : 'it has other keys'
    const keys = { after: smallest === null ? null : keyBefore(smallest), until: largest }
    const what = `another table is in its place: ${size}`
    return { file: name, unit: 'table', offset: 0, bytes, what, keys }
  }

  function wrongChecksum(offset: number, bytes: number): string {
    return file.hasFailed(offset, bytes) ? 'the disk cannot read it' : 'its checksum is wrong'
  }

  function damageOf(index: number, what: string): FileDamage {
    const { offset, bytes, lastKey } = blocks[index]!
    const before = blocks[index - 1]
    const keys = { after: before === undefined ? null : userKeyOf(before.lastKey), until: userKeyOf(lastKey) }
    return { file: name, unit: 'block', offset, bytes: bytes + trailerBytes, what, keys }
  }
}

const isKeyOf = (entry: BlockEntry | undefined, userKey: Buffer) =>
  entry !== undefined && userKeyOf(entry.key).equals(userKey)
