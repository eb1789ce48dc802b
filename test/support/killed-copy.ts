// killed-copy.ts: a copy of the files of a running database, as a kill would leave them. LevelDB removes files in the
// background while the copy is made; a copy that mixes two moments is made anew.

import { cp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { newFolder } from './folders.ts'

const tries = 50

/** Resolves with the path of the copy. Sockets are left out. */
export async function killedCopy(path: string): Promise<string> {
  const copy = join(await newFolder(), 'copy')
  for (let left = tries; ; left -= 1) {
    const before = await namesIn(path)
    const fault = await cp(path, copy, {
      recursive: true,
      filter: (source) => !source.endsWith('.sock'),
    }).then(
      () => null,
      (error: unknown) => error as NodeJS.ErrnoException,
    )
    if (fault === null && (await namesIn(path)) === before) return copy
    if (left === 0 || (fault !== null && fault.code !== 'ENOENT'))
      throw fault ?? new Error(`the files in ${path} changed during each of ${tries} copies`)
    await rm(copy, { recursive: true, force: true })
  }
}

async function namesIn(path: string): Promise<string> {
  return (await readdir(path, { recursive: true })).sort().join('\n')
}
