// spool-options.ts: what the spool needs from outside, and its bounds. config.ts makes the bounds from the
// config.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId, ProviderName } from '../domain/ids.ts'
import type { FilledStore, OnFull } from '../domain/kept-store.ts'
import type { ChunkBufferOptions } from './chunk-log/recent-chunks/recent-chunks.ts'
import type { StoreMemory } from './opening/known-store.ts'
import type { CheckStore, Disk, OpenStore, ReadTables } from '../storage/storage.ts'

/**
 * Whether a payload with this device time is late: then it goes to a backfill lane. Null while our time is
 * not known.
 */
export type IsLate = (provider: ProviderName, deviceTime: EpochMs) => boolean | null

export type SpoolDeps = {
  clock: Clock
  newId: NewId
  random: () => number
  emit: Emit
  openStore: OpenStore
  disk: Disk
  /** Checks the files before each opening. Without it nothing is looked at: for stores in memory. */
  checkStore?: CheckStore
  /** Reads tables of the open store in the background. Without it none is read. */
  readTables?: ReadTables
  /** Tells a boot of the machine from the next. */
  bootId?: string
  /** What the opening does now, in words. */
  onProgress?: (text: string) => void
  /** What earlier openings of this process know of the store. */
  memory?: StoreMemory
  /** Ends the opening. */
  signal?: AbortSignal
  /** Called once for each payload, so it must be fast. Without it no payload is late. */
  isLate?: IsLate
  /** The time of the gateway, which kept messages and dead letters get. Without it, that of the clock. */
  ourNow?: () => EpochMs
}

export type SpoolOptions = {
  path: string
  /** A new spool is made where there is none; else SPOOL_MISSING. */
  create: boolean
  /** On a file system in memory, too; else SPOOL_IN_MEMORY. */
  allowInMemory: boolean
  /** Of damaged files at the start: wait for a repair, or rename the store and begin a new one. */
  onDamage: 'refuse' | 'set_aside'
  /** How fast the tables are read in the background; 0 for not at all. */
  verifyBytesPerS: number
  /** Where the service manager notes how the last process ended; `last-exit` in `path` by default. */
  lastExitPath?: string
  bytesMax: number
  freeBytesMin: number
  deadLetterBytesMax: number
  unlistedDeadLetterBytesMax: number
  partDeadLetterBytesMax: number
  quarantineBytesMax: number
  clockBytesMax: number
  onFull: Record<Exclude<FilledStore, 'part_dead_letters'>, OnFull>
  stateBytesMax: number
  /** Bounds of the records of late entries; part of the state (late-records.ts). */
  lateRecords: { recordsMax: number; bytesMax: number }
  /** Bound of the backfill lanes of one provider. At the bound the live lane is not rotated. */
  backfillLanesMax: number
  receiptBytesMax: number
  /** Receipts that are in memory as well. */
  receiptMemoryBytesMax: number
  /** Part of `bytesMax` that intake may not use, so that settles have room. */
  reserveBytes: number
  ballastBytes: number
  window: { windowMs: number; keysMax: number }
  /** Bounds of what ingest notes with its messages. At a bound the oldest entries are forgotten. */
  journal: { windowMs: number; bytesMax: number }
  /** Bounds of one chunk: the limits of a batch, so that sealing seldom has to cut. */
  group: { chunkPayloadsMax: number; chunkBytesMax: number }
  /** A write takes at most this many bytes of messages, and one message more. */
  groupBytesMax: number
  /** Above it, ingest reads only a few messages of each connection until the next commit (committer.ts). */
  busyMessages: number
  busyBytes: number
  uncommittedBytesMax: number
  /** How long an acknowledgement, or a write that nobody waits for, may wait for others; 0: not at all. */
  ackDelayMaxMs: number
  recentBytesMax: number
  /** Buffers of chunks that are used again. */
  buffers: ChunkBufferOptions
  diskCheckMs: number
  /** Interval at which expired keys of the dedup window and drained lanes are deleted. */
  forgetMs: number
  reopen: { firstMs: number; mostMs: number; attemptsMax: number }
}
