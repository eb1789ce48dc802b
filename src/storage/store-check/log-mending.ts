// log-mending.ts: reads a log of a database to its end, and writes a damaged one anew with what can be read.
//
// In this order, so that a kill at any point leaves the damaged log or the mended one, and the damaged one
// also aside: link the damaged file aside, write the mended one beside it, sync it, rename it over the log.

import { copyFile, link, mkdir, open, rename, type FileHandle } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { syncDirectory } from '../disk.ts'
import type { CheckRequest, FileDamage, MendedLog } from '../level-files/level-files.ts'
import { createLogWriter } from '../level-files/log-writer.ts'
import type { LogFile } from '../level-files/types.ts'
import { readLogBatches } from '../level-files/write-batch.ts'

export type LogState = {
  log: LogFile
  /** The sequence that its first batch should have; null if unknown. */
  nextSequence: number | null
  damage: FileDamage[]
  lostBytes: number
  /** Null where it is not known. */
  lostOperations: number | null
  batches: number
  /** Of the last batch, or of those before the log. */
  lastSequence: number
  /** Bytes at its end that are no write; no damage by themselves. */
  tornBytes: number
}

/** `before`: the log before it. A gap between the two shows that the end of that one is missing. */
export async function readLogState(path: string, log: LogFile, before: LogState | null): Promise<LogState> {
  const nextSequence = before === null || before.lastSequence === 0 ? null : before.lastSequence + 1
  const state: LogState = {
    log,
    nextSequence,
    damage: [],
    lostBytes: 0,
    lostOperations: 0,
    batches: 0,
    lastSequence: before?.lastSequence ?? 0,
    tornBytes: 0,
  }
  const file = await open(join(path, log.name))
  try {
    for await (const item of readLogBatches(file, { nextSequence })) {
      if (item.kind === 'torn') state.tornBytes = item.bytes
      if (item.kind === 'damage') {
        const { offset, bytes, what, lostOperations } = item
        addDamage(state, { offset, bytes, what, lostOperations })
      }
      if (item.kind !== 'batch') continue
      const { sequence, operations } = item.batch
      const isFirst = state.batches === 0 && state.damage.length === 0
      if (isFirst && before !== null && nextSequence !== null && sequence > nextSequence)
        addMissingEnd(before, sequence - nextSequence)
      state.batches += 1
      state.lastSequence = sequence + operations.length - 1
    }
  } finally {
    await file.close()
  }
  return state
}

function addMissingEnd(state: LogState, lostOperations: number): void {
  const bytes = state.tornBytes
  const offset = state.log.bytes - bytes
  const what = bytes > 0 ? 'its last write cannot be read' : 'its end is missing'
  addDamage(state, { offset, bytes, what, lostOperations })
}

type Lost = { offset: number; bytes: number; what: string; lostOperations: number | null }

function addDamage(state: LogState, { offset, bytes, what, lostOperations }: Lost): void {
  const keys = { after: null, until: null }
  state.damage.push({ file: state.log.name, unit: 'log record', offset, bytes, what, keys })
  state.lostBytes += bytes
  state.lostOperations =
    state.lostOperations === null || lostOperations === null ? null : state.lostOperations + lostOperations
}

/** Without `mend` it only reports. */
export async function mendLog(
  { path, asidePath }: CheckRequest,
  { log, nextSequence, damage, lostBytes, lostOperations, batches }: LogState,
  { mend }: { mend: boolean },
): Promise<MendedLog> {
  const report = { file: log.name, lostBytes, lostOperations, keptBatches: batches, damage }
  if (!mend) return { ...report, aside: null }
  const aside = await setAside(join(path, log.name), asidePath, log.name)
  // LevelDB deletes files with this ending when it opens the database.
  const draft = join(path, log.name.replace(/\.log$/, '.dbtmp'))
  const from = await open(join(path, log.name))
  try {
    const to = await open(draft, 'w')
    try {
      await copyBatches(from, to, nextSequence)
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
  await rename(draft, join(path, log.name))
  await syncDirectory(path)
  return { ...report, aside }
}

async function copyBatches(from: FileHandle, to: FileHandle, nextSequence: number | null): Promise<void> {
  const writer = createLogWriter(to)
  for await (const item of readLogBatches(from, { nextSequence }))
    if (item.kind === 'batch') await writer.append(item.content)
  await writer.finish()
}

/** Its path in `asidePath`. The file itself: a copy only where links are not possible. */
async function setAside(file: string, asidePath: string, name: string): Promise<string> {
  await mkdir(asidePath, { recursive: true })
  const aside = join(asidePath, name)
  try {
    await link(file, aside)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return aside
    await copyFile(file, aside, constants.COPYFILE_FICLONE)
    const copy = await open(aside)
    try {
      await copy.sync()
    } finally {
      await copy.close()
    }
  }
  await syncDirectory(asidePath)
  return aside
}
