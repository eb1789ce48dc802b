// merged-view.ts: the entries of tables and logs as one ordered sequence of versions.
//
// Each source is a cursor that stands on an internal key. The cursor with the smallest key comes next. A
// table is opened when the sequence reaches its smallest key and closed behind its largest, so that one block
// of few tables is in memory: tables of one level do not overlap.
//
// A damaged block is reported and skipped: its keys are missing, or older versions of them come instead.

import { codeOf } from '../../std/gateway-error.ts'
import type { StoreRange } from '../types.ts'
import type { LogEntry, LogIndex } from './log-index.ts'
import { compareInternal, kindOf, userKeyOf, type BlockEntry } from './table-reader/block.ts'
import type { TableReader } from './table-reader/table-reader.ts'
import type { FileDamage, TableFile } from './types.ts'

export type Version = {
  /** An internal key. */
  key: Buffer
  isDeletion: boolean
  /** Null where the value is gone, which is reported. Only for versions that are no deletion. */
  value(): Buffer | Promise<Buffer | null>
}

export type ViewSources = {
  tables: readonly TableFile[]
  logs: LogIndex
  open(table: TableFile): Promise<TableReader>
  report(damage: FileDamage): void
}

type Cursor = Version & {
  /** Moves to the next version that is in memory; false if there is none. */
  step(): boolean
  /** Reads on from the disk. False at the end. */
  load(): Promise<boolean>
  close(): Promise<void>
}

/** Every version of every key in the range once, in the order of internal keys. */
export async function* versionsIn(sources: ViewSources, range: StoreRange): AsyncGenerator<Version> {
  /** By their keys, the smallest first. */
  const active: Cursor[] = []
  const waiting = tablesIn(sources.tables, range)
  let last: Buffer | null = null
  try {
    await add(logCursor(sources.logs, range))
    for (;;) {
      await openReached()
      const [cursor] = active
      if (cursor === undefined) return
      const { key } = cursor
      // A log that was written to a table may still be there.
      if (last === null || compareInternal(last, key) !== 0) yield cursor
      last = key
      active.shift()
      if (cursor.step() || (await cursor.load())) insert(cursor)
      else await cursor.close()
    }
  } finally {
    for (const cursor of active) await cursor.close()
  }

  /** Opens the tables that can hold a version before the smallest one of the active cursors. */
  async function openReached(): Promise<void> {
    for (;;) {
      const table = waiting[waiting.length - 1]
      const [first] = active
      if (table === undefined) return
      if (first !== undefined && table.smallest !== null && table.smallest.compare(userKeyOf(first.key)) > 0)
        return
      waiting.pop()
      const reader = await opened(sources, table)
      if (reader !== null) await add(tableCursor(reader, range, sources.report))
    }
  }

  async function add(cursor: Cursor): Promise<void> {
    if (await cursor.load()) insert(cursor)
    else await cursor.close()
  }

  function insert(cursor: Cursor): void {
    let low = 0
    let high = active.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareInternal(active[middle]!.key, cursor.key) < 0) low = middle + 1
      else high = middle
    }
    active.splice(low, 0, cursor)
  }
}

/** Tables that can hold keys of the range, the one with the smallest key at the end. */
function tablesIn(tables: readonly TableFile[], { gte, lt }: StoreRange): TableFile[] {
  const none = Buffer.alloc(0)
  return tables
    .filter(
      ({ smallest, largest }) => (smallest ?? none).compare(lt) < 0 && (largest ?? lt).compare(gte) >= 0,
    )
    .sort((one, other) => (other.smallest ?? none).compare(one.smallest ?? none))
}

/** Null if the file is gone, which is reported. */
async function opened({ open, report }: ViewSources, table: TableFile): Promise<TableReader | null> {
  try {
    return await open(table)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    const { name: file, bytes, largest } = table
    const keys = { after: null, until: largest }
    report({ file, unit: 'table', offset: 0, bytes, what: 'the file is missing', keys })
    return null
  }
}

function tableCursor(
  reader: TableReader,
  { gte, lt }: StoreRange,
  report: (damage: FileDamage) => void,
): Cursor {
  let nextBlock = reader.seek(gte)
  let entries: readonly BlockEntry[] = []
  let at = -1
  const cursor: Cursor = {
    key: Buffer.alloc(0),
    isDeletion: false,
    value: () => entries[at]!.value,
    step() {
      const entry = entries[at + 1]
      if (entry === undefined) return false
      at += 1
      cursor.key = entry.key
      cursor.isDeletion = kindOf(entry.key) === 0
      return true
    },
    async load() {
      while (nextBlock < reader.blocks.length && !isBehind(nextBlock - 1)) {
        const read = await reader.entries(nextBlock)
        nextBlock += 1
        if (!Array.isArray(read)) {
          report(read)
          continue
        }
        entries = read.filter(({ key }) => isInRange(key))
        at = -1
        if (cursor.step()) return true
      }
      return false
    },
    close: () => reader.close(),
  }
  return cursor

  function isInRange(key: Buffer): boolean {
    const user = userKeyOf(key)
    return user.compare(gte) >= 0 && user.compare(lt) < 0
  }

  /** Nothing behind this block is in the range. */
  function isBehind(index: number): boolean {
    const block = reader.blocks[index]
    return block !== undefined && userKeyOf(block.lastKey).compare(lt) >= 0
  }
}

function logCursor(logs: LogIndex, { gte, lt }: StoreRange): Cursor {
  let at = firstAt(logs.entries, gte) - 1
  const cursor: Cursor = {
    key: Buffer.alloc(0),
    isDeletion: false,
    value: () => logs.value(logs.entries[at]!),
    step() {
      const entry = logs.entries[at + 1]
      if (entry === undefined || userKeyOf(entry.key).compare(lt) >= 0) return false
      at += 1
      cursor.key = entry.key
      cursor.isDeletion = kindOf(entry.key) === 0
      return true
    },
    load: () => Promise.resolve(cursor.step()),
    close: () => Promise.resolve(),
  }
  return cursor
}

function firstAt(entries: readonly LogEntry[], userKey: Buffer): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (userKeyOf(entries[middle]!.key).compare(userKey) < 0) low = middle + 1
    else high = middle
  }
  return low
}
