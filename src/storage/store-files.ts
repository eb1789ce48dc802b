// store-files.ts: which files of a database a directory has, by their names and sizes alone. LevelDB creates
// a new database where CURRENT is missing and deletes all tables that it then does not know, so every opening
// that may create one looks at this first.

import { lstat, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, GatewayError } from '../std/gateway-error.ts'
import { explainDirectory } from './disk-errors.ts'
import { unreadableText } from '../std/file-system/regular-file.ts'

export type StoreFiles = {
  /** False where the directory is missing. */
  exists: boolean
  hasCurrent: boolean
  tables: number
  /** Bytes of all logs. */
  logBytes: number
  /** A file of the database that is something else: a directory, a pipe, a link that leads nowhere. */
  hasOthers: boolean
  /** All names but LOCK; at most `namesMax`. */
  names: readonly string[]
}

/** A directory with more entries is no directory of a database. */
const namesMax = 100_000

const tableName = /^\d+\.(ldb|sst)$/
const fileName = /^(CURRENT|MANIFEST-\d+|\d+\.(ldb|sst|log))$/
const logName = /^\d+\.log$/

/** Rejects with a code of disk-errors.ts. */
export async function storeFilesAt(path: string): Promise<StoreFiles> {
  const names: string[] = []
  let logBytes = 0
  let hasOthers = false
  try {
    for await (const entry of await opendir(path)) {
      const { name } = entry
      if (name === 'LOCK') continue
      names.push(name)
      if (names.length >= namesMax) break
      if (!fileName.test(name)) continue
      const isLog = logName.test(name)
      const bytes = entry.isFile() && !isLog ? 0 : await bytesOf(join(path, name))
      if (bytes === null) hasOthers = true
      // What is in the place of a log counts as content: the check says what is wrong.
      if (isLog) logBytes += bytes ?? 1
    }
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw explainDirectory(`Cannot read the directory ${path}.`, error)
    return { exists: false, hasCurrent: false, tables: 0, logBytes: 0, hasOthers: false, names: [] }
  }
  return {
    exists: true,
    hasCurrent: names.includes('CURRENT'),
    tables: names.filter((name) => tableName.test(name)).length,
    logBytes,
    hasOthers,
    names,
  }
}

/** Null where it is no file. LevelDB deletes files meanwhile: one that is gone has no bytes. */
async function bytesOf(path: string): Promise<number | null> {
  try {
    const found = await stat(path)
    return found.isFile() ? found.size : null
  } catch (error) {
    if (unreadableText(error) !== null) return null
    if (codeOf(error) !== 'ENOENT') throw error
    return (await lstat(path).catch(() => null))?.isSymbolicLink() === true ? null : 0
  }
}

/** A database was here: a new one must not be created in its place. */
export const hasDatabase = ({ tables, logBytes }: StoreFiles) => tables > 0 || logBytes > 0

/** Rejects with SPOOL_DAMAGED where CURRENT is missing beside files of a database. */
export async function refuseWithoutCurrent(path: string): Promise<void> {
  const files = await storeFilesAt(path)
  if (files.hasCurrent || !hasDatabase(files)) return
  throw new GatewayError('SPOOL_DAMAGED', {
    what: `Cannot open the database at ${path}.`,
    why: `The file CURRENT is missing, and there are ${files.tables} tables and ${files.logBytes} bytes of logs.`,
    act: 'Do not delete the directory. Copy it first: it holds acknowledged telemetry.',
  })
}
