// types.ts: the interface of the spool and the types in it; views.ts has what it reports about itself.

import type { EpochMs } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { BatchId, LaneId, PayloadId, ProviderName } from '../domain/ids.ts'
import type { DeadLetter, DeadLetterStage } from '../domain/dead-letter.ts'
import type { Held } from '../domain/held.ts'
import type { StateSource } from '../domain/condition-state.ts'
import type { HoldReason } from '../domain/event.ts'
import type { KeptStore, ShelfName } from '../domain/kept-store.ts'
import type { Envelope, KeptMessage } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { PreviousEnd } from './opening/in-use-marker.ts'
import type { ReceiptCalls, ReturnCalls } from './return-calls.ts'
import type { WriteViews } from './write-watch.ts'
import type { LaneRole, LaneView, ShelfView, SnapshotReport, SpoolCheck, SpoolTotals } from './views.ts'

/** Called once: with null after the fsync of the commit that holds the message, else with the fault. */
export type Ack = (fault: GatewayError | null) => void

/** The API operation for a batch: `single` is POST /v2/telemetry with one payload (ingestion-api.md 4.1). */
export type BatchOperation = 'batch' | 'single'

/** A sealed batch: a durable claim on a range of one lane. Only `operation` and `held` can change. */
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
  /** Time of sealing. Part of the body, so it is the same in every submission. */
  timestamp: EpochMs
  operation: BatchOperation
  /** Why it is not sent for now; null if it may be sent. */
  held: Held | null
  /** Sealed before this process started: it may have been sent already. */
  recovered: boolean
}

export type BatchContent = {
  /** Length of the request body of the batch's operation. */
  readonly bodyBytes: number
  /**
   * Writes that body to the start of `target`, the same bytes at every call. Returns where each payload
   * starts.
   */
  writeBody(target: Buffer): Uint32Array
  payloadIds(): readonly PayloadId[]
  /** How often the service answered `failed` for each payload before this batch. */
  attempts(): readonly number[]
  /** JSON bytes of one payload, as stored. */
  payload(index: number): Buffer
}

export type LoadedBatch =
  | { kind: 'content'; content: BatchContent }
  /** A damaged chunk was found and set aside. The rest of the claim has new batchIds. */
  | { kind: 'replaced'; batches: readonly Batch[] }

export type SealLimits = {
  payloadsMax: number
  /** Bound of the request body in bytes. A single payload above it still gets a batch of its own. */
  bodyBytesMax: number
  /** Only payloads committed to the lane at or before this time; for retry lanes. */
  committedUntil?: EpochMs
  /** Only payloads before this number of the lane, with which a commit began. */
  untilSeq?: number
  /** Operation of the first submission; `single` only with `payloadsMax` 1. */
  operation?: BatchOperation
  /** The timestamp of the batch; the wall clock of the spool by default. */
  timestamp?: EpochMs | undefined
}

/** `id` names this dead letter for as long as it exists. */
export type DeadLetterEntry = { id: string; deadLetter: DeadLetter }

/** `after`: only those whose id is larger; ids grow with the time and the number of the dead letter. */
export type DeadLetterFilter = { limit: number; stage?: DeadLetterStage; reason?: string; after?: string }

/** An entry of the mapping's durable state. */
export type StateEntry = { key: string; value: Buffer }

/** Entries that ingest noted with messages, `ageMs` ago. */
export type JournalEntries = { ageMs: number; entries: Buffer }

/** A message on a shelf. `id` is never given to another message. */
export type KeptEntry = { id: string; keptAt: EpochMs; message: KeptMessage }

export type KeptDevice = { device: string; messages: number; oldestAt: EpochMs }

/** Removes kept messages and dead letters and adds what they became, or what the mapping's state closed. */
export type Exchange = {
  /** Ids of kept messages and dead letters, each once; may be empty. */
  take: readonly string[]
  /** Appended as others are. `attempts`: how often the service answered `failed` before; 0 by default. */
  payloads: readonly (MappedPayload & { attempts?: number })[]
  /** Default false: the dedup window is neither asked nor extended. True: what it knows is left out. */
  areMapped?: boolean
  deadLetters: readonly DeadLetter[]
  /** Put on a shelf without the dedup window, for example a deferred message of an unknown device. */
  keptMessages?: readonly KeptMessage[]
  /** Null deletes. */
  stateChanges: readonly { key: string; value: Buffer | null }[]
}

/** `duplicates`: payloads that were left out. */
export type Exchanged = { duplicates: number }

/** Whether a message or payload was taken in, or is known to the dedup window already. */
export type Stored = 'stored' | 'duplicate'

export type SpoolListener = {
  /** A commit added payloads to a lane. */
  payloadsAdded?(payloads: number): void
  /** A lane was assigned to this provider; its batches are among those of the spool. */
  laneAssigned?(provider: ProviderName): void
  /** A commit put messages on a shelf. */
  messagesKept?(): void
  /** The store failed: every batch in flight is void. The same batches come back after the reopening. */
  storeLost?(): void
  storeReopened?(): void
  /** Many attempts to open the store again failed in a row: the process should end and be restarted. */
  storeUnrecoverable?(fault: GatewayError): void
  /** `holdReason`, `busy` or `congested` changed, or a store became full or is not full any more. */
  intakeChanged?(): void
  /** A write of the store ended, durable or failed. */
  writeEnded?(tookMs: number): void
  /** Acks were given, whose first message has waited so long. */
  acksGiven?(waitMs: number): void
}

/**
 * An entry of state whose bytes are read when the last message of a write is known, so that they contain what
 * all of them changed and nothing of later ones. The spool keeps the object and reads the bytes again when it
 * puts them under their own key, perhaps at its end. So they change only while messages are mapped, and only
 * where the entry is put in the same turn.
 */
export type LateState = {
  readonly key: string
  /** Made when it is read, and valid until the value of another entry is read. */
  readonly value: Buffer
  /** It is in the open group; set by the spool. Until it is false again, it need not be put again. */
  isWaiting: boolean
}

/** The calls of the hot path. Synchronous; they throw SPOOL_CLOSED while the store is lost. */
export type MessageIntake = {
  /**
   * Adds a payload to the open group, unless the dedup window knows it. One without a device time is always
   * added: its message tells whether it is a duplicate, and ingest decides that.
   */
  append(payload: MappedPayload): Stored
  addDeadLetter(deadLetter: DeadLetter): void
  /**
   * Adds a key (32 hexadecimal digits) to the dedup window and stores nothing else: the content of the
   * message goes into the state. A duplicate if the key is known.
   */
  addWindowKey(windowKey: string): Stored
  hasWindowKey(windowKey: string): boolean
  /** Puts an entry of state, or deletes it; `key` has 1 to 512 characters. Copies `value`. */
  putState(key: string, value: Buffer | null): void
  /** The same for an entry that changes with many messages: it is encoded once for all those of a write. */
  putLateState(entry: LateState): void
  /** Notes a short entry with the message; `journal` reads it back after a start. Copies `entry`. */
  note(entry: Buffer): void
  /** Puts a record of a client's session, or deletes it. */
  putSession(key: string, value: Buffer | null): void
  /** Puts a whole message on a shelf. */
  keepMessage(message: KeptMessage): void
  /**
   * Ends one message: everything added since the last call belongs to it and goes into one group. `ack` is
   * called after that group is durable, in the order of these calls. It is null if no ack is needed.
   * Within `ackDelayMaxMs`, the group may wait for others for `waitMs` from now (write-deadline.ts).
   */
  endMessage(ack: Ack | null, waitMs?: number): void
}

/** The calls of delivery; each write resolves after its fsync. */
export type BatchCalls = {
  /** Claims a run of pending payloads from the head of a lane. Null: there is nothing to claim. */
  seal(lane: LaneId, limits: SealLimits): Promise<Batch | null>
  load(batch: Batch): Promise<LoadedBatch>
  /**
   * Turns the live lane of a provider into a backfill lane. The next payload opens a new live lane. One small
   * write; nothing moves. False if nothing is pending in it, or if `backfillLanesMax` backfill lanes exist.
   */
  rotate(provider: ProviderName): Promise<boolean>
  /**
   * Replaces a batch by batches with new batchIds and a new timestamp, in one atomic write. They cover
   * contiguous runs of `counts` payloads, which add up to the batch; `[n]` gives the whole batch a new
   * batchId. Attempts stay, the operation of all is `batch`, and none is held. If damage is found, the
   * batches of what is left come back instead.
   */
  reseal(
    batch: Batch,
    counts: readonly number[],
    options?: Pick<SealLimits, 'timestamp'>,
  ): Promise<readonly Batch[]>
  /** Records the operation of the next submission. batchId, range and timestamp stay. */
  setOperation(batch: Batch, operation: BatchOperation): Promise<Batch>
  /** Records why the batch is not sent for now, or that it may be sent. batchId, range and timestamp stay. */
  setHeld(batch: Batch, held: Held | null): Promise<Batch>
  /**
   * Settles a batch in one atomic write. The same write stores `receipt` until it is forgotten. A receipt
   * that exceeds `receiptBytesMax` is left out and counted.
   */
  settle(batch: Batch, settlement: Settlement, receipt?: Buffer | null): Promise<void>
}

export type SnapshotCalls = {
  /**
   * Writes the spool as it is between two writes into `to`, an empty or missing directory. Rejects with
   * OUTPUT_UNWRITABLE, SPOOL_CLOSED or SPOOL_DAMAGED.
   */
  snapshot(to: string, signal: AbortSignal): Promise<SnapshotReport>
}

/** The calls of an operator. */
export type RepairCalls = {
  /**
   * Gives a lane whose provider is lost to a provider. Resolves with the number of its payloads when that is
   * durable. Rejects with LANE_KNOWN if the lane has a provider.
   */
  assignLane(lane: LaneId, provider: ProviderName): Promise<number>
}

/** Reads kept messages, dead letters and state, and exchanges them. */
export type KeptCalls = {
  /** The durable state, for use after a start and `storeReopened`. State put meanwhile may be missing. */
  stateEntries(): AsyncIterable<StateEntry>
  /** The durable entries of `note`, oldest first. */
  journal(): AsyncIterable<JournalEntries>
  /** The durable records of `putSession`. */
  sessionRecords(): AsyncIterable<StateEntry>
  shelves(): readonly ShelfView[]
  keptDevices(shelf: ShelfName): AsyncIterable<KeptDevice>
  /** In order of arrival; of one device, or of all if `device` is null. */
  keptMessages(shelf: ShelfName, device: string | null, options: { limit: number }): AsyncIterable<KeptEntry>
  /** Oldest first. */
  deadLetters(filter: DeadLetterFilter): AsyncIterable<DeadLetterEntry>
  deadLetter(id: string): Promise<DeadLetterEntry | null>
  /**
   * Carries out an exchange in one atomic write and resolves when it is durable. Rejects with
   * SPOOL_ENTRY_GONE if another call took an entry; then nothing has happened. Payloads keep the order of the
   * calls. An entry that was read in this session is taken before the call returns, and state stays in order
   * with `putState`. Do not call it between the parts of a message, before its `endMessage`.
   */
  exchange(exchange: Exchange): Promise<Exchanged>
}

export type StoredVisitor = {
  payload(id: PayloadId): void
  message: ((envelope: Envelope) => void) | null
}

/** Calls that read every record. */
export type WalkCalls = {
  /** Rejects with SPOOL_CLOSED if `signal` aborts it. */
  check(signal: AbortSignal): Promise<SpoolCheck>
  /**
   * Visits each payload in a lane or a dead letter, and each whole message in a dead letter or on a shelf, if
   * `message` is not null. What moves between these places meanwhile is visited. For imports.
   */
  eachStored(visitor: StoredVisitor, signal: AbortSignal): Promise<void>
}

export type Spool = MessageIntake &
  BatchCalls &
  ReturnCalls &
  ReceiptCalls &
  KeptCalls &
  RepairCalls &
  SnapshotCalls &
  WalkCalls &
  WriteViews &
  StateSource & {
    /** How the process ended that had the store before this start. */
    readonly previousEnd: PreviousEnd
    /** Why nothing may be appended for now; null if everything may. */
    holdReason(): HoldReason | null
    /** Many messages are not durable yet: read only a few of each connection until the next commit. */
    busy(): boolean
    /** Uncommitted bytes exceed their bound: stop reading from sockets until `intakeChanged`. */
    congested(): boolean
    /** Changes with each commit. */
    commits(): number
    /**
     * Grows with each dead letter, also with those of a write that is under way. It starts anew with each
     * opening of the store; null while that is lost.
     */
    nextDeadLetter(): number | null
    /** The store `dead_letters` is full. */
    deadLettersFull(): boolean
    /** The store is nearly at its bound and holds messages; its last tenth is for small shares. */
    isFull(store: KeptStore): boolean
    /** A message of this client and device that would go there has to wait until `intakeChanged`. */
    holds(store: KeptStore, client: string, device: string | null): boolean
    lanes(): readonly LaneView[]
    /** Sealed batches that are not settled, oldest first in each lane. */
    batches(): readonly Batch[]
    listen(listener: SpoolListener): () => void
    totals(): SpoolTotals
    /** Commits the open group, then closes the store. */
    close(): Promise<void>
  }
