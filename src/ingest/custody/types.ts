// types.ts: what custody needs of the spool, of delivery and of the other parts of ingest, and what it shows.

import type { EpochMs } from '../../std/clock.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { DeadLetterEntry, Spool } from '../../spool/spool.ts'
import type { ReleaseOrder } from '../types.ts'

export type CustodyOptions = {
  /** Payloads and messages that wait longer go to the engine, while others are delivered. */
  parkAfterMs: number
  /** How long they stay there. */
  parkForMs: number
  /** Name of this gateway among those of the engine. */
  member: string
}

export type CustodySpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'lanes'
  | 'batches'
  | 'load'
  | 'shelves'
  | 'keptMessages'
  | 'deadLetters'
  | 'nextDeadLetter'
  | 'exchange'
  | 'append'
  | 'addDeadLetter'
  | 'addWindowKey'
  | 'holdKeys'
  | 'committedKeys'
  | 'keepMessage'
  | 'endMessage'
  | 'totals'
  | 'listen'
>

/** A payload that leaves the spool for the engine. */
export type ReturnedPayload = {
  provider: ProviderName
  payloadId: string
  /** Its bytes, as they are stored. */
  json: Buffer
  /** How often the service answered `failed` for it. */
  attempts: number
  /** When it came to where it waited. */
  committedAt: EpochMs
}

export type HeldPayload = {
  provider: ProviderName
  attempts: number
  json: string
  suspect: null
  batch: { batchId: BatchId; reason: string; requestId: string | null }
}

/** The part of delivery that custody calls. Ingest and delivery meet in the spool, so app hands it over. */
export type CustodyDelivery = {
  providers(): readonly { name: ProviderName; endpoint: string }[]
  /** Payloads that the service accepted, since the start. */
  delivered(): number
  /**
   * Hands the oldest payloads over that wait for another try, or in a batch that was refused for certain, and
   * removes them in one durable write when `hand` has resolved. Resolves with their number.
   */
  returnWaiting(
    request: { olderThanMs: number; payloadsMax: number; providersDown: readonly ProviderName[] },
    hand: (payloads: readonly ReturnedPayload[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<number>
}

/** The id of the last dead letter that was copied to the engine, over restarts. May be lost. */
export type CopiedMark = { read(): Promise<string | null>; write(id: string): Promise<void> }

export type CustodyDeps = {
  spool: CustodySpool
  delivery: CustodyDelivery
  /** Messages in open records of the mapping, and how long one stays in one at most. */
  records: () => { openParts: number; openMsMax: number }
  copied: CopiedMark
  /** Messages of a device that is being released stay. */
  releaseOrder?: Pick<ReleaseOrder, 'isReleasing'> | undefined
  /** Messages are on the shelves again. */
  releaseAgain: () => void
  /** A dead letter, and a payload of a held batch, as lines that an import reads. */
  lineOf: (entry: DeadLetterEntry) => string
  heldLineOf: (payload: HeldPayload) => string
}

/** What custody counts since the start, for /status and metrics. */
export type CustodyCounters = {
  /** Payloads and messages that were stored in the queue of the engine, and those that came back. */
  parked: number
  takenBack: number
  /** Messages that were released while they were parked: they come twice. */
  parkedAndReleased: number
  /** Entries that came again and were known. */
  parkedDuplicates: number
  /** Entries that could not be read, or whose provider is not known: they are dead letters. */
  refusedEntries: number
  /** Dead letters, and payloads of held batches, that were copied to the engine. */
  copied: number
  /** Tries to store in the engine that failed. */
  storeFailures: number
}

export type CustodyView = CustodyCounters & {
  /** Messages that are committed here and not acknowledged to the engine. */
  outstanding: number
  /** Age of the oldest of them; null for none. */
  oldestMs: number | null
  /** What the oldest waits for, in words; null for none. */
  waitsFor: string | null
  /** Nothing is taken, because the ingestion API accepts nothing. */
  holds: boolean
  /** Entries of the engine that wait here for their turn. */
  waitingEntries: number
}
