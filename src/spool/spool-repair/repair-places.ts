// repair-places.ts: the directories that a repair works with: the spool and its lock, the copy, and what
// earlier repairs set aside.

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { pause, systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, whyUnwritable } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import {
  copyFiles,
  explainDirectory,
  lockStore,
  makeOutputDirectory,
  realDisk,
  type StoreLock,
} from '../../storage/storage.ts'
import { storePathOf, storesAside } from '../opening/aside.ts'

export type Places = { spoolPath: string; storePath: string; journalFile: string }

/** Rejects with SPOOL_MISSING. */
export async function placesOf(path: string): Promise<Places> {
  const isStore = basename(resolve(path)) === 'store' && !(await exists(storePathOf(path)))
  const spoolPath = isStore ? dirname(resolve(path)) : path
  const storePath = storePathOf(spoolPath)
  const isSpool = (await exists(storePath)) || (await exists(join(spoolPath, 'mark')))
  if (!isSpool && !((await exists(spoolPath)) && (await storesAside(spoolPath)).length > 0))
    throw new GatewayError('SPOOL_MISSING', {
      what: `There is no spool at ${path}.`,
      why: 'The directory has no database in `store`, no store that was set aside, and no high-water mark.',
      act: 'Give the directory of `spool.path`, or the config with --config.',
    })
  return { spoolPath, storePath, journalFile: join(spoolPath, 'repair-journal.json') }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return false
    throw explainDirectory(`Cannot read ${path}.`, error)
  }
}

/** Rejects with SPOOL_LOCKED, SPOOL_CLOSED or a code of the directory. */
export async function withLock<Result>(
  { storePath }: Places,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  // Not in the spool, which a plan does not change.
  const workPath = await mkdtemp(join(tmpdir(), 'gateway-repair-'))
  try {
    await realDisk.makeDirectory(storePath)
    const lock = await lockSoon(storePath, workPath, signal)
    try {
      return await work()
    } finally {
      await lock.release()
    }
  } catch (error) {
    if (signal.aborted) throw interruptedFault(error)
    if (error instanceof GatewayError || codeOf(error) === undefined) throw error
    throw explainDirectory(`Cannot repair the spool at ${dirname(storePath)}.`, error)
  } finally {
    await rm(workPath, { recursive: true, force: true })
  }
}

/** A daemon that refuses the spool holds the lock only while it checks the files. */
async function lockSoon(storePath: string, workPath: string, signal: AbortSignal): Promise<StoreLock> {
  const untilMs = systemClock.monotonic() + lockWaitMs
  for (;;) {
    try {
      return await lockStore(storePath, workPath)
    } catch (error) {
      const isLocked = error instanceof GatewayError && error.code === 'SPOOL_LOCKED'
      if (!isLocked || systemClock.monotonic() >= untilMs) throw error
    }
    await pause(systemClock, lockRetryMs, signal)
    signal.throwIfAborted()
  }
}

/** Small spools are checked within this time; for others the command can be repeated. */
const lockWaitMs = 3000
const lockRetryMs = 250

function interruptedFault(cause: unknown): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The repair did not end.',
    why: 'The command was interrupted.',
    act: 'Start the command again. It continues with what is there.',
    cause,
  })
}

/** Rejects with OUTPUT_UNWRITABLE. */
export async function backUp({ spoolPath, storePath }: Places, to: string): Promise<void> {
  const unusable = (why: string) =>
    new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot copy the spool to ${to}.`,
      why,
      act: 'Give an empty directory with --backup, on a file system with enough space. Nothing was changed.',
    })
  if (`${resolve(to)}/`.startsWith(`${resolve(spoolPath)}/`))
    throw unusable('The directory is inside of the spool.')
  try {
    await makeOutputDirectory(to)
    if ((await readdir(to)).length > 0) throw unusable('The directory is not empty.')
    const bytes = await realDisk.usedBytes(storePath)
    const { bytes: free } = await realDisk.free(to)
    if (free < bytes) throw unusable(`The copy needs ${formatSize(bytes)}, and ${formatSize(free)} are free.`)
    await copyFiles(storePath, to)
  } catch (error) {
    throw error instanceof GatewayError ? error : unusable(whyUnwritable(to, error))
  }
}

/** Deletes everything that was set aside. Returns the paths. */
export async function purgeDamaged(spoolPath: string): Promise<string[]> {
  const damagedPath = join(spoolPath, 'damaged')
  if (!(await exists(damagedPath))) return []
  const names = (await readdir(damagedPath)).toSorted().map((name) => join(damagedPath, name))
  await rm(damagedPath, { recursive: true, force: true })
  return names
}
