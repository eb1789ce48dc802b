// disk.ts: the file system under the store: free space, used space, and the ballast file. A full disk can
// damage LevelDB for good, so the spool watches the free space and keeps a ballast.
//
// The ballast is a file without content of value. When another program fills the disk in spite of the
// low-space marks, the spool deletes the ballast, and the database has room to open and to settle.

import type { Dirent } from 'node:fs'
import { mkdir, open, readdir, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../std/gateway-error.ts'

export type Disk = {
  makeDirectory(path: string): Promise<void>
  /** Bytes that an unprivileged process can still write on the file system of `path`. */
  freeBytes(path: string): Promise<number>
  /** Bytes of all files below `path`. */
  usedBytes(path: string): Promise<number>
  /** Writes the ballast below `path` where it is missing or short. */
  loadBallast(path: string, bytes: number): Promise<void>
  dropBallast(path: string): Promise<void>
}

export const realDisk: Disk = {
  async makeDirectory(path) {
    await mkdir(path, { recursive: true })
  },
  async freeBytes(path) {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  },
  usedBytes,
  loadBallast,
  async dropBallast(path) {
    await rm(ballastOf(path), { force: true })
  },
}

async function usedBytes(path: string): Promise<number> {
  let bytes = 0
  for (const entry of await entriesBelow(path)) {
    // LevelDB deletes tables meanwhile: a file that is gone uses nothing.
    if (entry.isFile()) bytes += await sizeOf(join(entry.parentPath, entry.name))
  }
  return bytes
}

async function entriesBelow(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true, recursive: true })
  } catch (error) {
    // A missing directory uses nothing.
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

const ballastOf = (path: string) => join(path, 'ballast')

const blockBytes = 1024 * 1024

async function loadBallast(path: string, bytes: number): Promise<void> {
  if ((await sizeOf(ballastOf(path))) >= bytes) return
  const file = await open(ballastOf(path), 'w')
  try {
    // Neither sparse nor compressible, so that the bytes count on any file system.
    const block = Buffer.alloc(Math.min(blockBytes, bytes))
    for (let index = 0; index < block.length; index += 1) block[index] = Math.imul(index, 2654435761) >>> 24
    for (let written = 0; written < bytes; written += block.length) {
      await file.write(block, 0, Math.min(block.length, bytes - written))
    }
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Bytes of a file; 0 where there is none. */
async function sizeOf(name: string): Promise<number> {
  try {
    return (await stat(name)).size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0
    throw error
  }
}
