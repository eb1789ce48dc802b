// store-copy.ts: the files of a spool that no process may use meanwhile: finds the database, refuses a locked
// one, and copies it for a salvage.

import { copyFile, mkdir, readdir, rm, stat, statfs, symlink } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import { openLevelStore } from '../../storage/storage.ts'

/**
 * The directory of the database; `path` is that of a spool or of the database itself. Rejects with
 * SPOOL_MISSING.
 */
export async function storeIn(path: string): Promise<string> {
  for (const candidate of [join(path, 'store'), path]) {
    const names = await readdir(candidate).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
      throw unreadable(path, error)
    })
    if (names.some((name) => /^(CURRENT|MANIFEST-.*|\d+\.(ldb|sst|log))$/.test(name))) return candidate
  }
  throw new GatewayError('SPOOL_MISSING', {
    what: `There is no spool at ${path}.`,
    why: 'The directory is missing or holds no database.',
    act: 'Give the directory of `spool.path`, or the config with --config.',
  })
}

function unreadable(path: string, error: unknown): GatewayError {
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot read the spool at ${path}.`,
    why: `${messageOf(error)}.`,
    act: 'Run the command as the user of the gateway, or as root.',
    cause: error,
  })
}

/**
 * LevelDB locks the file LOCK. Opening the database to test the lock would change it, so an empty database
 * beside the copies is opened, whose LOCK is a link to that file. Only for a process of its own: closing the
 * file releases a lock that the same process holds.
 */
export async function refuseLocked(path: string, workPath: string): Promise<void> {
  const lock = join(path, 'LOCK')
  if ((await stat(lock).catch(() => null)) === null) return
  const decoy = join(workPath, 'lock')
  await mkdir(decoy, { recursive: true })
  await symlink(resolve(lock), join(decoy, 'LOCK'))
  try {
    await (await openLevelStore(decoy)).close()
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'SPOOL_LOCKED') throw error
    throw new GatewayError('SPOOL_LOCKED', {
      what: `Cannot salvage the spool at ${path}.`,
      why: 'A process uses it, so its files would change during the copy.',
      act: 'Stop the gateway first (`systemctl stop telemetry-gateway`).',
      cause: error,
    })
  } finally {
    await rm(decoy, { recursive: true, force: true })
  }
}

export async function copyStore(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  const names: string[] = []
  let bytes = 0
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'LOCK') continue
    names.push(entry.name)
    bytes += (await stat(join(from, entry.name))).size
  }
  const { bavail, bsize } = await statfs(to)
  if (bavail * bsize < bytes * roomShare)
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `There is not enough free space for a copy of the spool at ${to}.`,
      why: `The copy needs ${formatSize(bytes)}, and the salvaged files about as much again.`,
      act: 'Give --to on a file system with more free space.',
    })
  for (const name of names)
    await copyFile(join(from, name), join(to, name), constants.COPYFILE_FICLONE).catch((error: unknown) => {
      // The disk cannot read a sector. The other files are still worth copying.
      if (codeOf(error) !== 'EIO') throw unreadable(from, error)
    })
}

/** The copy, and the files that are written from it. */
const roomShare = 1.5
