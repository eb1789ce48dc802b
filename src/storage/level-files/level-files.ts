// level-files.ts: reads the files of a LevelDB database without LevelDB, which aborts the process on some
// damaged tables and drops what follows damage in a log. Entry file of this folder. It knows no payload.
//
//   CURRENT --> manifest --> live tables --+
//                       '--> live logs  ---+--> merged by key and sequence --> newest versions
//
// Whatever the bytes are, no read fails and none loses more than the checksummed unit that is damaged: a
// block of a table, a write of a log. What cannot be read is in `damage`, with the keys that it can hold.
// Where the newest version of a key is lost, an older one comes back; where a deletion is lost, the deleted
// entry comes back. Without a whole manifest every table and every log of the directory is read: then
// entries can come back that were deleted before.
//
// Memory: the keys of the logs, and one block of each table that holds the current key. The files are opened
// to read; nothing is changed or locked.
//
//   store-directory.ts   which files are live, with manifest.ts
//   table-reader/        tables                        table-writer.ts   writes them
//   log-reader.ts        logs and manifests            log-writer.ts     writes them
//   log-index.ts         the entries of all logs, with write-batch.ts
//   merged-view.ts       the versions of all sources in order

import { assert } from '../../std/assert.ts'
import { defaultPageBytes, type ReadOptions, type StoreEntry, type StoreRange } from '../types.ts'
import { indexLogs } from './log-index.ts'
import { versionsIn, type Version } from './merged-view.ts'
import { readStoreDirectory } from './store-directory.ts'
import { sequenceOf, userKeyOf } from './table-reader/block.ts'
import { openTable, type TableLayout, type TableReader } from './table-reader/table-reader.ts'
import type { FileDamage, LogFile, Manifest, RawEntry, TableFile } from './types.ts'

export type {
  CheckProgress,
  CheckReport,
  CheckRequest,
  CheckStore,
  FileDamage,
  MendedLog,
  VerifiedTable,
} from './types.ts'

export type LevelFiles = {
  readonly path: string
  readonly manifest: Manifest | null
  /** Live tables that exist. The keys of those that no manifest names are read from the table. */
  readonly tables: readonly TableFile[]
  /** Live logs, by number. */
  readonly logs: readonly LogFile[]
  /** Names of live tables that do not exist. */
  readonly missing: readonly string[]
  /** Everything found so far: CURRENT, manifest, sizes and logs at the opening, tables by reading them. */
  readonly damage: readonly FileDamage[]
  readonly lastSequence: number
  /** Reads every block of a table, also those that no reader of entries needs. Rejects when it is aborted. */
  checkTable(table: TableFile, options?: CheckTableOptions): Promise<FileDamage[]>
  /** The newest versions of the keys in the range, in their order. Reading backwards is not offered. */
  pages(range: StoreRange, options?: Omit<ReadOptions, 'reverse'>): AsyncIterable<readonly StoreEntry[]>
  /** Every version in the range, the newest first of each key. */
  raw(range: StoreRange): AsyncIterable<readonly RawEntry[]>
  get(key: Buffer): Promise<Buffer | undefined>
  close(): Promise<void>
}

export type CheckTableOptions = { signal?: AbortSignal; onBytes?: (bytes: number) => void }

/** Layouts of damaged tables in memory: those are searched for blocks, which takes up to a second each. */
const keptLayoutsMax = 64

/** Rejects with the code of the file system where the directory or a file in it may not be read. */
export async function openLevelFiles(path: string): Promise<LevelFiles> {
  const { manifest, missing, ...directory } = await readStoreDirectory(path)
  const damage: FileDamage[] = [...directory.damage]
  const layouts = new Map<string, TableLayout>()
  const tables: TableFile[] = []
  const sizes = new Map([...(manifest?.tables.values() ?? [])].map(({ name, bytes }) => [name, bytes]))
  for (const table of directory.tables) {
    const isNamed = table.smallest !== null && table.bytes >= (sizes.get(table.name) ?? 0)
    tables.push(isNamed ? table : await withKeys(table))
  }
  const logs = await indexLogs(path, directory.logs)
  logs.damage.forEach(report)
  if (directory.missingLog !== null) {
    const keys = { after: null, until: null }
    const what = 'the file is missing'
    report({ file: directory.missingLog, unit: 'log', offset: 0, bytes: 0, what, keys })
  }
  const lastSequence = Math.max(manifest?.lastSequence ?? 0, logs.lastSequence)
  const sources = { tables, logs, open, report }
  return {
    path,
    manifest,
    tables,
    logs: directory.logs,
    missing,
    damage,
    lastSequence,
    checkTable,
    pages: (range, options = {}) => newestIn(versionsIn(sources, range), options),
    raw: (range) => rawIn(versionsIn(sources, range)),
    async get(key) {
      const range = { gte: key, lt: Buffer.concat([key, Buffer.of(0)]) }
      for await (const [entry] of newestIn(versionsIn(sources, range), { limit: 1 })) return entry?.[1]
      return undefined
    },
    close: logs.close,
  }

  function report(found: FileDamage): void {
    const known = damage.findIndex((one) => isSame(one, found))
    if (known < 0) damage.push(found)
    // A table that was cut is known by its size first, and by its keys when it is read.
    else if (damage[known]!.keys === null) damage[known] = found
  }

  async function open(table: TableFile): Promise<TableReader> {
    const bytes = sizes.get(table.name) ?? table.bytes
    const reader = await openTable(path, { ...table, bytes }, layouts.get(table.name))
    if (reader.damage.length > 0) {
      reader.damage.forEach(report)
      layouts.set(table.name, reader.layout)
      const [oldest] = layouts.keys()
      if (layouts.size > keptLayoutsMax && oldest !== undefined) layouts.delete(oldest)
    }
    return reader
  }

  /** With the keys of the first and of the last block that can be read. */
  async function withKeys(table: TableFile): Promise<TableFile> {
    const reader = await open(table)
    try {
      const last = reader.blocks[reader.blocks.length - 1]
      if (last === undefined) return table
      for (const index of reader.blocks.keys()) {
        const entries = await reader.entries(index)
        if (!Array.isArray(entries) || entries[0] === undefined) continue
        const end = await reader.entries(reader.blocks.length - 1)
        // The index can name a key behind the last one.
        const lastKey = Array.isArray(end) ? (end[end.length - 1]?.key ?? last.lastKey) : last.lastKey
        return extended(table, userKeyOf(entries[0].key), userKeyOf(lastKey))
      }
      return table
    } finally {
      await reader.close()
    }
  }

  async function checkTable(table: TableFile, options?: CheckTableOptions): Promise<FileDamage[]> {
    const reader = await open(table)
    try {
      const found = await reader.check(options)
      found.forEach(report)
      return found
    } finally {
      await reader.close()
    }
  }
}

/** Another table can be in the place of the named one, with keys beyond its own. */
function extended(table: TableFile, first: Buffer, last: Buffer): TableFile {
  const { smallest, largest } = table
  return {
    ...table,
    smallest: smallest !== null && smallest.compare(first) < 0 ? smallest : first,
    largest: largest !== null && largest.compare(last) > 0 ? largest : last,
  }
}

function isSame(one: FileDamage, other: FileDamage): boolean {
  const isPlace = one.file === other.file && one.unit === other.unit
  return isPlace && (one.offset === other.offset || one.unit === 'table')
}

async function* newestIn(
  versions: AsyncIterable<Version>,
  { limit = Infinity, pageBytes = defaultPageBytes }: Omit<ReadOptions, 'reverse'>,
): AsyncGenerator<readonly StoreEntry[]> {
  assert(limit >= 0, 'a limit is no negative number')
  let page: StoreEntry[] = []
  let bytes = 0
  let left = limit
  let last: Buffer | null = null
  for await (const version of versions) {
    if (left <= 0) break
    const key = userKeyOf(version.key)
    if (last !== null && last.equals(key)) continue
    last = key
    const value = version.isDeletion ? null : await version.value()
    if (value === null) continue
    page.push([key, value])
    bytes += key.length + value.length
    left -= 1
    if (bytes < pageBytes) continue
    yield page
    page = []
    bytes = 0
  }
  if (page.length > 0) yield page
}

async function* rawIn(versions: AsyncIterable<Version>): AsyncGenerator<readonly RawEntry[]> {
  let page: RawEntry[] = []
  let bytes = 0
  for await (const version of versions) {
    const value = version.isDeletion ? null : await version.value()
    if (value === null && !version.isDeletion) continue
    const { key } = version
    page.push({ key: userKeyOf(key), sequence: sequenceOf(key), value })
    bytes += key.length + (value?.length ?? 0)
    if (bytes < defaultPageBytes) continue
    yield page
    page = []
    bytes = 0
  }
  if (page.length > 0) yield page
}
