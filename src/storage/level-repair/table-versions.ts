// table-versions.ts: all versions of each key in a set of tables, in the order of the keys. Reads one block
// of each table at a time, and opens a table only while the walk is between its first and its last key. What
// cannot be read is left out.

import { compareInternal, userKeyOf, type BlockEntry } from '../level-files/table-reader/block.ts'
import { openTable, type TableReader } from '../level-files/table-reader/table-reader.ts'
import type { TableFile } from '../level-files/types.ts'

/** A table with a whole block: its first and last internal keys. */
export type BoundedTable = { table: TableFile; firstKey: Buffer; lastKey: Buffer }

/** A version of a key, and the index of its table. */
type Version = BlockEntry & { from: number }

/** `versions`: the newest first; at least one. */
export type KeyVersions = { versions: Version[] }

type Cursor = {
  from: number
  reader: TableReader
  entries: readonly BlockEntry[]
  at: number
  nextBlock: number
}

export async function* versionsIn(
  path: string,
  tables: readonly BoundedTable[],
  signal: AbortSignal,
): AsyncGenerator<KeyVersions> {
  const waiting = tables
    .map(({ firstKey }, from) => ({ firstKey, from }))
    .toSorted((one, other) => compareInternal(other.firstKey, one.firstKey))
  const open: Cursor[] = []
  let versions: Version[] = []
  try {
    for (;;) {
      const next = waiting[waiting.length - 1]
      const lowest = lowestOf(open)
      if (next !== undefined && (lowest === null || compareInternal(next.firstKey, keyAt(lowest)) <= 0)) {
        waiting.pop()
        signal.throwIfAborted()
        const cursor = await openCursor(path, next.from, tables)
        if (cursor !== null) open.push(cursor)
        continue
      }
      if (lowest === null) break
      const entry = lowest.entries[lowest.at]!
      const isSame = versions[0] !== undefined && userKeyOf(versions[0].key).equals(userKeyOf(entry.key))
      if (!isSame && versions.length > 0) {
        yield { versions }
        versions = []
      }
      versions.push({ ...entry, from: lowest.from })
      if (await advance(lowest)) continue
      open.splice(open.indexOf(lowest), 1)
      await lowest.reader.close()
    }
    if (versions.length > 0) yield { versions }
  } finally {
    for (const { reader } of open) await reader.close()
  }
}

const keyAt = ({ entries, at }: Cursor) => entries[at]!.key

/** Few tables are open at a time: those of a level follow each other. */
function lowestOf(open: readonly Cursor[]): Cursor | null {
  let lowest: Cursor | null = null
  for (const cursor of open)
    if (lowest === null || compareInternal(keyAt(cursor), keyAt(lowest)) < 0) lowest = cursor
  return lowest
}

async function openCursor(
  path: string,
  from: number,
  tables: readonly BoundedTable[],
): Promise<Cursor | null> {
  const reader = await openTable(path, tables[from]!.table)
  const cursor: Cursor = { from, reader, entries: [], at: 0, nextBlock: 0 }
  if (await readBlock(cursor)) return cursor
  await reader.close()
  return null
}

/** False at the end of the table. */
async function advance(cursor: Cursor): Promise<boolean> {
  cursor.at += 1
  return cursor.at < cursor.entries.length || readBlock(cursor)
}

async function readBlock(cursor: Cursor): Promise<boolean> {
  while (cursor.nextBlock < cursor.reader.blocks.length) {
    const entries = await cursor.reader.entries(cursor.nextBlock)
    cursor.nextBlock += 1
    if (!Array.isArray(entries) || entries.length === 0) continue
    cursor.entries = entries
    cursor.at = 0
    return true
  }
  return false
}
