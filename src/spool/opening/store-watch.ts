// store-watch.ts: waits until the files of a store change, for a daemon that refuses a damaged one: after
// `spool repair`, or after files came back from a backup, the store is checked again. A disk may also read
// again what it could not, which changes no file: so the wait has a bound.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pause, type Clock } from '../../std/clock.ts'
import { storeFilesAt } from '../../storage/storage.ts'
import { storePathOf } from './aside.ts'

const lookEveryMs = 1000

/** LevelDB writes these at every opening; they say nothing about the data. */
const passing = new Set(['LOG', 'LOG.old'])

/** Resolves when the files differ from what storeSignature() gave `before`, after `forMs`, or by `signal`. */
export async function storeChanged(
  clock: Clock,
  { spoolPath, before, forMs }: { spoolPath: string; before: string; forMs: number },
  signal: AbortSignal,
): Promise<void> {
  const endMs = clock.monotonic() + forMs
  while (clock.monotonic() < endMs && (await pause(clock, lookEveryMs, signal)))
    if ((await storeSignature(spoolPath)) !== before) return
}

/** Names, sizes, times and inodes of all files. */
export async function storeSignature(spoolPath: string): Promise<string> {
  const path = storePathOf(spoolPath)
  try {
    const { names } = await storeFilesAt(path)
    const lines = await Promise.all(
      names
        .filter((name) => !passing.has(name))
        .toSorted()
        .map(async (name) => {
          const { size, mtimeMs, ino } = await stat(join(path, name))
          return `${name} ${size} ${mtimeMs} ${ino}`
        }),
    )
    return lines.join('\n')
  } catch {
    // A file went meanwhile, or the directory cannot be read: that is a state, too.
    return 'unreadable'
  }
}
