// store-lock.ts: holds the lock of a database without opening it, so that its files can be checked and
// changed while no other process uses them.
//
// LevelDB locks the file LOCK. An empty database in another directory is opened, whose LOCK is a link to that
// file. Closing it releases the lock, also one that this process holds on the database itself: so it is
// closed before the database is opened.

import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { codeOf, GatewayError } from '../std/gateway-error.ts'
import { explainDirectory } from './disk-errors.ts'

export type StoreLock = { release(): Promise<void> }

/** `workPath`: a directory for the empty database. Rejects with SPOOL_LOCKED or a code of disk-errors.ts. */
export async function lockStore(path: string, workPath: string): Promise<StoreLock> {
  let folder: string | null = null
  try {
    folder = await mkdtemp(join(workPath, 'lock-'))
    await symlink(resolve(path, 'LOCK'), join(folder, 'LOCK'))
    const level = new ClassicLevel(folder)
    await level.open()
    await removeRemains(workPath, folder)
    return { release: () => released(level, folder) }
  } catch (error) {
    await removed(folder)
    const isLocked = error instanceof Error && codeOf(error.cause) === 'LEVEL_LOCKED'
    throw isLocked ? lockedFault(path, error) : explainDirectory(`Cannot lock the spool at ${path}.`, error)
  }
}

async function released(level: ClassicLevel, folder: string | null): Promise<void> {
  await level.close()
  await removed(folder)
}

/** Of processes that were killed while they held a lock. */
async function removeRemains(workPath: string, own: string): Promise<void> {
  for (const name of await readdir(workPath)) {
    const path = join(workPath, name)
    if (name.startsWith('lock-') && path !== own) await removed(path)
  }
}

async function removed(folder: string | null): Promise<void> {
  // What remains is small, and the next lock removes it.
  if (folder !== null) await rm(folder, { recursive: true, force: true }).catch(() => undefined)
}

/** Another process has the database at `path` open. */
export function lockedFault(path: string, cause: unknown): GatewayError {
  return new GatewayError('SPOOL_LOCKED', {
    what: `Cannot open the spool at ${path}.`,
    why: 'Another process uses it.',
    act:
      'Stop the gateway that uses it first: `systemctl stop telemetry-gateway`. Only one process may use a ' +
      'spool directory.',
    cause,
  })
}
