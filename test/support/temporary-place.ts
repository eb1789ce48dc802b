// temporary-place.ts: where tests make their folders: not in memory, as /tmp is on Debian 13. A spool there is refused.

import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileSystemIn } from '../../src/std/file-system/file-system.ts'

/** For this process and the ones that it starts. */
export function keepFoldersOnDisk(): void {
  if (!existsSync('/proc/self/mountinfo')) return
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  if (fileSystemIn(mounts, tmpdir())?.isInMemory === true) process.env['TMPDIR'] = '/var/tmp'
}
