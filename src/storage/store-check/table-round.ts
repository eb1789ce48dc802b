// table-round.ts: reads tables of a database in use, in a thread, slowly: the disk belongs to the daemon.
// Tables never change, so they can be read beside LevelDB; one that is merged and deleted meanwhile is left
// out.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pauseMs } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { FileDamage, VerifiedTable } from '../level-files/level-files.ts'
import { readStoreDirectory } from '../level-files/store-directory.ts'
import { openTable } from '../level-files/table-reader/table-reader.ts'
import { restoreKeys } from './thread-damage.ts'

export type TableRound = {
  path: string
  /** File numbers, in the order of reading. */
  tables: readonly number[]
  /** Limit of the reading rate: the thread pauses after each table. Infinity: no limit. */
  bytesPerS: number
}

/** A table that was read; `damage` is empty for a whole one. */
export type ReadTable = { table: VerifiedTable; file: string; damage: readonly FileDamage[] }

/** From the thread. */
export type RoundReply =
  { kind: 'table'; read: ReadTable } | { kind: 'failed'; message: string } | { kind: 'ended' }

/** Reads one round. Rejects where the directory cannot be read. */
export type ReadTables = (
  round: TableRound,
  options: { onTable(read: ReadTable): void; signal: AbortSignal },
) => Promise<void>

/** In dist the file of the thread is beside this one, as JavaScript. */
const threadFile = new URL(`./round-worker${import.meta.url.slice(-3)}`, import.meta.url)

const resourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 48 }

export const readTablesInThread: ReadTables = async (round, { onTable, signal }) => {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const thread = new Worker(threadFile, { name: 'verify', workerData: round, resourceLimits })
  // A daemon that stops does not wait for it.
  thread.unref()
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort, { once: true })
  thread.on('message', (reply: RoundReply) => {
    if (reply.kind === 'table') {
      restoreKeys(reply.read.damage)
      onTable(reply.read)
    } else if (reply.kind === 'failed') reject(new Error(reply.message))
    else resolve()
  })
  thread.on('error', (error) => reject(new Error(messageOf(error))))
  thread.on('exit', () => reject(new Error('The thread ended before its last table.')))
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', onAbort)
    await thread.terminate()
  }
}

/** The tables that the manifest names, as they are on the disk. */
export async function liveTablesAt(path: string): Promise<VerifiedTable[]> {
  const { manifest } = await readStoreDirectory(path)
  const found: VerifiedTable[] = []
  for (const { number, name } of manifest?.tables.values() ?? []) {
    const table = await statOf(join(path, name), number)
    if (table !== null) found.push(table)
  }
  return found
}

/** The work of the thread. */
export async function readRound(
  { path, tables, bytesPerS }: TableRound,
  onTable: (read: ReadTable) => void,
): Promise<void> {
  const { manifest } = await readStoreDirectory(path)
  for (const number of tables) {
    const named = manifest?.tables.get(number)
    const table = named === undefined ? null : await statOf(join(path, named.name), number)
    if (named === undefined || table === null) continue
    try {
      const reader = await openTable(path, named)
      try {
        onTable({ table, file: named.name, damage: await reader.check() })
      } finally {
        await reader.close()
      }
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
    }
    await pauseMs((table.bytes / bytesPerS) * 1000)
  }
}

/** Null where it is gone. */
async function statOf(file: string, number: number): Promise<VerifiedTable | null> {
  try {
    const { size: bytes, mtimeMs } = await stat(file)
    return { number, bytes, mtimeMs }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}
