// types.ts: the types of delivery that other stages use.

import type { EpochMs } from '../std/clock.ts'
import type { Held, HeldReason } from '../domain/held.ts'
import type { BatchId, ProviderName } from '../domain/ids.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { LaneRole } from '../spool/spool.ts'

export type EndpointState = 'available' | 'unavailable' | 'unauthorized'

export type ProviderView = {
  name: ProviderName
  endpoint: EndpointState
  since: EpochMs
  lastRequestId: string | null
  lastAcceptedAt: EpochMs | null
  /** Service clock minus ours, from the Date header; null while unknown. */
  clockOffsetMs: number | null
  /** When the next submission may start; null while it may start now. */
  nextAttemptAt: EpochMs | null
  inFlight: number
  /** Batches whose payloads the service has, and whose settle is not on the disk yet. */
  settling: number
  /** Delivered payloads per second over the last minute. */
  ratePerS: number
}

export type DeliveryCounters = {
  submissions: number
  /** Keyed by outcome kind, and status or reason where there is one: `answered`, `unavailable_500`, ... */
  outcomes: ReadonlyMap<string, number>
  delivered: number
  retried: number
  dead: number
  /** Of those: deleted by an operator, and no dead letters. */
  discarded: number
  bytesSent: number
  senderThreadsLost: number
}

/** `waiting`: for its next try, or for its turn. `held`: because of its own answers (domain/held.ts). */
export type BatchState = 'in flight' | 'waiting' | 'held'

/** An answer, or the failure of a submission, in a sentence. */
export type BatchAnswer = { at: EpochMs; requestId: string | null; text: string }

/** A sealed batch that is not settled. */
export type BatchView = {
  batchId: BatchId
  provider: ProviderName
  role: LaneRole['kind']
  payloads: number
  /** JSON bytes of the payloads. */
  bytes: number
  /** By the clock of this machine; in the batch it is a time of the service. */
  sealedAt: EpochMs
  state: BatchState
  held: Held | null
  /** By this process. */
  submissions: number
  /** False: each submission so far was refused, or ended before the last byte of the body was sent. */
  mayBeProcessed: boolean
  lastRequestId: string | null
  /** Null while it is in flight, or may be sent now. */
  nextTryAt: EpochMs | null
}

export type BatchDetail = BatchView & {
  /** In the order of the batch. */
  contents: readonly { payloadId: string; device: string | null }[]
  /** The last answers to it that this process saw, oldest first. */
  answers: readonly BatchAnswer[]
}

/** Selects batches; every given condition holds. `ids` selects in any state, the others only held batches. */
export type BatchSelection = {
  ids?: readonly string[]
  provider?: string
  /** Held for one of these. */
  reasons?: readonly HeldReason[]
  /** Minimum time since the batch was held, or since it was sealed if it is not held. */
  olderThanMs?: number
}

/** Batches of one provider, state and reason. */
export type BatchGroup = {
  provider: ProviderName
  state: BatchState
  reason: HeldReason | null
  batches: number
  payloads: number
  oldestAt: EpochMs
}

export type BatchList = {
  now: EpochMs
  groups: readonly BatchGroup[]
  /** Held first, oldest first; at most the limit. */
  batches: readonly BatchView[]
  /** Batches that match and are not listed. */
  more: number
}

export type BatchAction = 'retry' | 'reissue' | 'split' | 'mark-delivered' | 'drop' | 'discard'

/** Who acts, as the command reports it. */
export type Operator = { user: string; sudoUser: string | null }

export type BatchRequest = {
  action: BatchAction
  selection: BatchSelection
  /** Of `split`: the number of new batches; null: one for each payload. */
  parts: number | null
  dryRun: boolean
  operator: Operator
}

/** `nextAttemptInMs`: until the next probe; 0 where it is running or starts with the next batch. */
export type WaitingEndpoint = {
  provider: string
  endpoint: Exclude<EndpointState, 'available'>
  nextAttemptInMs: number
}

export type BatchActionReport = {
  action: BatchAction
  dryRun: boolean
  batches: number
  payloads: number
  /** Batches among them that the service may have processed, and their payloads. */
  mayBeProcessed: { batches: number; payloads: number }
  /** Batches that `reissue` and `split` make. */
  newBatches: number
  /** Of `retry`: providers whose endpoint is not available. Their batches wait until a probe succeeds. */
  waiting: readonly WaitingEndpoint[]
  /** Batches that stay as they are. */
  skipped: readonly { batchId: string; code: 'BATCH_BUSY' | 'BATCH_GONE' | 'USAGE'; why: string }[]
}

/** What an operator does with sealed batches. */
export type BatchOperations = {
  /** Whose batches these are: the providers in the config. */
  readonly providers: readonly string[]
  list(selection: BatchSelection, limit: number): BatchList
  /** Null where no batch has the id. */
  show(batchId: string): Promise<BatchDetail | null>
  /** Rejects where a write fails; what was done before it remains. Ends early where `signal` aborts. */
  run(request: BatchRequest, signal: AbortSignal): Promise<BatchActionReport>
}

/** What became of the payloads of a batch. `entries`: as receipts/receipt-entries.ts reads them. */
export type SettledBatch = {
  provider: ProviderName
  requestId: string | null
  at: EpochMs
  entries: Uint8Array
  settlements: Settlement['payloads']
}
