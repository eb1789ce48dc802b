// delivery-options.ts: what delivery is told, in the units in which it reckons. config.ts makes it from the config.

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

/** What we show to a service that asks who we are; PEM text. */
export type ClientCertificate = { cert: string; key: Secret; passphrase: Secret | null }

/** Delays before each retry of a payload that the service answered `failed` for; or it is a success by another name. */
export type RetryRule = readonly number[] | 'delivered'

/** Keyed by `errorType`; `default` is for all others. */
export type RetryRules = ReadonlyMap<string, RetryRule>

/** What a batch that was sent before becomes when the service answers 409. */
export type OnRepeat = 'hold' | 'delivered' | 'resend'

/** The tempo of failing: when the road closes and how long each kind of wait is. */
export type BackoffOptions = {
  /** Full jitter: a wait is drawn from zero to this, doubled at each failure up to `maxMs`. */
  minMs: number
  maxMs: number
  /** For a batch that stepped aside while others succeed (BATCH_STUCK). */
  stuckMaxMs: number
  /** Between two tries of what no back-off mends: 401, 403, a refused wrapper, a repeated batchId. */
  probeEveryMs: number
  /** Part of `probeEveryMs` by which it varies up and down. */
  probeJitter: number
  /** First and longest wait when no credentials are found. */
  credentialsMinMs: number
  credentialsMaxMs: number
  /** Failures in a row, over at least two batches, that close the road. */
  failuresToUnavailable: number
  /** Submissions in a row without a success, of whatever kind, that close the road. */
  submissionsToUnavailable: number
  /** Failures of one batch while others succeed that make it step aside. */
  failuresToStuck: number
  /** Live or backfill batches in a row with nothing accepted that are an outage told inside a 200. */
  emptyAnswersToUnavailable: number
  /** Requests in a row that are refused as such, with nothing accepted between, that close the road (WRAPPER_REFUSED). */
  refusalsToUnavailable: number
  /** After the spool refused a write and reported no loss: when it is asked again. */
  spoolRetryMs: number
}

export const defaultBackoff: BackoffOptions = {
  minMs: 1000,
  maxMs: 60_000,
  stuckMaxMs: 600_000,
  probeEveryMs: 600_000,
  probeJitter: 0.2,
  credentialsMinMs: 5000,
  credentialsMaxMs: 300_000,
  failuresToUnavailable: 5,
  submissionsToUnavailable: 10,
  failuresToStuck: 10,
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
  /** For one attempt, from the first byte sent to the last byte read. */
  timeoutMs: number
  connectTimeoutMs: number
  responseBytesMax: number
  /** PEM of the authorities that may sign the service's certificate; null for those that Node knows. */
  ca: string | null
  clientCertificate: ClientCertificate | null
  proxy: ProxyOptions
  retryRules: RetryRules
  onRepeat: OnRepeat
  /** `single`: every payload goes by the operation for one. */
  mode: 'batch' | 'single'
  backfill: {
    /** A live payload that is older, or was when it came, is no longer live. */
    afterMs: number
    /** Part of the turns, and of the places, that backfill gets at least and at most; 0 to 1. */
    shareMin: number
    shareMax: number
    order: 'oldest-first' | 'newest-first'
    /** In an outage, what waits becomes a lane of its own so often. */
    rotateEveryMs: number
  }
  /** What we allow ourselves towards the service; null: no limit of ours. */
  rate: { payloadsPerS: number | null; requestsPerS: number | null }
  backoff: BackoffOptions
}

export type DeliveryOptions = {
  providers: readonly ProviderOptions[]
  /** Submissions at once over all providers. */
  maxInFlightTotal: number
  /** With each settle goes a receipt of its payloads (receipts/receipts.ts). */
  ledger?: boolean
}
