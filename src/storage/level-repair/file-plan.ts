// file-plan.ts: what a repair will do with each file of a database. Reads everything and changes nothing.

import { readLogState, type LogState } from '../store-check/log-mending.ts'
import type { FileDamage } from '../level-files/level-files.ts'
import { asNamed, readStoreDirectory, type StoreDirectory } from '../level-files/store-directory.ts'
import { userKeyOf } from '../level-files/table-reader/block.ts'
import { openTable, type TableReader } from '../level-files/table-reader/table-reader.ts'
import type { Manifest, TableFile } from '../level-files/types.ts'
import { mergedLevel, orderTables } from './level-order.ts'
import type { BoundedTable } from './table-versions.ts'

/**
 * A table of the new version. `keep`: it stays as it is. `renumber`: it stays under a larger number, to
 * remain above others. `rewrite`: its whole blocks are copied into a new table. `merge`: it is merged with
 * others.
 */
export type PlannedTable = BoundedTable & {
  action: 'keep' | 'renumber' | 'rewrite' | 'merge'
  level: number
  /** Bytes of its whole blocks. */
  keptBytes: number
}

export type FilePlan = {
  directory: StoreDirectory
  /** Everything that is damaged, logs included. None: there is nothing to do. */
  damage: readonly FileDamage[]
  /** Those at level 0 with the oldest first. */
  tables: readonly PlannedTable[]
  /** Names of live tables of which nothing is left. */
  lostTables: readonly string[]
  /** The logs become tables. */
  logs: readonly LogState[]
  lastSequence: number
  /** Of the files that it writes. */
  bytesNeeded: number
}

export type PlanOptions = {
  signal: AbortSignal
  onProgress?: (progress: { bytesRead: number; bytesTotal: number; file: string }) => void
  /** Files with this number and above do not count: an interrupted repair left them. */
  below?: number
}

/** For the manifest, the journal and the directory. */
const smallFilesBytes = 1024 * 1024

/** Rejects where the directory cannot be read, and when `signal` aborts. */
export async function planFiles(path: string, options: PlanOptions): Promise<FilePlan> {
  const { signal, onProgress = () => undefined } = options
  const directory = await readStoreDirectory(path, options.below)
  const { manifest, tables, logs } = directory
  const bytesTotal = [...tables, ...logs].reduce((sum, { bytes }) => sum + bytes, 0)
  let bytesRead = 0
  let damage = [...directory.damage]
  const planned: PlannedTable[] = []
  const lostTables: string[] = [...directory.missing]
  for (const table of tables) {
    signal.throwIfAborted()
    const onBytes = (bytes: number) => {
      bytesRead += bytes
      onProgress({ bytesRead, bytesTotal, file: table.name })
    }
    const found = await readTable(path, asNamed(table, manifest), { manifest, signal, onBytes })
    damage = [...damage.filter(({ file }) => file !== table.name), ...found.damage]
    if (found.planned === null) lostTables.push(table.name)
    else planned.push(found.planned)
  }
  const states: LogState[] = []
  for (const log of logs) {
    signal.throwIfAborted()
    states.push(await readLogState(path, log, states[states.length - 1] ?? null))
  }
  if (directory.missingLog !== null) damage.push(missingLogDamage(directory.missingLog))
  damage.push(...states.flatMap((state) => state.damage))
  const isNamed = manifest?.isComplete === true && planned.every((table) => fitsPlace(table, manifest))
  const order = isNamed ? named(planned, manifest) : await ordered(path, planned, signal)
  const written = order.tables.filter(({ action }) => action === 'rewrite')
  return {
    directory,
    damage,
    tables: order.tables,
    lostTables,
    logs: states,
    lastSequence: Math.max(
      manifest?.lastSequence ?? 0,
      order.lastSequence,
      ...states.map((state) => state.lastSequence),
    ),
    bytesNeeded:
      smallFilesBytes +
      order.mergedBytes +
      logs.reduce((sum, { bytes }) => sum + bytes, 0) +
      written.reduce((sum, { keptBytes }) => sum + keptBytes, 0),
  }
}

function missingLogDamage(file: string): FileDamage {
  const keys = { after: null, until: null }
  return { file, unit: 'log', offset: 0, bytes: 0, what: 'the file is missing', keys }
}

type ReadOptions = { manifest: Manifest | null; signal: AbortSignal; onBytes: (bytes: number) => void }

/** Planned null: no block of it is whole. */
async function readTable(
  path: string,
  table: TableFile,
  { manifest, signal, onBytes }: ReadOptions,
): Promise<{ damage: FileDamage[]; planned: PlannedTable | null }> {
  const reader = await openTable(path, table)
  try {
    const damage = await reader.check({ signal, onBytes })
    const action = damage.length > 0 ? 'rewrite' : 'keep'
    const known = damage.length > 0 ? undefined : manifest?.tables.get(table.number)
    const bounds = known ?? (await boundsOf(reader))
    if (bounds === null) return { damage, planned: null }
    const { firstKey, lastKey } = bounds
    const bad = new Set(damage.map(({ offset }) => offset))
    const keptBytes = reader.blocks.reduce((sum, { offset, bytes }) => sum + (bad.has(offset) ? 0 : bytes), 0)
    const level = table.level ?? 0
    return { damage, planned: { table, firstKey, lastKey, level, action, keptBytes } }
  } finally {
    await reader.close()
  }
}

/** The first and the last key of the whole blocks; null if there are none. */
async function boundsOf(reader: TableReader): Promise<Pick<BoundedTable, 'firstKey' | 'lastKey'> | null> {
  const first = await firstEntries(reader, [...reader.blocks.keys()])
  const last = await firstEntries(reader, [...reader.blocks.keys()].toReversed())
  const firstKey = first?.[0]?.key
  const lastKey = last?.[last.length - 1]?.key
  return firstKey === undefined || lastKey === undefined ? null : { firstKey, lastKey }
}

async function firstEntries(reader: TableReader, indexes: readonly number[]) {
  for (const index of indexes) {
    const entries = await reader.entries(index)
    if (Array.isArray(entries) && entries.length > 0) return entries
  }
  return null
}

/** Another table in the place of a named one can overlap others of the level. */
function fitsPlace({ table, firstKey, lastKey }: PlannedTable, { tables }: Manifest): boolean {
  const place = tables.get(table.number)
  if (place === undefined) return false
  const { smallest, largest } = place
  if (smallest === null || largest === null) return false
  return userKeyOf(firstKey).compare(smallest) >= 0 && userKeyOf(lastKey).compare(largest) <= 0
}

type Ordered = { tables: PlannedTable[]; mergedBytes: number; lastSequence: number }

/**
 * By the manifest. Of level 0, a larger number is newer: what is above a new table gets a new number, too.
 */
function named(planned: readonly PlannedTable[], { lastSequence }: Manifest): Ordered {
  let isAboveNew = false
  const tables = planned
    .toSorted((one, other) => one.table.number - other.table.number)
    .map((table): PlannedTable => {
      if (table.level > 0) return table
      if (table.action === 'rewrite') isAboveNew = true
      return isAboveNew && table.action === 'keep' ? { ...table, action: 'renumber' } : table
    })
  return { tables, mergedBytes: 0, lastSequence }
}

/**
 * By their keys: without a complete manifest, or where it names other keys. Numbers say nothing then, so
 * each table at level 0 gets a new one.
 */
async function ordered(
  path: string,
  planned: readonly PlannedTable[],
  signal: AbortSignal,
): Promise<Ordered> {
  const { levels, top, mergedBytes, lastSequence } = await orderTables(path, planned, signal)
  const placed = planned.map((table, index): PlannedTable => {
    const level = levels[index] ?? 0
    if (level === 'merged') return { ...table, level: mergedLevel, action: 'merge' }
    return { ...table, level, action: level === 0 && table.action === 'keep' ? 'renumber' : table.action }
  })
  const below = placed.filter((_table, index) => !top.includes(index))
  return { tables: [...below, ...top.map((index) => placed[index]!)], mergedBytes, lastSequence }
}
