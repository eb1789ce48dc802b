// disk.ts: the file system under the store: free space, used space, the ballast, and a file beside the store.
// A full disk can damage LevelDB permanently. So the spool watches the free space and keeps a ballast.
//
// The ballast is a file without content of value. When another program fills the disk in spite of the
// low-space marks, the spool deletes the ballast, and the database has room to open and to settle.

import { randomBytes } from 'node:crypto'
import { mkdir, open, opendir, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../std/gateway-error.ts'
import { explainDirectory } from './disk-errors.ts'
import { manifestNameIn, openFixedFile, type FixedFile } from './fixed-file.ts'
import { createRegular } from '../std/file-system/regular-file.ts'

export type Disk = {
  /** Creates what is missing of the path. Rejects with the code of disk-errors.ts. */
  makeDirectory(path: string): Promise<void>
  /** On the file system of `path`. */
  free(path: string): Promise<Free>
  /** Bytes of the files in the directory `path`, without those of its subdirectories. */
  usedBytes(path: string): Promise<number>
  /** Writes the ballast below `path` where it is missing or short. */
  loadBallast(path: string, bytes: number): Promise<void>
  dropBallast(path: string): Promise<void>
  /** Opens the file `name` below `path` (`bytes` zeros if it is new). May throw. */
  openFixedFile(path: string, name: string, bytes: number): FixedFile
  /** What CURRENT of the database at `path` names: another one since each opening. Null: unknown. */
  manifestName(path: string): string | null
}

/**
 * `bytes`: what an unprivileged process can still write. `files`: what can still be made (free inodes);
 * Infinity where the file system does not count them.
 */
export type Free = { bytes: number; files: number }

/** Below it the disk is low. LevelDB makes new files before it deletes old ones. */
export const freeFilesMin = 100

export const realDisk: Disk = {
  makeDirectory,
  async free(path) {
    const { bavail, bsize, files, ffree } = await statfs(path)
    return { bytes: bavail * bsize, files: files > 0 ? ffree : Infinity }
  },
  usedBytes,
  loadBallast,
  async dropBallast(path) {
    await rm(ballastOf(path), { force: true }).catch((error: unknown) => {
      // A directory in its place is not the ballast.
      if (!isDirectoryCode(codeOf(error))) throw error
    })
  },
  openFixedFile: (path, name, bytes) => openFixedFile(join(path, name), bytes),
  manifestName: manifestNameIn,
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await makePath(path)
  } catch (error) {
    throw explainDirectory(`Cannot create the directory ${path}.`, error)
  }
}

/** Own code: mkdir of Node with `recursive` never ends where new ones are refused by ENOENT (/proc). */
async function makePath(path: string): Promise<void> {
  if (await isMade(path)) return
  const parent = dirname(path)
  if (parent !== path) await makePath(parent)
  await mkdir(path, privateMode).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
}

/** Only the user of the daemon; what is in the spool says where vehicles are. */
const privateMode = 0o700

/** False where the parent is missing. */
async function isMade(path: string): Promise<boolean> {
  try {
    await mkdir(path, privateMode)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    // A read-only or foreign file system refuses also what exists.
    const found = await stat(path).catch((why: unknown) => {
      // Why it cannot be looked at, as with a circular link, says more than that something is there.
      throw codeOf(error) === 'EEXIST' && codeOf(why) !== 'ENOENT' ? why : error
    })
    if (found.isDirectory()) return true
    throw error
  }
}

/** A database is one flat directory with some thousand files. A directory of another kind may be endless. */
const filesCountedMax = 100_000

async function usedBytes(path: string): Promise<number> {
  let bytes = 0
  let files = 0
  try {
    for await (const entry of await opendir(path)) {
      if ((files += 1) > filesCountedMax) break
      // LevelDB deletes tables meanwhile: a file that is gone uses nothing.
      if (entry.isFile()) bytes += await sizeOf(join(path, entry.name))
    }
  } catch (error) {
    // A missing directory uses nothing, nor does a file in its place: who opens it says what is wrong.
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
  }
  return bytes
}

const ballastOf = (path: string) => join(path, 'ballast')

const isDirectoryCode = (code: string | undefined) => code === 'ERR_FS_EISDIR' || code === 'EISDIR'

const blockBytes = 1024 * 1024

async function loadBallast(path: string, bytes: number): Promise<void> {
  if ((await sizeOf(ballastOf(path))) >= bytes) return
  const file = await createRegular(ballastOf(path))
  try {
    // Neither sparse nor compressible, so that the bytes count on any file system.
    const block = randomBytes(Math.min(blockBytes, bytes))
    for (let written = 0; written < bytes; written += block.length) {
      await file.write(block, 0, Math.min(block.length, bytes - written))
    }
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes new and renamed files of a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
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
