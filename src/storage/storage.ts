// storage.ts: ordered bytes on disk. The door of this folder.
//
// Promises
//   write()  is atomic: all operations or none, also over a power cut. With `sync` it is durable when the
//            promise resolves. Writes are applied in the order in which they were started; the caller keeps
//            at most one in flight (spool/committer.ts does), so a crash leaves a prefix of them.
//   read     iterators see a snapshot of the moment in which they were made.
//
// What can go wrong
//   After a failed write the handle lies: LevelDB goes on to accept writes that are gone at the next open.
//   So after any error of write() the store refuses everything but close() (STORE_POISONED is an assertion
//   for the caller, who must close and open again). Never retry on the same handle.
//
// LevelDB's clear() is neither atomic with a batch nor synced, and writes without sync leave holes instead
// of a shorter tail when the power goes; both are left out on purpose.

/** One operation of an atomic write. */
export type StoreOp = { type: 'put'; key: Buffer; value: Buffer } | { type: 'del'; key: Buffer }

export type StoreRange = { gte: Buffer; lt: Buffer; reverse?: boolean; limit?: number }

export type StoreEntry = readonly [key: Buffer, value: Buffer]

export type Store = {
  /** Applies all of `ops` atomically; durable when it resolves. Rejects with the database's error. */
  write(ops: readonly StoreOp[], options: { sync: boolean }): Promise<void>
  get(key: Buffer): Promise<Buffer | undefined>
  /** Entries in key order; `limit` bounds what is read. */
  entries(range: StoreRange): AsyncIterable<StoreEntry>
  keys(range: StoreRange): AsyncIterable<Buffer>
  /** Gives the disk of deleted ranges back. May take seconds; writes go on meanwhile. */
  compact(range: { gte: Buffer; lt: Buffer }): Promise<void>
  close(): Promise<void>
}

/** Opens the database at `path`; rejects with GatewayError SPOOL_LOCKED, SPOOL_DAMAGED or SPOOL_UNWRITABLE. */
export type OpenStore = (path: string) => Promise<Store>
