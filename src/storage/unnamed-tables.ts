// unnamed-tables.ts: deletes what an interrupted compaction left: tables that the manifest in force does not
// name. LevelDB deletes them at its next opening, but an opening needs space, and on a full disk they are
// what holds it.
//
// Only where nothing in the directory is damaged. Without a complete manifest such a table may be all that is
// left of a payload.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDiskFull } from './disk-errors.ts'
import { readStoreDirectory } from './level-files/store-directory.ts'
import { lockStore, type StoreLock } from './store-lock.ts'

/** Returns the bytes of what it deleted. Rejects with SPOOL_LOCKED, or with what a file operation threw. */
export async function deleteUnnamedTables(path: string, workPath: string): Promise<number> {
  const lock = await lockAnywhere(path, workPath)
  try {
    // Read under the lock: a database in use gets new tables before a manifest names them.
    const { manifest, damage, files } = await readStoreDirectory(path)
    if (manifest === null || !manifest.isComplete || damage.length > 0) return 0
    let deletedBytes = 0
    for (const { number, name, bytes } of files.tables) {
      if (manifest.tables.has(number)) continue
      await rm(join(path, name))
      deletedBytes += bytes
    }
    return deletedBytes
  } finally {
    await lock.release()
  }
}

/** The lock needs a few small files, for which a full disk has no room. */
async function lockAnywhere(path: string, workPath: string): Promise<StoreLock> {
  try {
    return await lockStore(path, workPath)
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
  const folder = await mkdtemp(join(tmpdir(), 'gateway-lock-'))
  const removed = () => rm(folder, { recursive: true, force: true })
  try {
    const lock = await lockStore(path, folder)
    return {
      async release() {
        await lock.release()
        await removed()
      },
    }
  } catch (error) {
    await removed()
    throw error
  }
}
