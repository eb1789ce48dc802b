// types.ts: what dead-letter operations take and return, shared by the files of this folder.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { DeadLetter, DeadLetterStage } from '../domain/dead-letter.ts'
import type { Emit } from '../domain/event.ts'
import type { PayloadId, ProviderName } from '../domain/ids.ts'
import type { Envelope } from '../domain/message.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { DeadLetterEntry, Spool } from '../spool/spool.ts'

/** Selects dead letters; an empty query selects all of them. */
export type DeadLetterQuery = {
  /** Only these, in this order. */
  ids?: readonly string[]
  stage?: DeadLetterStage
  reason?: string
  /** Found by each of its devices; of a message of many vehicles, by those that the dead letter names. */
  device?: string
  /** The source that took the message; for dead letters of the mapping. */
  source?: string
  provider?: string
  /** From `since` on, and before `until`. */
  since?: number
  until?: number
}

/** Reads dead letters: of a spool in use, or of one that no daemon uses. */
export type DeadLetterReader = Pick<Spool, 'deadLetters' | 'deadLetter'>

/** A message that comes from a file and not from the spool. */
export type IncomingMessage = { id: string; envelope: Envelope }

/** Maps messages with the mapping in force (ingest/quarantine/dead-letter-remap.ts). */
export type Remap = (
  request: {
    reason: null
    source: null
    dryRun: boolean
    deadLetters?: AsyncIterable<DeadLetterEntry>
    messages?: AsyncIterable<IncomingMessage>
    /** A payload of `messages` for which it returns false is left out. */
    wants?: (payload: MappedPayload) => boolean
  },
  signal: AbortSignal,
) => Promise<RemapOutcome>

export type RemapOutcome = {
  /** Messages that were mapped again. */
  deadLetters: number
  remapped: number
  payloads: number
  /** Payloads that were stored before, with another message. */
  duplicates: number
  ignored: Record<string, number>
  kept: number
  stillRefused: Record<string, number>
}

export type DeadLetterGroup = {
  stage: DeadLetterStage
  reason: string
  source: string | null
  provider: string | null
  /** What the service reported about fields, `gps.latitude must not be empty`; null where it named none. */
  fields: string | null
  count: number
  /** Different devices, counted up to `devicesMax`. */
  devices: number
  oldestAt: number
  latestAt: number
  /** Of the latest one. */
  detail: string
}

/** A dead letter without its content. */
export type DeadLetterSummary = Pick<
  DeadLetter,
  'at' | 'stage' | 'reason' | 'detail' | 'device' | 'provider' | 'payloadId' | 'requestId'
> & { id: string; source: string | null; topic: string | null }

/** The answer of /dead-letters. */
export type DeadLetterList = {
  scanned: number
  /** True where more exist than were read. */
  more: boolean
  groups: readonly DeadLetterGroup[]
  /** The oldest ones. */
  deadLetters: readonly DeadLetterSummary[]
}

export type RequeueReport = {
  dryRun: boolean
  /** Payloads that go to their live lanes. */
  payloads: number
  /** Dead letters that stay, by the reason why. */
  left: Record<string, number>
  /** Requested ids that do not exist. */
  missing: readonly string[]
  /** Null where no message was selected. */
  remap: RemapOutcome | null
}

export type ImportReport = {
  dryRun: boolean
  payloads: number
  /** Lines that are in the spool already, or twice in the file. */
  duplicates: number
  /** Payloads that were delivered already, by the ledger. */
  delivered: number
  /** Payloads marked `suspect`: they may differ from what was stored. */
  suspect: number
  remap: RemapOutcome | null
}

/** Names an import that the next parts of a file belong to. */
export type ImportStart = { import: string; planned: number }

/** What the spool and the ledger know of the payloads of an import. */
export type ImportCheck = {
  planned: number
  stored: number
  delivered: number
  /** Earlier deliveries are not known. Null: the ledger was not asked, or is empty. */
  ledgerSince: EpochMs | null
}

export type ImportOptions = {
  dryRun: boolean
  /** Of the import that the lines belong to. Without it, the lines are an import of their own. */
  token?: string | undefined
  /** Imports although the ledger cannot say what was delivered. */
  withoutLedger?: boolean
}

/** The ledger: visits each payload that was delivered, if its device time may be in the range. */
export type DeliveredIds = (
  times: { from: EpochMs; to: EpochMs },
  visit: (payloadId: string) => void,
  signal: AbortSignal,
) => Promise<{ kind: 'asked'; since: EpochMs | null } | { kind: 'unavailable'; why: string }>

export type EditReport = { id: string; payloadId: PayloadId; previousPayloadId: PayloadId }

export type PurgeReport = {
  dryRun: boolean
  deadLetters: number
  /** Selected by a device, and not deleted: they hold records of other devices, too. */
  shared: number
  /** By stage and reason, such as `mapping NOT_JSON`. */
  reasons: Record<string, number>
}

/** Since the start. */
export type DeadLetterCounters = {
  requeued: number
  imported: number
  purged: { operator: number; age: number }
}

export type DeadLetterOperations = {
  list(query: DeadLetterQuery, limit: number): Promise<DeadLetterList>
  /** Null where the id does not exist. */
  show(id: string): Promise<DeadLetterEntry | null>
  requeue(query: DeadLetterQuery, options: { dryRun: boolean }, signal: AbortSignal): Promise<RequeueReport>
  /** Rejects with DEAD_LETTER_INVALID where `text` is not a valid payload. */
  edit(id: string, text: string, signal: AbortSignal): Promise<EditReport>
  /** NDJSON lines, as `importLines` reads them. */
  export(query: DeadLetterQuery): AsyncIterable<string>
  /**
   * Checks NDJSON lines and adds them to an import; without a token a new one starts. Rejects with
   * DEAD_LETTER_INVALID where a line is invalid.
   */
  planImport(text: string, token: string | undefined, signal: AbortSignal): Promise<ImportStart>
  /** Reads spool and ledger. Rejects with LEDGER_UNUSABLE, or IMPORT_ENDED. */
  checkImport(token: string, options: { withoutLedger: boolean }, signal: AbortSignal): Promise<ImportCheck>
  /** Imports planned lines. Rejects with DEAD_LETTER_INVALID and imports nothing where one is invalid. */
  importLines(text: string, options: ImportOptions, signal: AbortSignal): Promise<ImportReport>
  purge(query: DeadLetterQuery, options: { dryRun: boolean }, signal: AbortSignal): Promise<PurgeReport>
  /** For `dead_letters.retention`. Ends at the first dead letter that is younger than `until`. */
  purgeOlder(than: { since: number; until: number }, signal: AbortSignal): Promise<PurgeReport>
  counters(): DeadLetterCounters
}

export type DeadLetterDeps = {
  spool: Pick<
    Spool,
    | 'deadLetters'
    | 'deadLetter'
    | 'exchange'
    | 'holdReason'
    | 'congested'
    | 'deadLettersFull'
    | 'totals'
    | 'eachStored'
  >
  clock: Clock
  emit: Emit
  remap: Remap
  delivered: DeliveredIds
  /** Providers of the present config. */
  providers: () => readonly ProviderName[]
}
