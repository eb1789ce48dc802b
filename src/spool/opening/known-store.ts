// known-store.ts: a process that has had a store opens that store again or none. A lost mount, or a directory
// that was moved away, must not look like a new spool: what was acknowledged would be forgotten.
//
// The id of the store and the counts of its writes decide, in the database or in the mark beside it. The
// files are only read, so what is in the place of the store stays as it is.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, GatewayError } from '../../std/gateway-error.ts'
import { explainDirectory, hasDatabase, openLevelFiles, storeFilesAt } from '../../storage/storage.ts'
import { formatKey, laneKey, table, writeCountLane } from '../chunk-log/key-layout.ts'
import { decodeWriteCount, formatRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn } from '../high-water-mark/mark-file.ts'
import { storePathOf } from './aside.ts'
import type { InUseMemory } from './in-use-marker.ts'

/** `writes`: durable writes of the store, as its mark counts them. */
export type KnownStore = { instance: string; writes: number }

/** What this process knows over all openings of its spool. */
export type StoreMemory = {
  /** Null: it has had no store. */
  known: KnownStore | null
  /** Since when the high-water mark cannot be written (high-water-mark.ts); null while it can. */
  markFailedAtMs: number | null
  /** Why it could not be written; null while it can. */
  markFailure: string | null
} & InUseMemory

/** The store is not at its path. Only a restart opens something else. */
export const isElsewhere = ({ code }: GatewayError) => code === 'SPOOL_MISSING' || code === 'SPOOL_REPLACED'

/** Rejects with SPOOL_MISSING, SPOOL_REPLACED or a code of the directory. Damage is left to the check. */
export async function refuseOtherStore(spoolPath: string, known: KnownStore): Promise<void> {
  const storePath = storePathOf(spoolPath)
  const found = await readMarkIn(spoolPath)
  const mark = found.kind === 'mark' && found.mark.instance === known.instance ? found.mark : null
  const files = await storeFilesAt(storePath)
  if (!files.hasCurrent && !hasDatabase(files)) {
    if (mark === null) throw missing(spoolPath)
    return
  }
  const { instance, writes } = await identityAt(storePath)
  if (instance === null ? mark === null : instance !== known.instance)
    throw replaced(
      spoolPath,
      'The store there has another id: it is the spool of another gateway, or a new one.',
    )
  const counted = Math.max(writes ?? 0, mark?.writes ?? 0)
  if (counted < known.writes)
    throw replaced(
      spoolPath,
      `It is an older copy: it counts ${counted} writes, and this process has made ${known.writes}.`,
    )
}

/**
 * A hint, which costs little: another one means that the files of an open store are perhaps not at their path
 * any more. LevelDB writes CURRENT only at an opening. Null: there is none.
 */
export async function placeOf(spoolPath: string): Promise<string | null> {
  try {
    const { ino, mtimeMs } = await stat(join(storePathOf(spoolPath), 'CURRENT'))
    return `${ino} ${mtimeMs}`
  } catch (error) {
    if (goneCodes.has(codeOf(error) ?? '')) return null
    throw error
  }
}

/** Null: the open store, `known`, is where it was, as far as can be seen. `place`: of its opening. */
export async function elsewhereFault(
  spoolPath: string,
  { place, known }: { place: string | null; known: KnownStore },
): Promise<GatewayError | null> {
  if ((await placeOf(spoolPath)) === place) return null
  try {
    await refuseOtherStore(spoolPath, known)
  } catch (error) {
    return error instanceof GatewayError && isElsewhere(error) ? error : null
  }
  // With its mark it may be damaged: that is for the next opening. What is written is no longer there.
  return (await placeOf(spoolPath)) === null ? missing(spoolPath) : null
}

const goneCodes: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

async function identityAt(storePath: string): Promise<{ instance: string | null; writes: number | null }> {
  try {
    const files = await openLevelFiles(storePath)
    try {
      const instance = formatRecord.decode(await files.get(formatKey))?.instance ?? null
      return { instance, writes: decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane))) }
    } finally {
      await files.close()
    }
  } catch (error) {
    throw codeOf(error) === undefined
      ? error
      : explainDirectory(`Cannot read the store at ${storePath}.`, error)
  }
}

const mountIt =
  'Mount its file system, or move its directory back. The gateway then continues with it automatically.'

function missing(path: string): GatewayError {
  return new GatewayError('SPOOL_MISSING', {
    what: `The spool is no longer at ${path}.`,
    why: 'No store is there: a file system is not mounted, or the directory was moved or deleted.',
    act: `${mountIt} If you cannot get that spool back, restart the gateway.`,
  })
}

function replaced(path: string, why: string): GatewayError {
  return new GatewayError('SPOOL_REPLACED', {
    what: `Another store is at ${path} than the one that this process has written.`,
    why,
    act: `${mountIt} If it was replaced on purpose, restart the gateway: it then opens what is there.`,
  })
}
