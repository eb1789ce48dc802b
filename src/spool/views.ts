// views.ts: what the spool reports about itself: lanes, shelves, totals, and the result of a check.

import type { EpochMs } from '../std/clock.ts'
import type { BatchId, LaneId, ProviderName } from '../domain/ids.ts'
import type { KeptStore, OnFull, ShelfName } from '../domain/kept-store.ts'
import type { LaneRole } from '../domain/settlement.ts'

export type { LaneRole } from '../domain/settlement.ts'

export type LaneView = {
  id: LaneId
  provider: ProviderName
  role: LaneRole
  openedAt: EpochMs
  /** Committed payloads that no batch claims yet, and their JSON bytes. */
  pending: number
  pendingBytes: number
  /** Payloads in sealed batches that are not settled yet. */
  sealed: number
  sealedBytes: number
  /** Held batches, which are sealed, too; their payloads and JSON bytes. */
  heldBatches: number
  heldPayloads: number
  heldBytes: number
  /**
   * When the oldest pending payload was committed to this lane; null if none is pending, or if it must be
   * read from the disk first.
   */
  oldestAt: EpochMs | null
  /** The same of the sealed payloads; after a restart that of their batch. Read on access. */
  readonly oldestSealedAt: EpochMs | null
  /**
   * The first number that is not durably settled, read on access; the first that no batch claims; the first
   * that is not committed. `appended` is the next number: of a write that is under way, too.
   */
  readonly lowSeq: number
  /** The same without the batches for which `isApart` holds. */
  lowSeqBeside(isApart: (batchId: BatchId) => boolean): number
  sealSeq: number
  committedSeq: number
  /** Conservation (invariant 6): appended = settled + open, where `open` is counted from the chunks. */
  appended: number
  settled: number
  open: number
}

export type ShelfView = {
  shelf: ShelfName
  /** Committed messages that are on the shelf now, and their bytes. */
  messages: number
  bytes: number
  /** Conservation: kept = taken + damaged + messages, over the life of the spool. */
  kept: number
  taken: number
  damaged: number
  /** No message before it is on the shelf; the next number, of a write that is under way, too. */
  headSeq: number
  nextSeq: number
}

/** A part of a file of the database that cannot be read. */
export type DamagedFile = {
  file: string
  /** A checksummed unit of the file, such as `block` or `log record`, or the whole file. */
  unit: string
  offset: number
  bytes: number
  what: string
  /** Which records it can have held, in words; empty if none. */
  records: readonly string[]
}

export type SpoolCheck = {
  ok: boolean
  /** Damaged files, which are problems, too; at most 200. */
  damage: readonly DamagedFile[]
  tables: readonly { table: string; records: number; bytes: number; damaged: number }[]
  lanes: readonly {
    lane: number
    provider: string
    role: string
    batches: number
    appended: number
    settled: number
    open: number
  }[]
  shelves: readonly { shelf: string; kept: number; taken: number; damaged: number; messages: number }[]
  /** One sentence each; at most 200 of them. */
  problems: readonly string[]
  problemsHidden: number
}

/** What snapshot.json says. */
export type SnapshotSummary = {
  version: 1
  createdAt: string
  /** Id of the spool that it was made of. */
  instance: string
  writes: number
  payloads: number
  batches: number
  tables: number
  /** Tables that share their disk space with the spool. */
  linkedTables: number
  bytes: number
}

export type SnapshotReport = SnapshotSummary & { path: string }

/** What is counted since the process started, when durable. It survives the reopening of the store. */
export type SpoolCounters = {
  /** Payloads by what became of them. */
  payloads: number
  duplicates: number
  delivered: number
  retried: number
  dead: number
  /** Removed, because they are stored in a queue of the server that they came from. */
  returned: number
  damaged: number
  /** Messages put on a shelf; kept messages and dead letters exchanged; payloads that exchanges appended. */
  kept: number
  taken: number
  exchanged: number
  /** Exchanges (kept/exchange.ts) and settles that put something back to where it was, or before that. */
  movedBack: number
  /** Late entries put under their own keys because their record left before they changed again. */
  lateMoved: number
  /** Kept messages, dead letters and entries of mapping state that were counted and are missing. */
  recordsMissing: number
  /** Receipts left out because there was no room. */
  receiptsDropped: number
  /** Receipts that were read from the disk because they were not in memory. */
  receiptsReread: number
  /** How long the first message of the last group waited for its ack. */
  ackWaitMs: number
  /** Messages that were dropped to make room in a store. */
  evicted: Record<KeptStore, number>
}

/** How full a store is. The bytes include messages that wait to be written. */
export type StoreView = { bytes: number; bytesMax: number; onFull: OnFull; devices: number; clients: number }

export type SpoolTotals = SpoolCounters & {
  /** JSON bytes of the payloads that are open now, over all lanes. */
  openBytes: number
  /** Held batches over all lanes, and their payloads. */
  heldBatches: number
  heldPayloads: number
  /** Dead letters, and their bytes. */
  deadLetters: number
  deadLetterBytes: number
  /** Each store beside the lanes. */
  stores: Record<KeptStore, StoreView>
  /** Messages on the shelves of each kind now. The bytes include messages that wait to be written. */
  quarantined: number
  quarantineBytes: number
  deferred: number
  deferredBytes: number
  receipts: number
  receiptBytes: number
  stateEntries: number
  stateBytes: number
  groups: number
  windowIds: number
  /** The limit of the spool, its part that is kept for settling, and the last measured disk usage. */
  bytesMax: number
  reserveBytes: number
  diskBytes: number
  /** Free on the file system of the spool, as last measured; null before. Below `freeBytesMin` it holds. */
  freeBytes: number | null
  freeBytesMin: number
}
