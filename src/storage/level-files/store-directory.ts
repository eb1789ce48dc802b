// store-directory.ts: the files in the directory of a database, and which of them hold its content.
//
// By the manifest in force where it can be read completely. Where CURRENT is damaged, or names a manifest of
// which nothing can be read, the newest manifest that is complete and whose tables exist stands for it: a
// power cut can lose the rename of CURRENT and keep the deletion of the manifest that it named before. Where
// none is, every table and every log counts.
//
// The end of a manifest that was cut off cannot be seen in the manifest. The other files show it: the log
// that it names always exists, because LevelDB deletes a log only behind an edit that names a later one.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { notFileText, unreadableText } from '../../std/file-system/regular-file.ts'
import { logName, manifestName, readCurrent, readManifest } from './manifest.ts'
import { keyBefore } from './table-reader/block.ts'
import type { FileDamage, LogFile, Manifest, TableFile } from './types.ts'

export type StoreDirectory = {
  path: string
  manifest: Manifest | null
  /** Live tables that exist, by number. */
  tables: TableFile[]
  /** Live logs, by number. */
  logs: LogFile[]
  /** Names of live tables that do not exist. */
  missing: string[]
  /** The log that the manifest names, where it does not exist; else null. */
  missingLog: string | null
  damage: FileDamage[]
  /** Everything that is there, live or not. */
  files: DirectoryFiles
}

export type DirectoryFiles = {
  tables: TableFile[]
  logs: LogFile[]
  /** Numbers, ascending. */
  manifests: number[]
  hasCurrent: boolean
  /** What is in the place of a table or of a log and is no file that can be read. */
  obstacles: Obstacle[]
}

export type Obstacle = { number: number; name: string; isLog: boolean; what: string }

/**
 * Rejects only where the directory cannot be read. Files with the number `below` or a larger one do not
 * count: an interrupted repair left them.
 */
export async function readStoreDirectory(path: string, below = Infinity): Promise<StoreDirectory> {
  const files = await listFiles(path, below)
  const damage: FileDamage[] = []
  const manifest = await manifestInForce(path, files, damage)
  const tables: TableFile[] = []
  const missing: string[] = []
  const existing = new Map(files.tables.map((table) => [table.number, table]))
  for (const named of manifest?.tables.values() ?? []) {
    const { level, smallest, largest } = named
    const file = existing.get(named.number)
    if (file === undefined) {
      missing.push(named.name)
      damage.push(
        missingTable(
          named,
          files.obstacles.find(({ name }) => name === named.name),
        ),
      )
      continue
    }
    tables.push({ ...file, level, smallest, largest })
    existing.delete(named.number)
    // LevelDB ignores bytes behind the end of a table.
    if (file.bytes < named.bytes) damage.push(wrongSize(file, named.bytes))
  }
  const missingLog = missingLogOf(manifest, files)
  if (manifest?.isComplete === true && missingLog !== null && existing.size > 0) {
    manifest.isComplete = false
    const what = `its end is missing: ${missingLog} does not exist, and there are tables that it does not name`
    damage.push({ file: manifest.name, unit: 'manifest', offset: 0, bytes: 0, what, keys: null })
  }
  const isComplete = manifest?.isComplete ?? false
  if (!isComplete) tables.push(...existing.values())
  tables.sort((one, other) => one.number - other.number)
  const isLive = ({ number }: Pick<LogFile, 'number'>) =>
    manifest === null || !isComplete || number >= manifest.logNumber || number === manifest.prevLogNumber
  for (const obstacle of files.obstacles)
    if (obstacle.isLog && isLive(obstacle)) damage.push(unreadableLog(obstacle))
  return { path, manifest, tables, logs: files.logs.filter(isLive), missing, missingLog, damage, files }
}

/** A live table as the manifest names it: one that was cut off has the size that it had. */
export function asNamed(table: TableFile, manifest: Manifest | null): TableFile {
  return { ...table, bytes: manifest?.tables.get(table.number)?.bytes ?? table.bytes }
}

/** LevelDB counts its files from 1: one with a larger number is not its own, and new numbers follow it. */
const fileNumberMax = 2 ** 48

export async function listFiles(path: string, below: number): Promise<DirectoryFiles> {
  const files: DirectoryFiles = { tables: [], logs: [], manifests: [], hasCurrent: false, obstacles: [] }
  for (const name of (await readdir(path)).toSorted()) {
    const [, digits, ending] = /^(\d+)\.(ldb|sst|log)$/.exec(name) ?? []
    const number = Number(digits)
    if (ending !== undefined) {
      if (number >= below || number > fileNumberMax) continue
      const isLog = ending === 'log'
      const bytes = await sizeOf(join(path, name))
      if (typeof bytes === 'string') files.obstacles.push({ number, name, isLog, what: bytes })
      if (typeof bytes !== 'number') continue
      if (isLog) files.logs.push({ number, name, bytes })
      else files.tables.push({ number, name, bytes, level: null, smallest: null, largest: null })
    } else if (/^MANIFEST-\d+$/.test(name)) {
      const manifest = Number(name.slice('MANIFEST-'.length))
      if (manifest < below && manifest <= fileNumberMax) files.manifests.push(manifest)
    } else if (name === 'CURRENT') {
      files.hasCurrent = true
    }
  }
  for (const list of [files.tables, files.logs]) list.sort((one, other) => one.number - other.number)
  files.manifests.sort((one, other) => one - other)
  return files
}

/** Null where the file is gone. A text: why it is no file that can be read. */
async function sizeOf(file: string): Promise<number | string | null> {
  try {
    const found = await stat(file)
    return found.isFile() ? found.size : notFileText
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    const what = unreadableText(error)
    if (what === null) throw error
    return what
  }
}

async function manifestInForce(
  path: string,
  files: DirectoryFiles,
  damage: FileDamage[],
): Promise<Manifest | null> {
  const current = await readCurrent(path)
  if (current.name !== null) {
    const named = await readNamed(path, current.name)
    damage.push(...named.damage)
    if (named.manifest !== null) return named.manifest
  } else damage.push(current.damage)
  let best: Manifest | null = null
  for (const number of files.manifests.toReversed()) {
    const { manifest } = await readNamed(path, manifestName(number))
    if (manifest === null) continue
    best ??= manifest
    const numbers = new Set(files.tables.map((table) => table.number))
    if (manifest.isComplete && [...manifest.tables.keys()].every((table) => numbers.has(table)))
      return manifest
  }
  // A complete manifest without its tables may be an old one.
  if (best !== null) best.isComplete = false
  return best
}

async function readNamed(
  path: string,
  name: string,
): Promise<{ manifest: Manifest | null; damage: FileDamage[] }> {
  try {
    const { manifest, damage } = await readManifest(path, name)
    if (manifest === null && damage.length === 0) damage.push(manifestDamage(name, 'it is empty'))
    return { manifest, damage }
  } catch (error) {
    const what = codeOf(error) === 'ENOENT' ? 'the file is missing' : unreadableText(error)
    if (what === null) throw error
    return { manifest: null, damage: [manifestDamage(name, what)] }
  }
}

function manifestDamage(file: string, what: string): FileDamage {
  return { file, unit: 'manifest', offset: 0, bytes: 0, what, keys: null }
}

function missingTable({ name, bytes, smallest, largest }: TableFile, obstacle?: Obstacle): FileDamage {
  const after = smallest === null ? null : keyBefore(smallest)
  const what = obstacle?.what ?? 'the file is missing'
  return { file: name, unit: 'table', offset: 0, bytes, what, keys: { after, until: largest } }
}

function unreadableLog({ name, what }: Obstacle): FileDamage {
  const keys = { after: null, until: null }
  return { file: name, unit: 'log', offset: 0, bytes: 0, what, keys }
}

/** The entries that are lost are found by reading the table. */
function wrongSize({ name, bytes }: TableFile, named: number): FileDamage {
  const what = `it has ${bytes} bytes instead of ${named}`
  const lost = Math.max(0, named - bytes)
  return { file: name, unit: 'table', offset: Math.min(bytes, named), bytes: lost, what, keys: null }
}

function missingLogOf(manifest: Manifest | null, { logs, obstacles }: DirectoryFiles): string | null {
  if (manifest === null || !manifest.isComplete || manifest.logNumber === 0) return null
  const exists = [...logs, ...obstacles].some(({ number }) => number === manifest.logNumber)
  return exists ? null : logName(manifest.logNumber)
}
