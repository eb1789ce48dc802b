// storage.ts: ordered bytes on disk, over LevelDB. Entry file of this folder, which knows no payload.
//
// Guarantees
//   write()  is atomic: all operations or none, also over a power cut. With `sync` it is durable when the
//            promise resolves. Writes are applied in the order in which they start. The caller keeps at most
//            one in flight, so a crash leaves a prefix of them.
//   pages()  reads a snapshot of the moment in which the iteration starts, in key order.
//
// Failures
//   After a failed write the handle is unusable: LevelDB accepts further writes and loses them at the next
//   open. After any error of write() the caller closes the store and opens it again. It never retries on the
//   same handle. Damaged blocks reject pages() and get() with code LEVEL_CORRUPTION.
//
// Not offered: LevelDB's clear(), which is neither atomic with a batch nor synced, and reads without a range,
// which cross the tombstones of everything that was ever deleted.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { Level } from 'level'
import { assert } from '../std/assert.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'

import { realDisk } from './disk.ts'
import { explainDirectory } from './disk-errors.ts'
import { hasDatabase, refuseWithoutCurrent, storeFilesAt } from './store-files.ts'
import { lockedFault } from './store-lock.ts'
import { defaultPageBytes, type ReadOptions, type StoreEntry, type StoreRange } from './types.ts'

export { createDiskWatch } from './disk-watch.ts'
export { freeFilesMin, realDisk, syncDirectory, type Disk, type Free } from './disk.ts'
export { defaultPageBytes, type ReadOptions, type StoreEntry, type StoreRange } from './types.ts'
export { openLevelFiles } from './level-files/level-files.ts'
export type * from './level-files/level-files.ts'
export * from './level-repair/level-repair.ts'
export { damageText } from './store-check/damage-text.ts'
export { checkInThread } from './store-check/store-check.ts'
export {
  liveTablesAt,
  readTablesInThread,
  type ReadTable,
  type ReadTables,
} from './store-check/table-round.ts'
export { readCheckState, unknownCheckState, writeCheckState, type CheckState } from './check-state.ts'
export { explainDirectory, isDiskFull } from './disk-errors.ts'
export { hasDatabase, storeFilesAt, type StoreFiles } from './store-files.ts'
export { lockStore, type StoreLock } from './store-lock.ts'
export { deleteUnnamedTables } from './unnamed-tables.ts'
export { giveToOwner } from './file-owner.ts'
export { makeOutputDirectory } from './output-place.ts'
export { makePrivate } from './private-files.ts'
export type { FixedFile } from './fixed-file.ts'
export { stageStore, storeBytes, transferStore } from './store-snapshot.ts'

/** One operation of an atomic write. */
export type StoreOp = { type: 'put'; key: Buffer; value: Buffer } | { type: 'del'; key: Buffer }

export type Store = {
  write(ops: readonly StoreOp[], options: { sync: boolean }): Promise<void>
  get(key: Buffer): Promise<Buffer | undefined>
  pages(range: StoreRange, options?: ReadOptions): AsyncIterable<readonly StoreEntry[]>
  /** Frees the disk space of deleted keys. May take seconds; writes continue meanwhile. */
  compact(range: StoreRange): Promise<void>
  close(): Promise<void>
}

/** Opens the database in directory `path`. Rejects: SPOOL_LOCKED, SPOOL_DAMAGED, or one of disk-errors.ts. */
export type OpenStore = (path: string, options?: StoreOptions) => Promise<Store>

export type StoreOptions = {
  /**
   * Memory for the newest writes; twice as much while one buffer is being written out. A larger buffer means
   * fewer and larger tables, and more for LevelDB to read from its log at start. Default 8 MiB.
   */
  writeBufferBytes?: number
  /** False: an existing database is opened, and no directory is made. Default true. */
  createIfMissing?: boolean
}

const defaultWriteBufferBytes = 8 * 1024 * 1024

/** A block of this size is compressed as one. Payloads of a fleet are alike: larger blocks save disk. */
const blockBytes = 16 * 1024

/** Creates the directory and the database where they are missing, and never where files of a database are. */
export const openLevelStore: OpenStore = async (path, options = {}) => {
  if (options.createIfMissing === false) return openExistingStore(path, options)
  await realDisk.makeDirectory(path)
  await refuseWithoutCurrent(path)
  return open(path, { ...options, createIfMissing: true })
}

/** Opens an existing database and creates none. Rejects also with SPOOL_MISSING. */
export const openExistingStore: OpenStore = async (path, options) => {
  const files = await storeFilesAt(path)
  if (files.hasCurrent || hasDatabase(files)) return open(path, { ...options, createIfMissing: false })
  // LevelDB would leave an empty directory there.
  throw new GatewayError('SPOOL_MISSING', {
    what: `There is no database at ${path}.`,
    why: 'The directory is missing or empty.',
    act: 'Check that its file system is mounted.',
  })
}

async function open(path: string, options: StoreOptions & { createIfMissing: boolean }): Promise<Store> {
  const { createIfMissing, writeBufferBytes = defaultWriteBufferBytes } = options
  const level = new Level<Buffer, Buffer>(path, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  // The types of `level` hide `sync` and `compactRange`. On Node its class is ClassicLevel, which has them.
  assert(level instanceof ClassicLevel, 'level is classic-level on Node')
  try {
    await level.open({
      createIfMissing,
      compression: true,
      writeBufferSize: writeBufferBytes,
      blockSize: blockBytes,
      maxFileSize: 8 * 1024 * 1024,
    })
  } catch (error) {
    throw explainOpenFailure(path, error)
  }
  return storeOver(level)
}

function storeOver(level: ClassicLevel<Buffer, Buffer>): Store {
  return {
    // The array is only read; the type of abstract-level asks for a mutable one.
    write: (ops, options) => level.batch(ops as StoreOp[], options),
    get: (key) => level.get(key),
    pages: (range, options) => readPages(level, range, options ?? {}),
    compact: ({ gte, lt }) => level.compactRange(gte, lt),
    close: () => level.close(),
  }
}

async function* readPages(
  level: ClassicLevel<Buffer, Buffer>,
  range: StoreRange,
  options: ReadOptions,
): AsyncGenerator<StoreEntry[]> {
  const iterator = level.iterator({
    ...range,
    reverse: options.reverse ?? false,
    limit: options.limit ?? -1,
    fillCache: false,
    highWaterMarkBytes: options.pageBytes ?? defaultPageBytes,
  })
  try {
    for (;;) {
      const page = await iterator.nextv(10_000)
      if (page.length === 0) return
      yield page
    }
  } finally {
    await iterator.close()
  }
}

function explainOpenFailure(path: string, error: unknown): GatewayError {
  const code = codeOf(error instanceof Error && error.cause !== undefined ? error.cause : error)
  if (code === 'LEVEL_LOCKED') {
    return lockedFault(path, error)
  }
  const why = messageOf(error)
  // LevelDB reports a file that CURRENT names and that is missing as an I/O error, like a failing disk.
  const missesFile = /No such file/.test(why) && existsSync(join(path, 'CURRENT'))
  if (code === 'LEVEL_CORRUPTION' || missesFile || /corrupt|missing files|CURRENT/i.test(why)) {
    return new GatewayError('SPOOL_DAMAGED', {
      what: `Cannot open the spool at ${path}.`,
      why: `Its database files are damaged: ${why}.`,
      act: 'Do not delete the directory. Copy it first: it holds acknowledged telemetry.',
      cause: error,
    })
  }
  return explainDirectory(`Cannot open or create the database at ${path}.`, error)
}
