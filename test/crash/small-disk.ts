// small-disk.ts: a file system of a few megabytes in memory, and a program that fills it. Only root may mount
// one.

import { execFile } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf } from '../../src/std/gateway-error.ts'

const run = promisify(execFile)

export type SmallDisk = AsyncDisposable & {
  path: string
  /** Another program fills the disk completely. A second call fills the space that became free. */
  fill(): void
  /** Removes the files of the other program. */
  clear(): Promise<void>
}

/** Null if this user may not mount. */
export async function mountSmallDisk(sizeMiB: number): Promise<SmallDisk | null> {
  const path = mkdtempSync(join(tmpdir(), 'gateway-small-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m`, 'tmpfs', path])
  } catch {
    await rm(path, { recursive: true, force: true })
    return null
  }
  const filler = join(path, 'filler')
  return {
    path,
    fill: () => fillWith(filler),
    clear: () => rm(filler, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', [path])
      await rm(path, { recursive: true, force: true })
    },
  }
}

function fillWith(filler: string): void {
  const fd = openSync(filler, 'a')
  try {
    for (let size = 1024 * 1024; size >= 1; size = size > 1 ? Math.floor(size / 2) : 0) {
      while (writesAll(fd, size));
    }
  } finally {
    closeSync(fd)
  }
}

function writesAll(fd: number, size: number): boolean {
  try {
    return writeSync(fd, Buffer.alloc(size, 1)) === size
  } catch (error) {
    if (codeOf(error) === 'ENOSPC') return false
    throw error
  }
}
