// small-disk.ts: a file system of a few megabytes in memory, and a program that fills it. Only root may mount
// one.

import { execFile } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, writeSync } from 'node:fs'
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
  /** Another program makes files until none can be made: all inodes are in use. */
  fillFiles(): void
  /** Removes the files of the other program. */
  clear(): Promise<void>
}

/** Null if this user may not mount. */
export async function mountSmallDisk(sizeMiB: number, { inodes = 100_000 } = {}): Promise<SmallDisk | null> {
  const path = mkdtempSync(join(tmpdir(), 'gateway-small-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m,nr_inodes=${inodes}`, 'tmpfs', path])
  } catch {
    await rm(path, { recursive: true, force: true })
    return null
  }
  const filler = join(path, 'filler')
  const files = join(path, 'files')
  return {
    path,
    fill: () => fillWith(filler),
    fillFiles: () => makeFilesIn(files),
    async clear() {
      await rm(filler, { force: true })
      await rm(files, { recursive: true, force: true })
    },
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

function makeFilesIn(folder: string): void {
  for (let n = 0; ; n += 1)
    try {
      mkdirSync(join(folder, String(n)), { recursive: true })
    } catch (error) {
      if (codeOf(error) === 'ENOSPC') return
      throw error
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
