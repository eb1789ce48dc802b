// transport.ts: the entry file of the transport of batches to the service. It decides nothing: each
// submission ends in exactly one Outcome, whatever the service, the network or a proxy does.
//
//   main thread     sender-worker      the thread, its messages, its loss
//                   service-clock      the time that signatures are made with, from the Date of the answers
//                   transport-options  the options of a provider as plain values, which a thread can receive
//   sender thread   sender-thread      receives the requests
//                   sign               SigV4a
//                   submit             one HTTP request: connection pool, deadline, how much was sent
//                   proxy-tunnel       CONNECT through a proxy; tls-root-cause: why TLS failed
//                   answer-reader      an HTTP answer as an Outcome; unreachable: no answer as an Outcome
//                   body-entries       what the ledger records of each payload in the body
//   check           connection-check   the same connection, step by step, without telemetry

import type { EpochMs } from '../../std/clock.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { BatchContent, BatchOperation } from '../../spool/spool.ts'
import type { Credentials } from '../credentials/access-keys.ts'
import type { Proxy } from '../proxy.ts'

/** How one provider is reached, in plain values: a Secret cannot be passed to a thread. */
export type TransportOptions = {
  baseUrl: string
  providerKey: string | null
  connections: number
  connectTimeoutMs: number
  compress: 'off' | 'gzip'
  /** PEM text, as Node names it: authorities instead of the public ones, and a certificate of ours. */
  tls: { ca?: string; cert?: string; key?: string; passphrase?: string }
  /** Null for a direct connection. */
  proxy: Proxy | null
}

/** To one provider. */
export type Transport = {
  /** Never rejects: every failure is an Outcome. */
  submit(attempt: Attempt): Promise<AttemptResult>
  /** For the next submissions. Running ones end with the connections that they have. */
  renew(options: TransportOptions): void
  /** Ends its connections; running submissions end with them. */
  close(): Promise<void>
}

export type Attempt = {
  operation: BatchOperation
  content: Pick<BatchContent, 'bodyBytes' | 'writeBody'>
  credentials: Credentials
  signingAt: EpochMs
  startedAt: EpochMs
  /** From the start of the attempt to the last byte of the answer. */
  timeoutMs: number
  stop: AbortSignal
}

export type SubmissionResult = {
  outcome: Outcome
  /**
   * False where it is certain that the last bytes of the body were not sent: the service cannot have
   * processed the batch.
   */
  written: boolean
  /** Bytes of the uncompressed body that were sent; estimated where it is compressed. */
  bytesSent: number
  /** The Date header of the answer, where there was one. */
  date: string | null
}

export type AttemptResult = SubmissionResult & {
  /**
   * The payloads as the ledger records them (receipts/receipt-entries.ts); null where nothing can be settled,
   * or without a ledger.
   */
  entries: Uint8Array<ArrayBuffer> | null
}
