// spool.ts: the door of the spool, the durable heart between ingest and delivery.
//
// What it promises
//   An ack is given after the fsync of the write that holds the message, in the order of arrival.
//   What was acknowledged is in exactly one place until the service has it: a lane, a sealed batch, the mapping's
//   state, a shelf, or a dead letter. kill -9, a power cut, a full disk or a failed write change nothing about that.
//   A sealed batch has the same batchId and the same bytes at every submission, over every crash.
//   A payload that a device sends again is acknowledged and not stored again, within the dedup window.
//
// How it is stored (key-layout.ts has the tables, chunk-codec.ts and record-codec.ts the bytes)
//   A lane is a FIFO of one provider's payloads, numbered from 0 and never twice. What one write adds to a lane
//   is one chunk, under one key. A batch is a claim on a run of chunks: sealing and settling move nothing. Nor does
//   anything else that happens to them: a live lane becomes a backfill lane by its record (lane-rotation.ts), a batch goes on
//   in parts or by the other operation by its claim (reseal.ts), and a drained backfill lane is deleted (lane-cleanup.ts).
//
//   Beside the lanes stand entries of state that the mapping needs back after a restart (state-entries.ts), shelves of
//   messages that are kept whole until they can be mapped (message-shelf.ts), the dead letters (dead-letter-table.ts), and receipts of
//   what was settled, until the ledger has them (receipt-queue.ts).
//
//     append, addDeadLetter, putState, keepMessage, ... --> group --.
//     exchange -----------------------------------------> group --|--> committer --> one atomic write, fsync --> acks
//     seal, settle, rotate, reseal, setOperation --------> control '
//
//   group      messages on their way to disk: chunks, dedup keys, dead letters, acks     (group.ts, commit-attachments.ts)
//   exchange   kept messages and dead letters become something else, in one write        (exchange.ts, entry-reservations.ts)
//   committer  one write at a time; everything that waits goes along                     (committer.ts)
//   lane       numbers, claims, what is known of the chunks                              (lane.ts)
//   epoch      all of it between one opening of the store and its loss                   (session.ts)
//   keeper     opens the store again after a failure, judges whether messages may come   (store-supervisor.ts)
//
// What can go wrong, and what then happens
//   the process dies      recovery reads lanes, totals, claims and the window, not the payloads (recovery.ts, repair.ts)
//   a write fails         nothing of it is acknowledged; the store is closed, since its handle lies from then
//                         on, and opened again after a pause; whoever waited gets the fault
//   the limit is reached  intake is held, settles and exchanges go on in the reserve; it resumes by itself. The
//                         shelves and the state have limits of their own, with the same effect; at that of the
//                         dead letters only what would become one more is held (intake-limits.ts)
//   a chunk is damaged    it is set aside as it is, reported and counted, and the lane goes on (damage-quarantine.ts); so is
//                         a kept message or an entry of state (kept-message-reader.ts, state-entries.ts)
//   it cannot be opened   what can be read of its files is read from a copy (salvage.ts); nothing is ever deleted
//
// What it trades: a group costs one fsync however small it is, so a lone message waits for the disk; ids leave
// the dedup window after ten minutes or a million, so a copy that comes later is stored again.

import type { EpochMs } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { BatchId, LaneId, PayloadId, ProviderName } from '../domain/ids.ts'
import type { DeadLetter, DeadLetterStage } from '../domain/dead-letter.ts'
import type { HoldReason } from '../domain/event.ts'
import type { KeptMessage, ShelfName } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { SpoolCheck } from './salvage/spool-check.ts'
import type { SpoolTotals } from './spool-totals.ts'

export { openSpool } from './store-supervisor.ts'
export type { IsLate, SpoolDeps, SpoolOptions } from './spool-options.ts'
export { openRestingSpool, openSalvage, type RestingSpool, type Salvage } from './salvage/salvage.ts'
export type { SpoolCheck } from './salvage/spool-check.ts'
export type { Salvaged } from './salvage/record-sorting.ts'
export type { SpoolTotals } from './spool-totals.ts'

/** Called once: with null after the fsync of the group that holds the message, else with the fault. */
export type Ack = (fault: GatewayError | null) => void

/** What a lane is for. A record, not part of a key: it can change while the lane holds payloads. */
export type LaneRole =
  | { kind: 'live' }
  | { kind: 'backfill' }
  /** Payloads that failed `step + 1` times; each rests here for that step's delay of `schedule`. */
  | { kind: 'retry'; schedule: string; step: number }

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
  /** When the oldest pending payload was committed to this lane; null where none is pending. */
  oldestAt: EpochMs | null
  /** Conservation (invariant 6): appended = settled + open, where `open` is counted by the chunks themselves. */
  appended: number
  settled: number
  open: number
}

/** By which operation a batch goes next: `single` is POST /v2/telemetry and holds one payload (ingestion-api.md 4.1). */
export type BatchOperation = 'batch' | 'single'

/** A sealed batch: a durable claim on a contiguous range of one lane. It never changes. */
export type Batch = {
  lane: LaneId
  provider: ProviderName
  role: LaneRole
  batchId: BatchId
  firstSeq: number
  endSeq: number
  /** Payloads in it, and their JSON bytes. */
  payloads: number
  bytes: number
  /** Wall clock at sealing; stands in the body, so that it is the same at every submission. */
  timestamp: EpochMs
  operation: BatchOperation
  /** Sealed before this process started: it may have been sent already. */
  recovered: boolean
}

export type BatchContent = {
  /** Length of the request body: that of POST /v2/telemetry/batch, or the one payload itself, as its operation is. */
  readonly bodyBytes: number
  /** Writes that body to the start of `target`, byte for byte the same at every call; returns where each payload starts. */
  writeBody(target: Buffer): Uint32Array
  readonly payloadIds: readonly PayloadId[]
  /** How often the service answered `failed` for each payload, before this batch. */
  readonly attempts: readonly number[]
  /** JSON bytes of one payload, as stored. */
  payload(index: number): Buffer
}

export type LoadedBatch =
  | { kind: 'content'; content: BatchContent }
  /** A damaged chunk was found and set aside; what is left of the claim got new batchIds. */
  | { kind: 'replaced'; batches: readonly Batch[] }

export type SealLimits = {
  payloadsMax: number
  /** Bound of the request body in bytes. A single payload beyond it still gets a batch of its own. */
  bodyBytesMax: number
  /** Only payloads committed to the lane at or before this moment; for retry lanes. */
  committedUntil?: EpochMs
  /** By which operation it goes first; `single` with `payloadsMax` 1 only. */
  operation?: BatchOperation
}

/** `id` stays the same as long as the letter is there. */
export type DeadLetterEntry = { id: string; deadLetter: DeadLetter }

export type DeadLetterFilter = { limit: number; stage?: DeadLetterStage; reason?: string }

/** An entry of the mapping's state. */
export type StateEntry = { key: string; value: Buffer }

/** A message on a shelf; `id` stays the same as long as it is there. */
export type KeptEntry = { id: string; keptAt: EpochMs; message: KeptMessage }

export type KeptDevice = { device: string; messages: number; oldestAt: EpochMs }

export type ShelfView = {
  shelf: ShelfName
  /** Committed messages that are kept now, and their bytes. */
  messages: number
  bytes: number
  /** Conservation: kept = taken + damaged + messages, over the life of the spool. */
  kept: number
  taken: number
  damaged: number
}

/** What becomes of kept messages and dead letters, and of state that closes by time. */
export type Exchange = {
  /** Ids of kept messages and dead letters, none of them twice; may be empty. */
  take: readonly string[]
  /** Appended as others are; the dedup window is not asked and does not learn of them. */
  payloads: readonly MappedPayload[]
  deadLetters: readonly DeadLetter[]
  /** Put on a shelf, whether or not the dedup window knows them: a deferred message of an unknown device, say. */
  keptMessages?: readonly KeptMessage[]
  /** Null deletes. */
  stateChanges: readonly { key: string; value: Buffer | null }[]
}

export type SpoolListener = {
  /** A commit added payloads to a lane. */
  payloadsAdded?(): void
  /** A commit put messages on a shelf. */
  messagesKept?(): void
  /** The store failed: every batch in hand is void; the same ones come back after reopening. */
  storeLost?(): void
  storeReopened?(): void
  /** The store could not be opened again, many times in a row: the process should end and be restarted. */
  storeUnrecoverable?(fault: GatewayError): void
  /** `hold`, `congested` or `lettersFull` changed. */
  intakeChanged?(): void
}

export type Spool = {
  // ---- for ingest; synchronous, on the hot path

  /** Why nothing may be appended for now; null when all is well. */
  readonly holdReason: HoldReason | null
  /** More than the bound of uncommitted bytes waits: stop reading from sockets until `intakeChanged`. */
  readonly congested: boolean
  /** The dead letters have reached their bound: who would bury something waits until `intakeChanged`. */
  readonly deadLettersFull: boolean
  /** Adds a payload to the open group. `copy` where the dedup window knows it: nothing is stored. */
  append(payload: MappedPayload, dup: boolean): 'stored' | 'duplicate'
  /**
   * Adds a dead letter to the open group. `windowKey` (32 hexadecimal digits) makes a resend of the same
   * message with DUP a copy.
   */
  addDeadLetter(letter: DeadLetter, windowKey: string | null, dup: boolean): 'stored' | 'duplicate'
  /**
   * Adds the key of a message that becomes part of something, and no payload, to the window. `copy` where `dup` holds
   * (it is sent again, or its key says that much by itself) and it is known: its part is in the state already.
   */
  addWindowKey(windowKey: string, dup: boolean): 'stored' | 'duplicate'
  /** Puts an entry of state into the open group, or deletes it; `key` has 1 to 512 characters. Copies `value`. */
  putState(key: string, value: Buffer | null): void
  /** Puts a message whole on a shelf. */
  keepMessage(message: KeptMessage, windowKey: string, dup: boolean): 'stored' | 'duplicate'
  /**
   * Ends one message: everything appended since the last call belongs to it and lands in one group.
   * `ack` is called after that group is durable, in the order of these calls; null where nobody waits.
   */
  endMessage(ack: Ack | null): void

  // ---- for delivery

  lanes(): readonly LaneView[]
  /** Sealed batches that are not settled, oldest first in each lane. */
  batches(): readonly Batch[]
  /** Claims a run of pending payloads from the head of a lane; durable when it resolves. Null: nothing to claim. */
  seal(lane: LaneId, limits: SealLimits): Promise<Batch | null>
  load(batch: Batch): Promise<LoadedBatch>
  /**
   * The live lane of a provider becomes a backfill lane, and what comes next opens a new live lane. One small durable
   * write; nothing moves. False where nothing is pending in it, or `backfillLanesMax` lanes of that kind exist.
   */
  rotate(provider: ProviderName): Promise<boolean>
  /**
   * What the batch claims goes on under new batchIds and with the time of now, as contiguous runs of `counts`
   * payloads, which are all of it; one atomic durable write. `[n]` gives the whole a new batchId. Attempts stay, the operation of
   * all is `batch`, and the batch itself is void. Where damage is found, what is left of it comes back instead.
   */
  reseal(batch: Batch, counts: readonly number[]): Promise<readonly Batch[]>
  /** Notes durably by which operation a batch goes next; batchId, range and timestamp stay. */
  setOperation(batch: Batch, operation: BatchOperation): Promise<Batch>
  /**
   * Carries out what became of a batch, in one atomic durable write. `receipt` is kept in the same write until it is forgotten;
   * beyond `receiptBytesMax` of them it is left out and counted.
   */
  settle(batch: Batch, settlement: Settlement, receipt?: Buffer | null): Promise<void>

  // ---- for the ledger

  /** Oldest first; a damaged one has no bytes. */
  receipts(options: { limit: number }): Promise<readonly { n: number; value: Buffer }[]>
  /** Forgets those up to and with `n`. */
  forgetReceipts(n: number): Promise<void>

  // ---- for what was kept, buried or remembered

  /** The durable state, after a start and after `reopened`; what is remembered meanwhile need not show. */
  stateEntries(): AsyncIterable<StateEntry>
  shelves(): readonly ShelfView[]
  keptDevices(shelf: ShelfName): AsyncIterable<KeptDevice>
  /** In order of arrival; of one device, or of all where `device` is null. */
  keptMessages(shelf: ShelfName, device: string | null, options: { limit: number }): AsyncIterable<KeptEntry>
  /** Oldest first. */
  deadLetters(filter: DeadLetterFilter): AsyncIterable<DeadLetterEntry>
  deadLetter(id: string): Promise<DeadLetterEntry | null>
  /**
   * Carries all of it out in one atomic write; resolves when it is durable. Rejects with SPOOL_ENTRY_GONE where
   * somebody else took an entry, and then nothing has happened. Payloads keep the order of the calls. An entry that
   * was read since the last opening is taken before the call returns, and state is then in order with `remember`.
   * Not to be called between the parts of a message, before its `endMessage`.
   */
  exchange(exchange: Exchange): Promise<void>

  // ---- for everyone

  /** Walks over every record there is; rejects with SPOOL_CLOSED where `signal` aborts it. */
  check(signal: AbortSignal): Promise<SpoolCheck>
  /** Which of these stand in a lane or in a dead letter. Reads all of them: for what comes in bulk. */
  storedPayloadIds(ids: ReadonlySet<PayloadId>, signal: AbortSignal): Promise<Set<PayloadId>>
  listen(listener: SpoolListener): () => void
  totals(): SpoolTotals
  /** Commits what is open, then closes the store. */
  close(): Promise<void>
}
