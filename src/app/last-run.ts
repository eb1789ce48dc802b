// last-run.ts: when the run before this one wrote last, by the files of its spool. A run that was killed
// notes no end; the logs of its databases have the time of their last write, at most about a minute
// before: the records are written every minute.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EpochMs } from '../std/clock.ts'

/** The mark, and logs of LevelDB. */
const written = /^(mark|\d+\.log)$/

/** Null where nothing can be read. */
export async function lastWriteIn(spoolPath: string): Promise<EpochMs | null> {
  let last: EpochMs | null = null
  for (const folder of [spoolPath, ...(await foldersIn(spoolPath))])
    for (const name of await namesIn(folder)) {
      if (!written.test(name)) continue
      const at = await stat(join(folder, name)).then(
        ({ mtimeMs }) => Math.round(mtimeMs),
        () => null,
      )
      if (at !== null && at > (last ?? -Infinity)) last = at
    }
  return last
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name))
}

function namesIn(path: string): Promise<string[]> {
  return readdir(path).catch(() => [])
}
