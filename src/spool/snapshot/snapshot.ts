// snapshot.ts: copies of a whole spool, and the way back. Entry file of this folder.
//
//   between two writes: tables linked, logs copied -> stage -> DIR/store -> mark, summary -> every block read
//
// Nothing is written while the stage is made: some milliseconds, in which acknowledgements wait. From the
// stage the files go into the snapshot while the daemon works: by hard links on the same file system, else by
// copies. A snapshot has the form of a spool directory, so `spool verify`, `spool salvage` and `spool repair`
// take it. The records of the ledger are not part of it.
//
//   DIR/store          the database: live tables, logs, manifest
//   DIR/mark           the high-water mark of that moment
//   DIR/snapshot.json  when it was made, and what it holds; written last, so without it the snapshot is not
//                      complete
//
// live-snapshot.ts makes one of a spool in use, resting-snapshot.ts of one that nothing uses. restore.ts
// makes a spool of one.

import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isoTime, type EpochMs } from '../../std/clock.ts'
import { GatewayError, messageOf, whyUnwritable } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import {
  makeOutputDirectory,
  checkInThread,
  damageText,
  realDisk,
  storeBytes,
  syncDirectory,
  transferStore,
} from '../../storage/storage.ts'
import type { SnapshotReport, SnapshotSummary } from '../views.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { writeMarkIn } from '../high-water-mark/mark-file.ts'

/** What is known of the spool at the moment of the snapshot. */
export type SnapshotContent = { mark: MarkNow; payloads: number; batches: number }

export type MarkNow = Omit<Mark, 'serial' | 'lanesLeftOut'>

/** Rejects with OUTPUT_UNWRITABLE unless `to` is missing or an empty directory. */
export async function prepareTarget(to: string): Promise<void> {
  try {
    await makeOutputDirectory(to)
    if ((await readdir(to)).length > 0) throw unwritable(to, 'The directory is not empty.')
  } catch (error) {
    throw error instanceof GatewayError ? error : unwritable(to, whyUnwritable(to, error), error)
  }
}

/** Makes a snapshot of the files in `from`, which nothing changes. Rejects with OUTPUT_UNWRITABLE. */
export async function writeSnapshot(
  from: string,
  to: string,
  { content, now, signal }: { content: SnapshotContent; now: EpochMs; signal: AbortSignal },
): Promise<SnapshotReport> {
  try {
    await refuseWithoutSpace(from, to)
    const storePath = join(to, 'store')
    const { tables, linked, bytes } = await transferStore(from, storePath, signal)
    await writeMarkIn(to, content.mark)
    await refuseDamage(storePath, to, signal)
    const { mark, payloads, batches } = content
    const { instance, writes } = mark
    const createdAt = isoTime(now)
    const counts = { writes, payloads, batches, tables, linkedTables: linked, bytes }
    const summary: SnapshotSummary = { version: 1, createdAt, instance, ...counts }
    await writeFile(join(to, 'snapshot.json'), `${JSON.stringify(summary, null, 2)}\n`, { flush: true })
    await syncDirectory(to)
    return { ...summary, path: resolve(to) }
  } catch (error) {
    // An incomplete snapshot must not look like one.
    await rm(join(to, 'snapshot.json'), { force: true }).catch(() => undefined)
    throw asUnwritable(to, error)
  }
}

async function refuseWithoutSpace(from: string, to: string): Promise<void> {
  const bytes = await storeBytes(from)
  const isLinkable = await isSameFileSystem(from, to)
  const { bytes: free } = await realDisk.free(to)
  // Of linked files only logs and manifest are copied.
  const needed = isLinkable ? 64 * 1024 ** 2 : bytes * 1.02
  if (free < needed)
    throw unwritable(to, `The snapshot needs ${formatSize(needed)}, and ${formatSize(free)} are free.`)
}

async function isSameFileSystem(from: string, to: string): Promise<boolean> {
  return (await stat(from)).dev === (await stat(to)).dev
}

/** A snapshot is made for the day on which the spool is damaged: so it is read completely now. */
async function refuseDamage(storePath: string, to: string, signal: AbortSignal): Promise<void> {
  const check = {
    path: storePath,
    logs: true,
    tables: 'all',
    verified: [],
    asidePath: to,
    mend: false,
  } as const
  const { kind, damage } = await checkInThread(check, { onProgress: () => undefined, signal })
  if (kind !== 'damaged') return
  throw new GatewayError('SPOOL_DAMAGED', {
    what: `The snapshot at ${to} is damaged, and so are the files of the spool that it was made of.`,
    why: damageText(damage),
    act: 'Keep the snapshot. Stop the gateway and run `telemetry-gateway spool repair` on the spool.',
  })
}

export function unwritable(to: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('OUTPUT_UNWRITABLE', {
    what: `Cannot write the snapshot to ${to}.`,
    why,
    act:
      'Give an empty directory that the user of the gateway may write, with enough space. A unit of systemd ' +
      'may also need ReadWritePaths for it.',
    cause,
  })
}

export function asUnwritable(to: string, error: unknown): GatewayError {
  return error instanceof GatewayError ? error : unwritable(to, `${messageOf(error)}.`, error)
}
