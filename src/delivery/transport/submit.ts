// submit.ts: one HTTP request with one batch, in the sender thread. Every way in which it can end is an
// Outcome; it never throws.
//
// undici, HTTP/1.1, one request at a time per connection, as many connections as batches may be in flight, no
// redirects, nothing decompressed; through a proxy by its tunnel (proxy-tunnel.ts). The deadline is a signal
// over the whole attempt, because a service that sends one byte a second keeps every other timer alive. The
// answer is always read or its connection closed, so that no answer can hold a connection for ever.
//
// A request that undici refuses keeps its place in the pool for ever; without places, requests wait in the
// queue of the pool, where undici observes no signal. So the deadline covers the queue here, and after both
// a new pool takes its place. The old one ends with its last running request.
//
// undici takes the body in pieces, each when the one before is with the kernel. A batch whose last piece it
// did not take was certainly not processed.

import { buildConnector, Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { EpochMs } from '../../std/clock.ts'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import { answerBytesMax, readAnswer, type AnswerBody } from './answer-reader.ts'
import { createTunnel } from './proxy-tunnel.ts'
import type { Sign } from './sign.ts'
import { createTlsRootCause } from './tls-root-cause.ts'
import type { SubmissionResult, TransportOptions } from './transport.ts'
import { unreachable } from './unreachable.ts'

type Submission = {
  /** The body of `single` is one payload. */
  operation: BatchOperation
  /** As it is sent and signed. */
  body: Buffer
  encoding: 'gzip' | null
  payloadIds: () => readonly PayloadId[]
  sign: Sign
  signingAt: EpochMs
  /** The wall clock when the attempt began. */
  startedAt: EpochMs
  timeoutMs: number
  stop: AbortSignal
}

export type Submitter = {
  submit(submission: Submission): Promise<SubmissionResult>
  /** Ends the connections; running submissions end with them. */
  close(): Promise<void>
}

const keepAliveMs = 30_000

/** About what the kernel takes at once. Smaller pieces cost time, larger ones hide the progress. */
const pieceBytes = 64 * 1024

const noConnection = new Error('no connection was free before the deadline; new connections are made')

/** Path of each operation below base_url (ingestion-api.md 4.1, 4.2). */
const paths: Record<BatchOperation, string> = { batch: '/v2/telemetry/batch', single: '/v2/telemetry' }

export function createSubmitter(options: TransportOptions): Submitter {
  const url = new URL(options.baseUrl)
  const base = url.pathname.replace(/\/$/, '')
  const rootCause = createTlsRootCause(connectorOf(options))
  const open = () => ({
    running: 0,
    pool: new Pool(url.origin, {
      connections: options.connections,
      pipelining: 1,
      allowH2: false,
      // The deadline below is the only one; these two would end an attempt with errors of their own.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: rootCause.connector,
      // Shorter than common balancers and firewalls keep an idle connection; a shorter time of the server is
      // obeyed.
      keepAliveTimeout: keepAliveMs,
    }),
  })
  let present = open()
  const headers = {
    'content-type': 'application/json',
    ...(options.providerKey === null ? {} : { 'x-provider-key': options.providerKey }),
  }

  return {
    submit,
    async close() {
      const last = present
      present = open()
      if (last.running === 0) await last.pool.destroy()
    },
  }

  async function submit(submission: Submission): Promise<SubmissionResult> {
    const { body, stop, startedAt, timeoutMs } = submission
    if (stop.aborted) return { outcome: { kind: 'aborted' }, date: null, written: false, bytesSent: 0 }
    // A controller and a timer of its own, both ended with the attempt: AbortSignal.timeout() would keep the
    // timers of thousands of finished requests.
    const ending = new AbortController()
    const end = () => ending.abort()
    let late = false
    const timer = setTimeout(() => {
      late = true
      end()
    }, timeoutMs)
    stop.addEventListener('abort', end, { once: true })
    const startedMs = performance.now()
    const used = present
    used.running += 1
    const sent = { bytes: 0 }
    const progress = () => ({ written: sent.bytes === body.length, bytesSent: sent.bytes })
    try {
      const response = await attempt(used.pool, submission, { sent, signal: ending.signal })
      const { statusCode: status, headers } = response
      const answer = await read(response, ending.signal)
      const now = startedAt + (performance.now() - startedMs)
      const outcome = readAnswer({ status, headers }, answer, { ...submission, now })
      const { date } = headers as { date?: unknown }
      return { outcome, date: typeof date === 'string' ? date : null, ...progress() }
    } catch (error) {
      const isQueued = error === noConnection && used.pool.stats.queued > 0
      if (used === present && (isQueued || codeOf(error) === 'UND_ERR_INVALID_ARG')) present = open()
      const outcome = outcomeOf(error, {
        late: late ? (isQueued ? noConnection.message : `no answer within ${timeoutMs} ms`) : null,
        stopped: stop.aborted,
        startedAt,
      })
      return { outcome, date: null, ...progress() }
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      used.running -= 1
      // Where another pool has taken its place. It does not reject, since it is destroyed once.
      if (used.running === 0 && used !== present) void used.pool.destroy()
    }
  }

  async function attempt(
    pool: Pool,
    { operation, body, encoding, sign, signingAt }: Submission,
    { sent, signal }: { sent: { bytes: number }; signal: AbortSignal },
  ): Promise<Dispatcher.ResponseData> {
    const { protocol, hostname, host } = url
    const path = base + paths[operation]
    const own = encoding === null ? headers : { ...headers, 'content-encoding': encoding }
    const request = { method: 'POST' as const, protocol, hostname, host, path, headers: own, body }
    const signed = await sign(request, signingAt)
    signed['content-length'] = String(body.length)
    // undici takes any iterable, which its types do not say.
    const source = { [Symbol.iterator]: () => piecesOf(body, sent) } as unknown as Buffer
    const answer = pool.request({ method: 'POST', path, headers: signed, body: source, signal })
    const waited = Promise.withResolvers<never>()
    // A turn later, when a request that has a connection has failed by the same signal.
    signal.addEventListener('abort', () => setImmediate(() => waited.reject(noConnection)), { once: true })
    return Promise.race([answer, waited.promise])
  }

  /** Where nothing more is of use, its connection is closed. */
  async function read(
    { statusCode: status, body }: Dispatcher.ResponseData,
    signal: AbortSignal,
  ): Promise<AnswerBody> {
    const parts: Buffer[] = []
    let bytes = 0
    let cut: AnswerBody['cut'] = null
    try {
      for await (const part of body as AsyncIterable<Buffer>) {
        bytes += part.length
        if (bytes > answerBytesMax) {
          cut = 'too large'
          break
        }
        parts.push(part)
      }
    } catch (error) {
      // An error status is a complete answer without its body. A 200 is not: its lists are in the body.
      if (signal.aborted && status < 300) throw error
      cut = 'ended early'
    }
    return { bytes: Buffer.concat(parts), cut }
  }

  function outcomeOf(
    error: unknown,
    { late, stopped, startedAt }: { late: string | null; stopped: boolean; startedAt: EpochMs },
  ): Outcome {
    if (late !== null) return { kind: 'unreachable', reason: 'timeout', message: late }
    return stopped ? { kind: 'aborted' } : unreachable(rootCause.of(error), startedAt, options)
  }
}

/** `sent`: how much of it undici has taken. */
function* piecesOf(body: Buffer, sent: { bytes: number }): Generator<Buffer> {
  for (let start = 0; start < body.length; start += pieceBytes) {
    const piece = body.subarray(start, start + pieceBytes)
    sent.bytes += piece.length
    yield piece
  }
}

function connectorOf({ connectTimeoutMs, tls, proxy }: TransportOptions): buildConnector.connector {
  const direct = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    ...addressAttempts(connectTimeoutMs),
    ...tls,
  })
  const tunnel = { timeoutMs: connectTimeoutMs, ca: tls.ca }
  return proxy === null ? direct : createTunnel({ proxy, ...tunnel }, direct)
}
