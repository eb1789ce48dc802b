// delivery-options.ts: the options of delivery in the units of the code. config.ts makes them from the
// config.

import type { ProviderName } from '../domain/ids.ts'
import type { Secret } from '../std/secret.ts'

/** Where a provider's credentials come from. */
export type CredentialsOptions =
  | { source: 'environment' }
  | { source: 'chain'; profile: string | null }
  | { source: 'file'; path: string }
  | { source: 'keys'; accessKeyId: string; secretAccessKey: Secret; sessionToken: Secret | null }

/** How the service is reached. */
export type ProxyOptions =
  /** By HTTPS_PROXY, HTTP_PROXY and NO_PROXY. */
  | { from: 'environment' }
  | { from: 'none' }
  | { from: 'config'; url: string; auth: { user: string; password: Secret } | null }

/** The certificate for a service that requires one; PEM text. */
export type ClientCertificate = { cert: string; key: Secret; passphrase: Secret | null }

/**
 * Delays before each retry of a payload that the service answered `failed` for, or: the payload counts as
 * delivered.
 */
export type RetryRule = readonly number[] | 'delivered'

/** Keyed by `errorType`; `default` is for all others. */
export type RetryRules = ReadonlyMap<string, RetryRule>

/** What a batch that was sent before becomes when the service answers 409. */
export type OnRepeat = 'hold' | 'delivered' | 'resend'

/** What a batch that may have been processed becomes when the service answers 400 or 413 to it. */
export type OnRefusedRepeat = 'hold' | 'split'

/** When the endpoint becomes unavailable, and how long each kind of wait is. */
export type BackoffOptions = {
  /** Full jitter: a random wait from zero to this, doubled at each failure up to `maxMs`. */
  minMs: number
  maxMs: number
  /** The same bound for a stuck batch: one that fails while others succeed (BATCH_STUCK). */
  stuckMaxMs: number
  /**
   * Between two tries where a short back-off does not help: 401, 403, a refused wrapper, a repeated batchId.
   */
  probeEveryMs: number
  /** Longest wait of a held batch, which doubles from `probeEveryMs`. */
  heldMaxMs: number
  /** Part of `probeEveryMs` by which the interval varies up and down. */
  probeJitter: number
  /** First and longest wait when no credentials are found. */
  credentialsMinMs: number
  credentialsMaxMs: number
  /** Failures in a row, over at least two batches, that make the endpoint unavailable. */
  failuresToUnavailable: number
  /** Submissions in a row without a success, for any reason, that make the endpoint unavailable. */
  unsuccessfulToUnavailable: number
  /** Failures of one batch while others succeed that make it stuck. */
  failuresToStuck: number
  /**
   * Live or backfill batches in a row with nothing accepted that count as an outage reported inside a 200.
   */
  emptyAnswersToUnavailable: number
  /**
   * Requests in a row answered 400 or 413, with nothing accepted between, that make it unavailable
   * (WRAPPER_REFUSED).
   */
  refusalsToUnavailable: number
  /** Delay before a new start after the spool rejected a write without losing its store. */
  spoolRetryMs: number
}

export const defaultBackoff: BackoffOptions = {
  minMs: 1000,
  maxMs: 60_000,
  stuckMaxMs: 600_000,
  probeEveryMs: 600_000,
  heldMaxMs: 3_600_000,
  probeJitter: 0.2,
  credentialsMinMs: 5000,
  credentialsMaxMs: 300_000,
  failuresToUnavailable: 5,
  unsuccessfulToUnavailable: 10,
  failuresToStuck: 3,
  emptyAnswersToUnavailable: 3,
  refusalsToUnavailable: 12,
  spoolRetryMs: 5000,
}

export type ProviderOptions = {
  name: ProviderName
  /** Without a slash at its end; may have a path. */
  baseUrl: string
  /** Value of X-Provider-Key; null where the header is not sent. */
  providerKey: string | null
  credentials: CredentialsOptions
  batch: { payloadsMax: number; bodyBytesMax: number; lingerMs: number }
  maxInFlight: number
  /** For one submission, from the first byte sent to the last byte read. */
  timeoutMs: number
  connectTimeoutMs: number
  /** Of the request bodies. The identity of a batch is that of the body before. */
  compress: 'off' | 'gzip'
  /** PEM of the authorities that may sign the service's certificate; null for those of Node. */
  ca: string | null
  clientCertificate: ClientCertificate | null
  proxy: ProxyOptions
  retryRules: RetryRules
  onRepeat: OnRepeat
  onRefusedRepeat: OnRefusedRepeat
  /** `single`: every payload is sent by the operation for one payload. */
  mode: 'batch' | 'single'
  backfill: {
    /** A payload that is older, now or at its arrival, is no longer live. */
    afterMs: number
    /** Least part of the turns, and largest part of `maxInFlight`, that backfill gets; 0 to 1. */
    shareMin: number
    shareMax: number
    order: 'oldest-first' | 'newest-first'
    /** In an outage, the waiting payloads become a lane of their own so often. */
    rotateEveryMs: number
  }
  /** Limits of our own; null for none. */
  rate: { payloadsPerS: number | null; requestsPerS: number | null }
  backoff: BackoffOptions
}

export type DeliveryOptions = {
  providers: readonly ProviderOptions[]
  /** Submissions at once over all providers. */
  maxInFlightTotal: number
  /** Each settle writes a receipt of its payloads (receipts/receipts.ts). */
  ledger?: boolean
}
