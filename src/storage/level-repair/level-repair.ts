// level-repair.ts: makes a damaged database one that LevelDB opens, in place. Entry file of this folder. It
// knows no payload.
//
//   plan (file-plan.ts)   read every block and record; nothing is changed
//   journal               from now on an interrupted repair is recognized (repair-journal.ts)
//   aside                 link what is damaged or replaced into another directory; move there what is no file
//   tables                write new tables (table-copies.ts): whole blocks of damaged ones, contents of logs
//   manifest              write a new one, which names whole tables as they are
//   switch                rename CURRENT: before it the database is the damaged one, behind it the new one
//
// All new files have numbers that no file had, so nothing is overwritten. What the new manifest does not
// name, LevelDB deletes when it opens the database. Interrupted at any point and repeated, it does the same
// again.
//
// Whole tables are not copied, and no block is compressed anew, so a repair needs little space: that of the
// damaged tables and of the logs. Without a manifest, and where another table is in the place of a named one,
// level-order.ts finds the levels of the tables.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { logName, manifestName, switchCurrent, tableName, writeManifest } from '../level-files/manifest.ts'
import type { VersionTable } from '../level-files/types.ts'
import type { FilePlan, PlannedTable } from './file-plan.ts'
import { mergedLevel, overlap } from './level-order.ts'
import { currentText, writeJournal } from './repair-journal.ts'
import { linkOrCopy, setFilesAside } from './set-aside.ts'
import { copyTable, mergeTables, tablesOfEntries, tablesOfLog } from './table-copies.ts'
import type { NewEntry, NewTable, Target } from './table-copies.ts'

export { planFiles, type FilePlan } from './file-plan.ts'
export { readJournal, removeJournal, removeLeftovers, type InterruptedRepair } from './repair-journal.ts'
export { canLink, copyFiles } from './set-aside.ts'
export type { NewEntry } from './table-copies.ts'

export type RepairStep = 'journal' | 'aside' | 'table' | 'manifest' | 'switch'

export type RepairOptions = {
  /** A file beside the database, on the same file system. */
  journalFile: string
  /** Directory for what is damaged or replaced. */
  asidePath: string
  startedAt: string
  signal: AbortSignal
  /** A directory that the caller moves into `asidePath` behind the switch. */
  moved?: string
  /** Entries for keys that the database has not, in the order of the keys. */
  added?: AsyncIterable<NewEntry>
  /**
   * Entries for keys that the database may have, in the order of the keys. They replace what is there. Asked
   * for behind `added`.
   */
  replaced?: () => Iterable<NewEntry>
  /** Called behind each step. */
  onStep?: (step: RepairStep) => void | Promise<void>
}

/** The caller holds the lock of the database and removes the journal when everything is done. */
export async function repairFiles(plan: FilePlan, options: RepairOptions): Promise<void> {
  const { journalFile, asidePath, startedAt, moved = null, onStep = () => undefined } = options
  const { path } = plan.directory
  const firstNumber = 1 + highestNumber(plan)
  const current = await currentText(path)
  await writeJournal(journalFile, { startedAt, asidePath, current, firstNumber, moved })
  await onStep('journal')
  await setFilesAside(path, namesToKeep(plan), asidePath)
  await onStep('aside')
  // The manifest has the first number.
  let number = firstNumber
  const takeNumber = () => (number += 1)
  const tables = await writeTables(plan, { path, takeNumber, signal: options.signal }, options)
  // Each log is in a table now, and LevelDB deletes logs with smaller numbers than the manifest names.
  const logNumber = takeNumber()
  await writeFile(join(path, logName(logNumber)), '')
  const numbers = { logNumber, prevLogNumber: 0, nextFileNumber: logNumber + 1 }
  await writeManifest(path, firstNumber, { ...numbers, lastSequence: sequenceOfAdditions(plan), tables })
  await onStep('manifest')
  await switchCurrent(path, manifestName(firstNumber))
  await onStep('switch')
}

/** One more than what is there: additions have no key twice. */
const sequenceOfAdditions = ({ lastSequence }: FilePlan) => lastSequence + 1

function highestNumber({ directory: { manifest, files } }: FilePlan): number {
  const numbers = [...files.tables, ...files.logs, ...files.obstacles].map(({ number }) => number)
  return Math.max(manifest?.nextFileNumber ?? 0, ...files.manifests, ...numbers)
}

function namesToKeep({ directory, damage, logs }: FilePlan): Set<string> {
  const torn = logs.filter(({ tornBytes }) => tornBytes > 0).map(({ log }) => log.name)
  const manifests = directory.files.manifests.map(manifestName)
  return new Set(['CURRENT', ...manifests, ...torn, ...damage.map(({ file }) => file)])
}

async function writeTables(
  plan: FilePlan,
  target: Target,
  { replaced, added, onStep = () => undefined }: RepairOptions,
): Promise<VersionTable[]> {
  const tables: VersionTable[] = []
  const put = async (level: number, made: readonly (NewTable | null)[]) => {
    for (const table of made) if (table !== null) tables.push({ ...table, level })
    await onStep('table')
  }
  const merged = plan.tables.filter(({ action }) => action === 'merge')
  // The oldest first: at level 0, a larger number is newer.
  for (const planned of plan.tables) {
    const { action, level } = planned
    if (action === 'keep') tables.push(asVersion(planned))
    if (action === 'rewrite') await put(level, [await copyTable(target, planned.table)])
    if (action === 'renumber') await put(level, [await renumber(target, planned)])
  }
  if (merged.length > 0) await put(mergedLevel, await mergeTables(target, merged))
  for (const log of plan.logs) if (log.batches > 0) await put(0, await tablesOfLog(target, log))
  const sequence = sequenceOfAdditions(plan)
  for (const table of added === undefined ? [] : await tablesOfEntries(target, added, sequence))
    await put(lowestLevel(table, tables), [table])
  if (replaced !== undefined) await put(0, await tablesOfEntries(target, replaced(), sequence))
  return tables
}

function asVersion({ table, level, firstKey, lastKey }: PlannedTable): VersionTable {
  const { number, name, bytes, smallest, largest } = table
  return { number, name, bytes, smallest, largest, level, firstKey, lastKey }
}

async function renumber({ path, takeNumber }: Target, planned: PlannedTable): Promise<NewTable> {
  const number = takeNumber()
  const name = tableName(number)
  await linkOrCopy(join(path, planned.table.name), join(path, name))
  return { ...asVersion(planned), number, name }
}

const lowest = 6

/** Where its keys are new, a table may be at any level below 0 in which it overlaps none. */
function lowestLevel(table: NewTable, tables: readonly VersionTable[]): number {
  for (let level = lowest; level > 0; level -= 1)
    if (!tables.some((other) => other.level === level && overlap(table, other))) return level
  return 0
}
