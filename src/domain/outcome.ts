// outcome.ts: what one submission came to, as a closed union. Everything the service, the network or a
// proxy between can do ends in exactly one of these; delivery/policy/verdict.ts says what follows from each.

/** Element of `failed` in a batch response (ingestion-api.md 2.8). */
export type FailureRecord = {
  payloadId: string
  errorType: string
  errorMessage: string
  validationErrorDetails: readonly { field: string; message: string }[]
}

export type Outcome =
  /**
   * 200 with a readable breakdown; `oddities` names what was wrong with it although it could be read. `all`: it names
   * exactly the payloads that were sent, and no other list has any.
   */
  | {
      kind: 'answered'
      requestId: string | null
      accepted: readonly string[] | 'all'
      failed: readonly FailureRecord[]
      oddities: readonly string[]
    }
  /** 202 for a single payload (ingestion-api.md 4.1). */
  | { kind: 'accepted_single'; requestId: string | null }
  /** 400 or 413: the service refuses the request as such. */
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
      retryAfterMs: number | null
    }
  /** No answer: timeout, reset, DNS, TLS, refused connection. `act`: what a person can do about it. */
  | { kind: 'unreachable'; reason: UnreachableReason; message: string; act?: string }
  /** 200 or 202 whose body cannot be read as an answer: truncated, HTML, too large, not JSON. */
  | { kind: 'unreadable'; status: number; requestId: string | null; message: string }
  /** Any other status, redirects included. */
  | { kind: 'unexpected'; status: number; requestId: string | null; message: string }
  /** We are stopping; nothing is known. */
  | { kind: 'aborted' }

/** `clock`: by our clock the certificate of the service is not valid. */
export type UnreachableReason = 'timeout' | 'reset' | 'refused' | 'dns' | 'tls' | 'clock' | 'proxy' | 'other'
