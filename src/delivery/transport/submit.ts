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

import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildConnector, Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { EpochMs } from '../../std/clock.ts'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import { createAnswerReader } from './answer-reader/answer-reader.ts'
import type { IdsInBody } from './answer-reader/usual-answer.ts'
import { createTunnel } from './proxy-tunnel.ts'
import { observeWrites } from './sent-body.ts'
import type { SentBody } from './sent-body.ts'
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
  /** The same body, as it is sent. */
  sent: SentBody
  payloadIds: () => readonly PayloadId[]
  /** The same in the body before it is compressed. */
  idsInBody?: IdsInBody
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
  /** Bound: each has a running request. */
  const replaced = new Set<typeof present>()
  const headers = {
    'content-type': 'application/json',
    ...(options.providerKey === null ? {} : { 'x-provider-key': options.providerKey }),
  }

  return {
    submit,
    async close() {
      await Promise.all([present, ...replaced].map(({ pool }) => pool.destroy()))
    },
  }

  async function submit(submission: Submission): Promise<SubmissionResult> {
    const { sent, stop, startedAt, timeoutMs } = submission
    if (stop.aborted) return { outcome: { kind: 'aborted' }, date: null, written: false, bytesSent: 0 }
    // A controller and a timer of its own, both ended with the attempt: AbortSignal.timeout() would keep the
    // timers of thousands of finished requests.
    const ending = new AbortController()
    // One turn later, when all writes that the kernel has completed are reported. So `written` is exact.
    const end = () => void setImmediate(() => ending.abort())
    let late = false
    const timer = setTimeout(() => {
      late = true
      end()
    }, timeoutMs)
    stop.addEventListener('abort', end, { once: true })
    const startedMs = performance.now()
    const used = present
    used.running += 1
    try {
      const response = await attempt(used.pool, submission, ending.signal)
      const { date } = response.headers
      const outcome = await read(submission, response, {
        signal: ending.signal,
        now: () => startedAt + (performance.now() - startedMs),
      })
      const progress = await progressAfterAnswer(sent)
      return { outcome, date: typeof date === 'string' ? date : null, ...progress }
    } catch (error) {
      const isQueued = error === noConnection && used.pool.stats.queued > 0
      if (used === present && (isQueued || codeOf(error) === 'UND_ERR_INVALID_ARG')) {
        replaced.add(used)
        present = open()
      }
      const outcome = outcomeOf(error, {
        late: late ? (isQueued ? noConnection.message : `no answer within ${timeoutMs} ms`) : null,
        stopped: stop.aborted,
        startedAt,
      })
      // A connection that failed by itself may have written more than it could report.
      const written = ending.signal.aborted ? sent.flushed() : sent.passed()
      return { outcome, date: null, written, bytesSent: sent.flushedBytes() }
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      used.running -= 1
      // destroy() rejects only for a pool that is destroyed already.
      if (used.running === 0 && replaced.delete(used)) void used.pool.destroy()
    }
  }

  async function attempt(
    pool: Pool,
    { operation, body, encoding, sent, sign, signingAt }: Submission,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { protocol, hostname, host } = url
    const path = base + paths[operation]
    const own = encoding === null ? headers : { ...headers, 'content-encoding': encoding }
    const request = { method: 'POST' as const, protocol, hostname, host, path, headers: own, body }
    const signed = await sign(request, signingAt)
    if (sent.inPieces) signed['content-length'] = String(body.length)
    // undici takes any iterable, which its types do not say.
    const source = sent.source as Buffer
    const answer = pool.request({ method: 'POST', path, headers: signed, body: source, signal })
    const waited = Promise.withResolvers<never>()
    // A turn later, when a request that has a connection has failed by the same signal.
    signal.addEventListener('abort', () => setImmediate(() => waited.reject(noConnection)), { once: true })
    return Promise.race([answer, waited.promise])
  }

  /** Reads the body as it comes. Where nothing more is of use, its connection is closed. */
  async function read(
    { operation, payloadIds, idsInBody }: Submission,
    { statusCode: status, headers: answerHeaders, body }: Dispatcher.ResponseData,
    { signal, now }: { signal: AbortSignal; now: () => EpochMs },
  ): Promise<Outcome> {
    const { responseBytesMax } = options
    const head = { status, headers: answerHeaders }
    const reader = createAnswerReader(head, {
      operation,
      payloadIds,
      responseBytesMax,
      ...(idsInBody && { idsInBody }),
    })
    let whole = false
    try {
      for await (const part of body) if (!reader.push(part as Buffer)) break
      whole = true
    } catch (error) {
      // An error status is a complete answer without its body. A 200 is not, because its lists are in the
      // body; what came of them counts.
      if (!signal.aborted || status >= 300) return reader.end(false, now())
      const outcome = reader.end(false, now())
      if (outcome.kind !== 'answered') throw error
      return outcome
    }
    return reader.end(whole, now())
  }

  function outcomeOf(
    error: unknown,
    { late, stopped, startedAt }: { late: string | null; stopped: boolean; startedAt: EpochMs },
  ): Outcome {
    if (late !== null) return { kind: 'unreachable', reason: 'timeout', message: late }
    return stopped ? { kind: 'aborted' } : unreachable(rootCause.of(error), startedAt, options)
  }
}

/** The answer may have come before the body was written. */
async function progressAfterAnswer(sent: SentBody): Promise<Pick<SubmissionResult, 'written' | 'bytesSent'>> {
  if (!sent.flushed()) await nextTurn()
  return { written: sent.flushed(), bytesSent: sent.flushedBytes() }
}

function connectorOf({ connectTimeoutMs, tls, proxy }: TransportOptions): buildConnector.connector {
  const direct = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    ...addressAttempts(connectTimeoutMs),
    ...tls,
  })
  const tunnel = { timeoutMs: connectTimeoutMs, ca: tls.ca }
  return observeWrites(proxy === null ? direct : createTunnel({ proxy, ...tunnel }, direct))
}
