// table-copies.ts: the tables that a repair writes: the whole blocks of a damaged table, the newest versions
// of several tables, the content of a log, and entries that are added.

import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { tableName } from '../level-files/manifest.ts'
import { compareInternal, internalKeyOf, userKeyOf } from '../level-files/table-reader/block.ts'
import { openTable } from '../level-files/table-reader/table-reader.ts'
import { createTable, type TableWriter } from '../level-files/table-writer.ts'
import type { TableFile, VersionTable } from '../level-files/types.ts'
import { readLogBatches } from '../level-files/write-batch.ts'
import type { LogState } from '../store-check/log-mending.ts'
import { versionsIn, type BoundedTable } from './table-versions.ts'

/** Where new tables go. `takeNumber` gives the number of a new file. */
export type Target = { path: string; takeNumber: () => number; signal: AbortSignal }

/** A new table without its level. */
export type NewTable = Omit<VersionTable, 'level'>

/** `value` is null for a deletion. */
export type NewEntry = readonly [key: Buffer, value: Buffer | null]

/** As large as those that LevelDB writes. */
const tableBytes = 8 * 1024 * 1024
/** Entries of a log in memory. A log is about as large as LevelDB's write buffer. */
const memoryBytes = 32 * 1024 * 1024

/** Copies the whole blocks of a table as they are stored. Null if none is whole any more. */
export async function copyTable(target: Target, table: TableFile): Promise<NewTable | null> {
  const reader = await openTable(target.path, table)
  try {
    return await writeOne(target, async (writer) => {
      for (const index of reader.blocks.keys()) {
        target.signal.throwIfAborted()
        const entries = await reader.entries(index)
        const block = await reader.stored(index)
        if (!Array.isArray(entries) || entries.length === 0 || !Buffer.isBuffer(block)) continue
        await writer.addStored(block, entries[0]!.key, entries[entries.length - 1]!.key)
      }
    })
  } finally {
    await reader.close()
  }
}

/** The newest version of each key of some tables. The new tables do not overlap. */
export async function mergeTables(target: Target, tables: readonly BoundedTable[]): Promise<NewTable[]> {
  return writeMany(target, newestIn(target, tables))
}

async function* newestIn({ path, signal }: Target, tables: readonly BoundedTable[]) {
  for await (const { versions } of versionsIn(path, tables, signal)) {
    const { key, value } = versions[0]!
    yield { key, value }
  }
}

/** The content of a log, in tables of which the later ones are newer. */
export async function tablesOfLog(target: Target, { log, nextSequence }: LogState): Promise<NewTable[]> {
  const made: NewTable[] = []
  let entries: InternalEntry[] = []
  let bytes = 0
  const flush = async () => {
    const table = await writeSorted(target, entries)
    if (table !== null) made.push(table)
    entries = []
    bytes = 0
  }
  const file = await open(join(target.path, log.name))
  try {
    for await (const item of readLogBatches(file, { nextSequence })) {
      if (item.kind !== 'batch') continue
      const { sequence, operations } = item.batch
      for (const [index, { key, value }] of operations.entries())
        entries.push({
          key: internalKeyOf(key, sequence + index, value === null ? 0 : 1),
          value: value ?? Buffer.alloc(0),
        })
      bytes += item.bytes
      if (bytes >= memoryBytes) await flush()
    }
    await flush()
  } finally {
    await file.close()
  }
  return made
}

/** Entries in the order of their keys, each key once, all with the same sequence. */
export function tablesOfEntries(
  target: Target,
  entries: AsyncIterable<NewEntry> | Iterable<NewEntry>,
  sequence: number,
): Promise<NewTable[]> {
  return writeMany(target, withSequence(entries, sequence))
}

type InternalEntry = { key: Buffer; value: Buffer }

async function* withSequence(entries: AsyncIterable<NewEntry> | Iterable<NewEntry>, sequence: number) {
  for await (const [key, value] of entries)
    yield { key: internalKeyOf(key, sequence, value === null ? 0 : 1), value: value ?? Buffer.alloc(0) }
}

function writeSorted(target: Target, entries: InternalEntry[]): Promise<NewTable | null> {
  entries.sort((one, other) => compareInternal(one.key, other.key))
  return writeOne(target, async (writer) => {
    let last: Buffer | null = null
    for (const { key, value } of entries) {
      // Older versions of the same key are hidden.
      if (last !== null && userKeyOf(last).equals(userKeyOf(key))) continue
      await writer.add(key, value)
      last = key
    }
  })
}

async function writeMany(target: Target, entries: AsyncIterable<InternalEntry>): Promise<NewTable[]> {
  const made: NewTable[] = []
  const iterator = entries[Symbol.asyncIterator]()
  let next = await iterator.next()
  while (next.done !== true) {
    let bytes = 0
    const table = await writeOne(target, async (writer) => {
      for (; next.done !== true && bytes < tableBytes; next = await iterator.next()) {
        target.signal.throwIfAborted()
        await writer.add(next.value.key, next.value.value)
        bytes += next.value.key.length + next.value.value.length
      }
    })
    if (table !== null) made.push(table)
  }
  return made
}

/** Null if nothing was added. */
async function writeOne(
  { path, takeNumber }: Target,
  fill: (writer: TableWriter) => Promise<void>,
): Promise<NewTable | null> {
  const number = takeNumber()
  const name = tableName(number)
  const writer = await createTable(join(path, name))
  try {
    await fill(writer)
    const written = await writer.finish()
    if (written === null) return null
    const { bytes, smallest: firstKey, largest: lastKey } = written
    return {
      number,
      name,
      bytes,
      smallest: userKeyOf(firstKey),
      largest: userKeyOf(lastKey),
      firstKey,
      lastKey,
    }
  } finally {
    await writer.close()
  }
}
