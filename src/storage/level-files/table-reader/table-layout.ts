// table-layout.ts: finds the data blocks of a table, by its footer and index where they are whole.
//
//   table     data blocks, filter, index of the filters, index, footer
//   filter    tells LevelDB for a key that no block has it
//   index of the filters    a block. Key: filter.NAME. Value: place of the filter. Tables without a filter
//             have an empty one
//   index     a block. Key: not before the last key of a data block, and before the first of the next one.
//             Value: place of the data block
//   footer    places of the two indexes, filled up to 40 bytes, magic number (8)
//   place     offset and bytes (varints), without the five bytes behind each block

import type { FileBytes } from '../file-bytes.ts'
import type { BlockPlace, FileDamage, TableFile } from '../types.ts'
import {
  compareInternal,
  hasChecksum,
  readPlace,
  readStored,
  trailerBytes,
  userKeyOf,
  type BlockEntry,
} from './block.ts'
import { blockAt, searchBlock } from './block-search.ts'

/** What is known of a table beside its bytes. `bytes` is its size where no version names it. */
export type KnownTable = Pick<TableFile, 'name' | 'bytes' | 'smallest' | 'largest'>

/** A data block. Its last key is not behind `lastKey`, an internal key. */
export type TableBlock = BlockPlace & { lastKey: Buffer }

/** Where the data blocks of a table are. Tables do not change, so it can be kept. */
export type TableLayout = {
  /** In the order of their keys. */
  blocks: readonly TableBlock[]
  /** Of the footer, the index, and what lies between found blocks. */
  damage: readonly FileDamage[]
  /** The index of the filters; null where the footer or the index is damaged, too. */
  filters: BlockPlace | null
}

type Footer = { filters: BlockPlace; index: BlockPlace }

const footerBytes = 48
const magic = Buffer.from('57fb808b247547db', 'hex')
const notFound = 'no whole block was found here'

export async function layoutOf(file: FileBytes, table: KnownTable): Promise<TableLayout> {
  const size = Math.min(file.size, table.bytes)
  const footer = await readFooter(file, size)
  if (footer !== null) {
    const entries = await readEntries(file, footer.index)
    const blocks = entries === null ? null : blocksIn(entries, footer.index.offset)
    if (blocks !== null) return { blocks, damage: [], filters: footer.filters }
  }
  const { blocks, gaps, from, isEndFound } = await searchBlocks(file, table.name)
  const damage = [...gaps]
  const rest = { file: table.name, offset: from, keys: isEndFound ? null : restOf(blocks, table.largest) }
  if (size < table.bytes) {
    const what = `the file ends at byte ${size} and had ${table.bytes} bytes`
    const offset = rest.keys === null ? size : from
    damage.push({ ...rest, unit: 'table', offset, bytes: table.bytes - offset, what })
    return { blocks, damage, filters: null }
  }
  const dataEnd = footer === null ? size : await dataEndOf(file, footer)
  if (rest.keys !== null && from < dataEnd)
    damage.push({ ...rest, unit: 'block', bytes: dataEnd - from, what: notFound })
  damage.push(damageOfIndex(file, table, footer))
  return { blocks, damage, filters: null }
}

/** The keys that can be behind the last found block. Null if there are none. */
function restOf(blocks: readonly TableBlock[], largest: Buffer | null): FileDamage['keys'] {
  const last = blocks[blocks.length - 1]
  const after = last === undefined ? null : userKeyOf(last.lastKey)
  return after !== null && largest !== null && after.compare(largest) >= 0 ? null : { after, until: largest }
}

function damageOfIndex(
  file: FileBytes,
  { name, bytes: size }: KnownTable,
  footer: Footer | null,
): FileDamage {
  const offset = footer?.index.offset ?? Math.max(0, size - footerBytes)
  const bytes = footer === null ? size - offset : footer.index.bytes + trailerBytes
  const wrong = footer === null ? 'it is malformed' : 'its checksum is wrong, or its content is malformed'
  const what = file.hasFailed(offset, bytes) ? 'the disk cannot read it' : wrong
  return { file: name, unit: footer === null ? 'footer' : 'index', offset, bytes, what, keys: null }
}

/** Null if it is damaged. LevelDB ignores the bytes between the places and the magic number. */
async function readFooter(file: FileBytes, size: number): Promise<Footer | null> {
  if (size < footerBytes) return null
  const footer = await file.read(size - footerBytes, footerBytes)
  const placesEnd = footerBytes - magic.length
  if (footer.length < footerBytes || !footer.subarray(placesEnd).equals(magic)) return null
  const head = { at: 0 }
  const filters = readPlace(footer, head, placesEnd)
  const index = filters === null ? null : readPlace(footer, head, placesEnd)
  if (filters === null || index === null || endOf(index) > size - footerBytes) return null
  return endOf(filters) <= index.offset ? { filters, index } : null
}

const endOf = ({ offset, bytes }: BlockPlace) => offset + bytes + trailerBytes

/** True if a read holds a block from `start` on with its trailer, and the checksum is right. */
export function isWhole(read: Buffer, start: number, bytes: number): boolean {
  return read.length >= start + bytes + trailerBytes && hasChecksum(read, start, start + bytes)
}

async function readEntries(file: FileBytes, { offset, bytes }: BlockPlace): Promise<BlockEntry[] | null> {
  const stored = await file.read(offset, bytes + trailerBytes)
  return isWhole(stored, 0, bytes) ? readStored(stored, 0, bytes) : null
}

/** The data blocks that an index names; null if it is none. They fill the file from its start on. */
function blocksIn(entries: readonly BlockEntry[], offset: number): TableBlock[] | null {
  let end = 0
  const blocks: TableBlock[] = []
  for (const { key, value } of entries) {
    const place = placeIn(value)
    if (place === null || place.offset !== end) return null
    end = endOf(place)
    blocks.push({ ...place, lastKey: key })
  }
  return blocks.length > 0 && end <= offset ? blocks : null
}

function placeIn(value: Buffer): BlockPlace | null {
  const head = { at: 0 }
  const place = readPlace(value, head, value.length)
  return head.at === value.length ? place : null
}

/** The place of the filter, 'none', or null if this is no index of the filters. */
function filterIn(entries: readonly BlockEntry[], offset: number): BlockPlace | 'none' | null {
  const [entry, second] = entries
  if (entry === undefined) return 'none'
  if (second !== undefined || entry.key.toString('latin1', 0, 7) !== 'filter.') return null
  const place = placeIn(entry.value)
  return place !== null && endOf(place) === offset ? place : null
}

/** Where the data blocks end at the latest. */
async function dataEndOf(file: FileBytes, { filters }: Footer): Promise<number> {
  const entries = await readEntries(file, filters)
  const filter = entries === null ? null : filterIn(entries, filters.offset)
  return filter === null || filter === 'none' ? filters.offset : filter.offset
}

/** What is wrong with the filter or with the index of the filters, or null. */
export async function damageOfFilter(
  file: FileBytes,
  name: string,
  filters: BlockPlace,
): Promise<FileDamage | null> {
  const entries = await readEntries(file, filters)
  const filter = entries === null ? null : filterIn(entries, filters.offset)
  if (filter === 'none') return null
  const { offset, bytes } = filter ?? filters
  if (filter !== null && isWhole(await file.read(offset, bytes + trailerBytes), 0, bytes)) return null
  const what = file.hasFailed(offset, bytes) ? 'the disk cannot read it' : 'its checksum is wrong'
  return { file: name, unit: 'filter', offset, bytes: bytes + trailerBytes, what, keys: null }
}

/** Found without footer or index. Behind `from` nothing was found; `isEndFound`: nor is any data there. */
type Found = { blocks: TableBlock[]; gaps: FileDamage[]; from: number; isEndFound: boolean }

async function searchBlocks(file: FileBytes, name: string): Promise<Found> {
  const blocks: TableBlock[] = []
  const gaps: FileDamage[] = []
  let from = 0
  let isEndFound = false
  for (;;) {
    const last = blocks[blocks.length - 1]?.lastKey ?? null
    const found = (await blockAt(file, from)) ?? (await searchBlock(file, from, accept(last)))
    if (found === null) return { blocks, gaps, from, isEndFound }
    const { entries, offset } = found
    const filter = entries === null ? found : filterIn(entries, offset)
    const indexed = entries === null || filter !== null ? null : blocksIn(entries, offset)
    if (indexed !== null) return { blocks: indexed, gaps: [], from, isEndFound: true }
    const isData = entries !== null && filter === null
    const dataEnd = filter === null || filter === 'none' ? offset : filter.offset
    if (dataEnd > from) gaps.push(gapBefore(dataEnd, isData ? userKeyOf(entries[0]!.key) : null))
    if (isData) blocks.push({ offset, bytes: found.bytes, lastKey: entries[entries.length - 1]!.key })
    else isEndFound = true
    from = endOf(found)
  }

  function gapBefore(end: number, until: Buffer | null): FileDamage {
    const last = blocks[blocks.length - 1]
    const keys = { after: last === undefined ? null : userKeyOf(last.lastKey), until }
    return { file: name, unit: 'block', offset: from, bytes: end - from, what: notFound, keys }
  }
}

/** A value can contain a block. Data blocks behind `last` are accepted, and the two indexes. */
function accept(last: Buffer | null): (entries: BlockEntry[], offset: number) => boolean {
  return (entries, offset) => {
    const [first] = entries
    if (first === undefined) return false
    if (last === null || compareInternal(first.key, last) > 0) return true
    return blocksIn(entries, offset) !== null || filterIn(entries, offset) !== null
  }
}
