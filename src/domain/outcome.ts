// outcome.ts: the result of one submission, as a closed union. Whatever the service, the network or a proxy
// does is exactly one of these; delivery/policy/verdict.ts says what follows from each.

import type { NetworkReason } from '../std/network-faults/network-faults.ts'

/** Element of `failed` in a batch response (ingestion-api.md 2.8). */
export type FailureRecord = {
  payloadId: string
  errorType: string
  errorMessage: string
  validationErrorDetails: readonly { field: string; message: string }[]
}

export type Outcome =
  /**
   * 200 with a readable breakdown of the payloads that were sent; other entries are deviations. `deviations`:
   * what in it contradicts the specification or itself. `all`: all payloads are accepted and none failed.
   */
  | {
      kind: 'answered'
      requestId: string | null
      accepted: readonly string[] | 'all'
      failed: readonly FailureRecord[]
      deviations: readonly string[]
      /** `message` of an answer that names no payload of the batch; absent without one, or if it is long. */
      serviceMessage?: string
    }
  /** 202 for a single payload (ingestion-api.md 4.1). */
  | { kind: 'accepted_single'; requestId: string | null }
  /** 400 or 413: the service refuses the whole request. */
  | {
      kind: 'refused'
      status: 400 | 413
      requestId: string | null
      message: string
      details: readonly { field: string; message: string }[]
    }
  /** 409: the batchId is known to the service. */
  | { kind: 'repeated'; requestId: string | null; message: string }
  /** 401 or 403: signature, account or clock. */
  | { kind: 'unauthorized'; status: 401 | 403; requestId: string | null; message: string }
  /** 408, 425, 429 or 5xx. */
  | {
      kind: 'unavailable'
      status: number
      requestId: string | null
      message: string
      /** What the service asked for; delivery waits 10 min at most. */
      retryAfterMs: number | null
    }
  /** No answer: timeout, reset, DNS, TLS, refused connection. `act`: what a person can do. */
  | { kind: 'unreachable'; reason: UnreachableReason; message: string; act?: string }
  /** 200 or 202 whose body is not a readable answer: truncated, HTML, not JSON, or too large to be read. */
  | { kind: 'unreadable'; status: number; requestId: string | null; message: string; tooLarge?: true }
  /** Any other status, redirects included. */
  | { kind: 'unexpected'; status: number; requestId: string | null; message: string }
  /** The sender thread was lost while it sent this batch. Says nothing of the service. */
  | { kind: 'interrupted'; message: string }
  /** The daemon stops; no result is known. */
  | { kind: 'aborted' }

/** `clock`: at the time of our clock the certificate of the service is not valid. */
export type UnreachableReason = NetworkReason
