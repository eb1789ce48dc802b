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
      /** False: the answer ended early. It says nothing of the payloads that it does not name. */
      complete: boolean
      /** It is incomplete because it is longer than delivery.max_response_bytes. */
      tooLarge: boolean
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
  /** 200 or 202 whose body is not a readable answer: truncated, HTML, too large, not JSON. */
  | { kind: 'unreadable'; status: number; requestId: string | null; message: string }
  /** Any other status, redirects included. */
  | { kind: 'unexpected'; status: number; requestId: string | null; message: string }
  /**
   * The sender thread was lost, with this batch in flight at so many losses in a row. Says nothing of the
   * service.
   */
  | { kind: 'interrupted'; losses: number; message: string }
  /** A defect of ours: the bytes in memory changed before they were sent. Nothing was sent. */
  | { kind: 'body_changed'; message: string }
  /** The daemon stops; no result is known. */
  | { kind: 'aborted' }

/** `clock`: at the time of our clock the certificate of the service is not valid. */
export type UnreachableReason = NetworkReason
