// aside.ts: moves files of the store out of the way. Nothing is deleted: `spool repair` reads what is moved,
// and `spool repair --purge` deletes it.
//
//   damaged/<UTC time>/          files of a store that never held anything, and copies of mended logs
//   store.damaged-<UTC time>/    a whole damaged store with its mark (`spool.on_damage: set_aside`)

import { mkdir, readdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { fileTime, type EpochMs } from '../../std/clock.ts'

export const storePathOf = (spoolPath: string) => join(spoolPath, 'store')
const markPathOf = (spoolPath: string) => join(spoolPath, 'mark')
const asidePrefix = 'store.damaged-'

export const damagedPathOf = (spoolPath: string, at: EpochMs) => join(spoolPath, 'damaged', fileTime(at))

/** A mark shows that something was stored, whatever else is left. */
export async function hasMark(spoolPath: string): Promise<boolean> {
  try {
    const found = await stat(markPathOf(spoolPath))
    return found.isFile() && found.size > 0
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP') return false
    throw error
  }
}

/** Moves the named files of the store to `to`. */
export async function moveLeftovers(spoolPath: string, names: readonly string[], to: string): Promise<void> {
  // Not recursive: the level above is there after the first time.
  await mkdir(join(spoolPath, 'damaged')).catch(ignoreExisting)
  await mkdir(to).catch(ignoreExisting)
  for (const name of names) await rename(join(storePathOf(spoolPath), name), join(to, name))
}

/** Renames the store with its mark. Returns the new path. */
export async function setStoreAside(spoolPath: string, at: EpochMs): Promise<string> {
  const to = join(spoolPath, `${asidePrefix}${fileTime(at)}`)
  // The mark first: killed between the two, the store is still damaged, and is set aside at the next start.
  await rename(markPathOf(spoolPath), join(storePathOf(spoolPath), 'mark')).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error
  })
  await rename(storePathOf(spoolPath), to)
  return to
}

/** Stores that were set aside and not merged yet. */
export async function storesAside(spoolPath: string): Promise<string[]> {
  const names = await readdir(spoolPath)
  return names.filter((name) => name.startsWith(asidePrefix)).map((name) => join(spoolPath, name))
}

function ignoreExisting(error: unknown): void {
  if (codeOf(error) !== 'EEXIST') throw error
}
