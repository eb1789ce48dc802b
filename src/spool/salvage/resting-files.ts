// resting-files.ts: opens the files of a spool that no process uses. They are read and never changed, so they
// may be damaged, on a read-only file system, or a copy.

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { lockStore, openLevelFiles, type LevelFiles } from '../../storage/storage.ts'

/** Holds the lock of the database until close(), so that no daemon starts meanwhile. */
export type RestingFiles = LevelFiles & {
  /** The failure of a read in words; other errors are returned unchanged. */
  explain(error: unknown): unknown
}

/**
 * `path` is the directory of a spool or of a database. Rejects with SPOOL_MISSING, SPOOL_LOCKED or
 * SPOOL_UNWRITABLE. Only for a process of its own: closing the files releases a lock that the same process
 * holds on the database.
 */
export async function openRestingFiles(path: string): Promise<RestingFiles> {
  const storePath = await storeIn(path)
  const release = await lock(storePath).catch((error: unknown) => {
    throw explained(path, error)
  })
  try {
    const files = await openLevelFiles(storePath)
    return { ...files, explain: (error) => explained(path, error), close }

    async function close(): Promise<void> {
      await files.close()
      await release()
    }
  } catch (error) {
    await release()
    throw explained(path, error)
  }
}

async function storeIn(path: string): Promise<string> {
  for (const candidate of [join(path, 'store'), path]) {
    const names = await readdir(candidate).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
      throw explained(path, error)
    })
    if (names.some((name) => /^(CURRENT|MANIFEST-.*|\d+\.(ldb|sst|log))$/.test(name))) return candidate
  }
  throw new GatewayError('SPOOL_MISSING', {
    what: `There is no spool at ${path}.`,
    why: 'The directory is missing or holds no database.',
    act: 'Give the directory of `spool.path`, or the config with --config.',
  })
}

/** Returns what releases the lock. A database without the file LOCK is a copy that nothing has opened. */
async function lock(storePath: string): Promise<() => Promise<void>> {
  if ((await stat(join(storePath, 'LOCK')).catch(() => null)) === null) return () => Promise.resolve()
  const workPath = await mkdtemp(join(tmpdir(), 'telemetry-gateway-lock-'))
  const removeWork = () => rm(workPath, { recursive: true, force: true })
  try {
    const held = await lockStore(storePath, workPath)
    return async () => {
      await held.release()
      await removeWork()
    }
  } catch (error) {
    await removeWork()
    // Nothing on a read-only file system is in use.
    if (error instanceof GatewayError && error.code === 'SPOOL_READ_ONLY') return () => Promise.resolve()
    throw error
  }
}

function explained(path: string, error: unknown): unknown {
  const code = codeOf(error)
  if (code === undefined || !/^(E[A-Z]+|SPOOL_PERMISSION)$/.test(code)) return error
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot read the spool at ${path}.`,
    why: `${messageOf(error)}.`,
    act: 'Run the command as the user of the gateway, or as root.',
    cause: error,
  })
}
