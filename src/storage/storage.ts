// storage.ts: ordered bytes on disk over LevelDB. The door of this folder; it knows no payload.
//
// Promises
//   write()  is atomic: all operations or none, also over a power cut; with `sync` it is durable when the
//            promise resolves. Writes are applied in the order in which they were started. The caller keeps
//            at most one in flight, so a crash leaves a prefix of them.
//   pages()  sees a snapshot of the moment in which the iteration began, in key order.
//
// What can go wrong
//   After a failed write the handle lies: LevelDB goes on to accept writes that are gone at the next open.
//   So after any error of write() the caller closes the store and opens it again; it never retries on the
//   same handle. Damaged blocks surface as rejections of pages() and get() with code LEVEL_CORRUPTION.
//
// openExistingStore opens what is there and makes nothing; repairStore puts a copy together that no open can read.
//
// Left out on purpose: LevelDB's clear(), which is neither atomic with a batch nor synced, and reads without
// a range, which cross the tombstones of everything that was ever delivered.

export { openExistingStore, openLevelStore, repairStore } from './level-store.ts'
export { realDisk, type Disk } from './disk.ts'

/** One operation of an atomic write. */
export type StoreOp = { type: 'put'; key: Buffer; value: Buffer } | { type: 'del'; key: Buffer }

/** Keys from `gte` up to but not including `lt`. */
export type StoreRange = { gte: Buffer; lt: Buffer }

export type StoreEntry = [key: Buffer, value: Buffer]

export type ReadOptions = {
  reverse?: boolean
  /** At most so many entries in all. */
  limit?: number
  /** About so many bytes a page; one entry at least. Default 256 KiB. */
  pageBytes?: number
}

export type Store = {
  write(ops: readonly StoreOp[], options: { sync: boolean }): Promise<void>
  get(key: Buffer): Promise<Buffer | undefined>
  pages(range: StoreRange, options?: ReadOptions): AsyncIterable<readonly StoreEntry[]>
  /** Gives the disk of deleted keys back. May take seconds; writes go on meanwhile. */
  compact(range: StoreRange): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the database in the directory `path`, made where it is missing.
 * Rejects with GatewayError SPOOL_LOCKED, SPOOL_DAMAGED or SPOOL_UNWRITABLE.
 */
export type OpenStore = (path: string, options?: StoreOptions) => Promise<Store>

export type StoreOptions = {
  /** Memory that holds the newest writes, twice while one is being written out. */
  writeBufferBytes?: number
}
