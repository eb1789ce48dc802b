// check-files.ts: the check of a database, in the thread that calls it: directory, tables, logs.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import type {
  CheckProgress,
  CheckReport,
  CheckRequest,
  FileDamage,
  VerifiedTable,
} from '../level-files/level-files.ts'
import { asNamed, readStoreDirectory, type StoreDirectory } from '../level-files/store-directory.ts'
import { openTable } from '../level-files/table-reader/table-reader.ts'
import type { TableFile } from '../level-files/types.ts'
import { mendLog, readLogState, type LogState } from './log-mending.ts'

type Options = { onProgress?: (progress: CheckProgress) => void }

/** Rejects where the directory or a file cannot be read, or a mended log not be written. */
export async function checkFiles(request: CheckRequest, options: Options = {}): Promise<CheckReport> {
  const { onProgress = () => undefined } = options
  const startedMs = performance.now()
  const directory = await directoryOf(request.path)
  let damage = directory === null ? [] : [...directory.damage]
  const report: CheckReport = {
    kind: directory === null || isEmpty(directory) ? 'empty' : 'ok',
    damage,
    mendedLogs: [],
    verified: [],
    lastSequence: directory?.manifest?.lastSequence ?? 0,
    tookMs: 0,
  }
  if (directory === null || report.kind === 'empty')
    return { ...report, damage: [], tookMs: performance.now() - startedMs }
  const plan = await planOf(request, directory)
  const { known: verified, bytesTotal } = plan
  let bytesRead = 0
  for (const { table, mtimeMs } of plan.toRead) {
    const onBytes = (bytes: number) => {
      bytesRead += bytes
      onProgress({ bytesRead, bytesTotal, file: table.name })
    }
    const found = await checkTable(request.path, table, onBytes)
    // What the directory knows of the table is part of it.
    damage = [...damage.filter(({ file }) => file !== table.name), ...found]
    if (found.length === 0) verified.push({ number: table.number, bytes: table.bytes, mtimeMs })
  }
  const states: LogState[] = []
  for (const log of request.logs ? directory.logs : []) {
    onProgress({ bytesRead, bytesTotal, file: log.name })
    states.push(await readLogState(request.path, log, states[states.length - 1] ?? null))
    bytesRead += log.bytes
  }
  const lastSequence = Math.max(report.lastSequence, ...states.map((state) => state.lastSequence))
  const mendedLogs = []
  const mend = request.mend && damage.length === 0
  for (const state of states)
    if (state.damage.length > 0) mendedLogs.push(await mendLog(request, state, { mend }))
  const kind = damage.length === 0 ? 'ok' : 'damaged'
  return { kind, damage, mendedLogs, verified, lastSequence, tookMs: performance.now() - startedMs }
}

async function directoryOf(path: string): Promise<StoreDirectory | null> {
  try {
    return await readStoreDirectory(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Every block of a table. */
async function checkTable(
  path: string,
  table: TableFile,
  onBytes: (bytes: number) => void,
): Promise<FileDamage[]> {
  const reader = await openTable(path, table)
  try {
    return await reader.check({ onBytes })
  } finally {
    await reader.close()
  }
}

/** Nothing but what is left of a database that was never finished. */
function isEmpty({ files, manifest, damage }: StoreDirectory): boolean {
  const hasContent = files.tables.length > 0 || files.logs.some(({ bytes }) => bytes > 0)
  return damage.length > 0 && !hasContent && (manifest === null || manifest.tables.size === 0)
}

type Plan = {
  toRead: { table: TableFile; mtimeMs: number }[]
  /** Tables that were verified before and are still the same file. */
  known: VerifiedTable[]
  bytesTotal: number
}

async function planOf(
  request: CheckRequest,
  { path, manifest, tables, logs }: StoreDirectory,
): Promise<Plan> {
  const before = new Map(request.verified.map((table) => [table.number, table]))
  const plan: Plan = { toRead: [], known: [], bytesTotal: 0 }
  for (const table of tables) {
    const { mtimeMs } = await stat(join(path, table.name))
    const known = before.get(table.number)
    const isKnown = known !== undefined && known.bytes === table.bytes && known.mtimeMs === mtimeMs
    if (isKnown && request.tables !== 'all') plan.known.push(known)
    else if (request.tables !== 'none') plan.toRead.push({ table: asNamed(table, manifest), mtimeMs })
  }
  plan.bytesTotal = plan.toRead.reduce((sum, { table }) => sum + table.bytes, 0)
  if (request.logs) for (const { bytes } of logs) plan.bytesTotal += bytes
  return plan
}
