// store-files.ts: which files of a database a directory has, by their names and sizes alone. LevelDB creates
// a new database where CURRENT is missing and deletes all tables that it then does not know, so every opening
// that may create one looks at this first.

import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, GatewayError } from '../std/gateway-error.ts'
import { explainDirectory } from './disk-errors.ts'
import { unreadableText } from './regular-file.ts'

export type StoreFiles = {
  /** False where the directory is missing. */
  exists: boolean
  hasCurrent: boolean
  tables: number
  /** Bytes of all logs. */
  logBytes: number
  /** All names but LOCK; at most `namesMax`. */
  names: readonly string[]
}

/** A directory with more entries is no directory of a database. */
const namesMax = 100_000

const tableName = /^\d+\.(ldb|sst)$/
const logName = /^\d+\.log$/

/** Rejects with a code of disk-errors.ts. */
export async function storeFilesAt(path: string): Promise<StoreFiles> {
  const names: string[] = []
  let logBytes = 0
  try {
    for await (const { name } of await opendir(path)) {
      if (name === 'LOCK') continue
      names.push(name)
      if (names.length >= namesMax) break
      if (logName.test(name)) logBytes += await sizeOf(join(path, name))
    }
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw explainDirectory(`Cannot read the directory ${path}.`, error)
    return { exists: false, hasCurrent: false, tables: 0, logBytes: 0, names: [] }
  }
  return {
    exists: true,
    hasCurrent: names.includes('CURRENT'),
    tables: names.filter((name) => tableName.test(name)).length,
    logBytes,
    names,
  }
}

/** What is in the place of a log and cannot be read counts as content: the check says what is wrong. */
async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0
    if (unreadableText(error) === null) throw error
    return 1
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
