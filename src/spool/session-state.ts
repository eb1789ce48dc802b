// session-state.ts: what one session holds in memory. A session lasts from one opening of the store to its
// loss: all of this comes from the database (recovery.ts) or is about to be written to it, and it is
// discarded when the store fails. The types that several subfolders share are here, so that their files do
// not import each other for types.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { DeadLetter, DeadLetterStore } from '../domain/dead-letter.ts'
import type { Emit } from '../domain/event.ts'
import type { LaneId, NewId, ProviderName } from '../domain/ids.ts'
import type { KeptStore, ShelfName } from '../domain/kept-store.ts'
import { attemptsIn, type LaneRole } from '../domain/settlement.ts'
import type { KeptMessage } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { Store, StoreOp } from '../storage/storage.ts'
import type { Committer, Group } from './chunk-log/committer.ts'
import type { DedupWindow } from './chunk-log/dedup-window.ts'
import { newLane, type Lane, type Walk } from './chunk-log/lane.ts'
import type { ReceiptQueue } from './chunk-log/receipt-queue.ts'
import type { ChunkBuffers, RecentChunks } from './chunk-log/recent-chunks/recent-chunks.ts'
import type { ShelfRecord, StateTotalsRecord } from './chunk-log/record-codec.ts'
import type { LateRecords } from './kept/late-records.ts'
import type { Shares } from './kept/shares.ts'
import type { HighWaterMark } from './high-water-mark/high-water-mark.ts'
import type { IsLate, SpoolOptions } from './spool-options.ts'
import type { Exchange, Exchanged, LateState } from './types.ts'
import type { SpoolCounters } from './views.ts'

export type RetryRole = Extract<LaneRole, { kind: 'retry' }>

export type SpoolState = {
  readonly store: Store
  readonly clock: Clock
  readonly newId: NewId
  readonly emit: Emit
  readonly isLate: IsLate
  /** Of what is kept beside the lanes. */
  readonly ourNow: () => EpochMs
  readonly options: SpoolOptions
  readonly counters: SpoolCounters
  readonly window: DedupWindow
  readonly recent: RecentChunks
  readonly buffers: ChunkBuffers
  readonly lanes: Map<LaneId, Lane>
  readonly liveLanes: Map<ProviderName, Lane>
  nextLane: number
  nextWindowRecord: number
  /** Records before this number are durable. */
  committedWindowRecord: number
  /** Dead letters in the database, and the bytes deleted since the last compaction. */
  readonly deadLetters: {
    count: number
    bytes: number
    /** By store; the rest of `bytes` is of none that is known. */
    bytesIn: Record<DeadLetterStore, number>
    drainedBytes: number
  }
  /** Part of a dead letter's key. Starts at random: a clock that steps back must not make two keys alike. */
  nextDeadLetter: number
  readonly firstDeadLetter: number
  /** Bytes of open payloads, uncommitted payloads included. */
  openBytes: number
  readonly stateEntries: StateEntries
  readonly receipts: ReceiptQueue
  readonly journal: IntakeJournal
  readonly mark: HighWaterMark
  readonly shelves: Map<ShelfName, Shelf>
  /** What is kept beside the lanes, uncommitted messages included. */
  readonly stores: Readonly<Record<KeptStore, StoreUse>>
  /** Records of the dedup window deleted since the last compaction, and the number of the last. */
  readonly expired: { records: number; last: number }
}

export type Session = SpoolState & {
  readonly committer: Committer<MessageGroup>
  readonly compactor: Compactor
  readonly reservations: Reservations
  readonly eviction: Eviction
  exchange(exchange: Exchange): Promise<Exchanged>
  /** The fault to throw after `error`. Ends the session if a read failed, except for a damaged block. */
  failRead(error: unknown): unknown
}

/** The session that is open now. */
export type OpenSession = {
  /** Throws SPOOL_CLOSED while there is none. */
  current(): Session
  /** Null while there is none. */
  peek(): Session | null
  /** Calls `work` at once; rejects with SPOOL_CLOSED without a session, and explains a failed read. */
  run<Result>(work: (session: Session) => Promise<Result>): Promise<Result>
}

/** The open group of messages (group.ts). */
export type MessageGroup = Group & {
  /** `by`: the exchange that appends it; null for a payload of a message. */
  append(payload: MappedPayload, by?: ExchangedBy | null): void
  /** Adds the key in the window's scratch buffer, or renews it. */
  addKey(): void
  /** Adds an entry to the journal of the intake. */
  note(entry: Buffer): void
  /** Made at the first use, so that a group of payloads alone costs nothing more. */
  attachments(): CommitAttachments
}

/** `from`: what it was before; null: nothing, the mapping made it by time. */
export type ExchangedBy = { readonly from: StoredEntry['kind'] | null; readonly attempts: number }

/** What few messages bring beside payloads (commit-attachments.ts). */
export type CommitAttachments = {
  addDeadLetter(deadLetter: DeadLetter): void
  putState(key: string, value: Buffer | null): void
  putLateState(entry: LateState): void
  /** Earlier values of late entries that were put or deleted at once in this group leave the disk with it. */
  forgetLate(): void
  putSession(name: string, value: Buffer | null): void
  keepMessage(message: KeptMessage): void
  take(entry: StoredEntry): void
  /** No message is added any more. */
  closed(): void
  prepare(ops: StoreOp[]): void
  committed(): void
}

/**
 * A kept message or dead letter in the database, as an exchange takes it. `client` is empty where no client
 * sent it.
 */
export type StoredEntry = { client: string; device: string | null; bytes: number } &
  /** `devices`: it is found by each of them; `device`, in whose share it counts, is the first. */
  (
    | { kind: 'keptMessage'; shelf: Shelf; seq: number; devices: readonly string[] }
    | { kind: 'deadLetter'; key: Buffer; store: DeadLetterStore }
  )

/** How full a store is, and whose messages are in it (shares.ts). */
export type StoreUse = {
  bytes: number
  readonly shares: Shares
  /** What was stored before this session is counted in the shares up to this key; null: not yet. */
  countedTo: Buffer | null
  /** All of it is counted. */
  counted: boolean
}

/** Which entries were read, and which are taken (entry-reservations.ts). */
export type Reservations = {
  /** Runs a read of the database. What is taken after its start counts as gone. */
  duringRead<Result>(work: () => Promise<Result>): Promise<Result>
  /** Within a read: records an entry that was found; false if it is taken. */
  register(id: string, entry: StoredEntry): boolean
  /** The entries of `ids`, or null if one must be looked up first. Throws if one is taken. */
  locate(ids: readonly string[], lookedUp: ReadonlyMap<string, StoredEntry>): StoredEntry[] | null
  /** Takes an entry; false if it is taken already. */
  take(id: string): boolean
  isTaken(id: string): boolean
  /** The deletion of `ids` is durable. */
  deleted(ids: readonly string[]): void
}

/** The counts of the record are those of the messages themselves: the other side of conservation. */
export type Shelf = ShelfRecord & {
  readonly name: ShelfName
  /** The number of the next message when the session began. */
  openedSeq: number
  committedSeq: number
  walk: Walk | null
  /** Bytes taken since the last compaction, and up to where it went. */
  drainedBytes: number
  compactedSeq: number
}

/** The records of the journal in the database, and of the write that is being put together. */
export type IntakeJournal = {
  nextN: number
  bytes: number
  /** Oldest first, from `first` on. */
  groups: JournalGroup[]
  first: number
}

/** One record; `addedAtMs` is monotonic. */
export type JournalGroup = { n: number; addedAtMs: number; bytes: number }

export type StateEntries = {
  /** Size of each entry by its key, and their sum, as they will be when all that waits is written. */
  readonly sizes: Map<string, number>
  bytes: number
  /** The same as of the last write that was put together; the disk is compared with this. */
  written: StateTotalsRecord
  readonly late: LateRecords
}

/** Makes room in full stores (eviction.ts). */
export type Eviction = {
  /** Begins where a store needs it. */
  check(): void
  /** A store is above its bound by more than a group: nothing more may be read until there is room. */
  isBehind(): boolean
  /** Begins nothing more, and reports what is not reported yet. */
  end(): void
  /** Resolves when nothing runs. */
  idle(): Promise<void>
}

/** Considers a compaction after something was deleted (compactor.ts). */
export type Compactor = {
  afterSettle(lane: Lane): void
  afterExpiry(): void
  afterForgottenReceipts(): void
  afterExchange(): void
  /** Compacts whatever was deleted since the last compaction; nothing where nothing was, or too soon. */
  freeDisk(): void
  /** Resolves when no compaction runs. */
  idle(): Promise<void>
}

/** Opens a lane in memory. The caller writes its record in the same write as its first chunk. */
export function openLane(state: SpoolState, provider: ProviderName, role: LaneRole): Lane {
  const lane = newLane(state.nextLane as LaneId, provider, role, state.clock.now())
  state.nextLane += 1
  state.lanes.set(lane.id, lane)
  if (role.kind === 'live') state.liveLanes.set(provider, lane)
  return lane
}

/** The backfill lane for late payloads: the one that was opened or rotated last. */
export function youngestBackfill(state: SpoolState, provider: ProviderName): Lane | undefined {
  let youngest: Lane | undefined
  for (const lane of state.lanes.values()) {
    if (lane.role.kind !== 'backfill' || lane.provider !== provider) continue
    if (youngest === undefined || lane.id > youngest.id) youngest = lane
  }
  return youngest
}

/** Retry lanes of a provider beyond which no further one tells the attempts of its payloads by schedule. */
const retryLanesMax = 64

/** The retry lane of `role`; its record is not written yet where it is new. */
export function retryLane(state: SpoolState, provider: ProviderName, role: RetryRole): Lane {
  const lanes = [...state.lanes.values()].filter(
    (lane) => lane.provider === provider && lane.role.kind === 'retry',
  )
  const find = (wanted: RetryRole) => lanes.find((lane) => retryKey(lane.role) === retryKey(wanted))
  const known = find(role)
  if (known !== undefined) return known
  const { schedule } = role
  const counted = { [schedule]: attemptsIn(role).get(schedule) ?? 0 }
  // Beyond, the count that each payload brings still bounds its attempts.
  const bounded = lanes.length < retryLanesMax ? role : { ...role, counted }
  return find(bounded) ?? openLane(state, provider, bounded)
}

/** Equal for two retry lanes of the same payloads. */
export function retryKey(role: LaneRole): string {
  if (role.kind !== 'retry') return role.kind
  const { schedule, step, waitsForRoom = false } = role
  const attempts = [...attemptsIn(role)].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return JSON.stringify([schedule, step, waitsForRoom, attempts])
}
