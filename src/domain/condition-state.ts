// condition-state.ts: what can be wrong for a while, as facts. A stage says on request which of these
// states hold; ops compares the answers, so that a condition is open exactly while its state holds
// (ops/conditions). A stage remembers of a state only what it needs to judge it, and not what it said.
//
// One entry per code of a condition: its facts. The texts of them are in ops/conditions.

import type { EpochMs } from '../std/clock.ts'
import type { HeldReason } from './held.ts'
import type { BatchId, ProviderName } from './ids.ts'
import type { StallReason } from './event-fields/stall-event.ts'

type Failing = {
  provider: ProviderName
  /** Failed submissions in a row. */
  failures: number
  why: string
  requestId: string | null
  /** What to do; null where the cause does not tell. */
  act: string | null
}

type Stalled = {
  provider: ProviderName
  reason: StallReason
  /** Since when nothing moves, and when the next try is due; null where that is not known. */
  sinceAt: EpochMs
  untilAt: EpochMs | null
  /** Last answer of the service that was a failure; null without one. */
  lastAnswer: string | null
}

type HeldBatches = {
  provider: ProviderName
  reason: HeldReason
  batches: number
  payloads: number
  /** Since when the oldest one is held. */
  oldestAt: EpochMs
  /** Of the one that was held last. */
  batchId: BatchId
  why: string
  requestId: string | null
}

export type StateFacts = {
  // delivery
  ENDPOINT_UNAVAILABLE: Failing
  ENDPOINT_UNAUTHORIZED: {
    provider: ProviderName
    status: number
    requestId: string | null
    /** Answer of the service. */
    message: string
    /** Clock of the service minus clock of this machine; null while unknown. */
    clockOffsetMs: number | null
    /** Access key that signed; null where it is not known. */
    accessKeyId: string | null
  }
  WRAPPER_REFUSED: { provider: ProviderName; why: string; requestId: string | null }
  CREDENTIALS_MISSING: { provider: ProviderName; why: string }
  /** `expiresAt`: of the old credentials; null for never. */
  CREDENTIALS_STALE: { provider: ProviderName; why: string; expiresAt: EpochMs | null }
  /** Clock of the service minus clock of this machine. */
  CLOCK_OFF: { provider: ProviderName; offsetMs: number }
  PROVIDER_UNKNOWN: { provider: ProviderName; payloads: number }
  BATCHES_HELD: HeldBatches
  BATCH_STUCK: HeldBatches
  NOTHING_ACCEPTED: { provider: ProviderName; batches: number; why: string; requestId: string | null }
  /** `oldestAt`: since when the first of the requests waits. */
  SERVICE_HANGING: { provider: ProviderName; requests: number; oldestAt: EpochMs; url: string }
  /** Median of the last answers, with the upload. `timeoutMs`: delivery.timeout. */
  SERVICE_SLOW: { provider: ProviderName; medianMs: number; answers: number; timeoutMs: number }
  REQUESTS_FAILING: { provider: ProviderName; failed: number; requests: number }
  PAYLOADS_FAILING: { provider: ProviderName; failed: number; payloads: number }
  /** Payloads that wait, without retries, and how many more than a minute ago. */
  BACKLOG_GROWS: {
    provider: ProviderName
    payloads: number
    grownBy: number
    oldestAt: EpochMs | null
    /** Delivered payloads per second within the last minute. */
    ratePerS: number
  }
  DELIVERY_STALLED: Stalled
  RATE_LIMITED: Stalled
  /** The wait that the service asked for, that of the gateway, and its end. */
  RETRY_AFTER: {
    provider: ProviderName
    askedMs: number
    waitMs: number
    untilAt: EpochMs
    requestId: string | null
  }
}

export type StateCode = keyof StateFacts

export type State<Code extends StateCode = StateCode> = {
  [Each in Code]: { code: Each } & StateFacts[Each]
}[Code]

/** A stage, or a part of one. */
export type StateSource = { states(): Iterable<State> }
