// private-files.ts: takes the rights of other users from the files of the spool. Version 0.1.0, and commands
// with another umask, made files that every user of the machine can read.

import { chmod, lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../std/gateway-error.ts'

/** `failed`: files of another owner, or on a file system that does not allow it. */
export type PrivacyReport = { changed: number; failed: number }

/** A spool has some thousand files. */
const filesMax = 200_000

/** Directories get mode 0700, files 0600. Links are not followed, and sockets stay as they are. */
export async function makePrivate(path: string): Promise<PrivacyReport> {
  const report = { changed: 0, failed: 0 }
  let files = 0
  await visit(path)
  return report

  async function visit(entry: string): Promise<void> {
    try {
      const found = await lstat(entry)
      if (!found.isFile() && !found.isDirectory()) return
      if ((found.mode & 0o077) !== 0) {
        await chmod(entry, found.isDirectory() ? 0o700 : 0o600)
        report.changed += 1
      }
      if (!found.isDirectory()) return
      for await (const { name } of await opendir(entry)) {
        if ((files += 1) > filesMax) return
        await visit(join(entry, name))
      }
    } catch (error) {
      // LevelDB deletes tables meanwhile, and a new spool does not exist yet.
      if (codeOf(error) !== 'ENOENT') report.failed += 1
    }
  }
}
