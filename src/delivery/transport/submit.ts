// submit.ts: one HTTP attempt with one batch. Every way in which it can end is an Outcome; it never throws.
// Runs in the thread of sender-worker.ts.
//
// undici, HTTP/1.1, one request at a time on each connection, as many connections as batches may be under way, no
// redirects, nothing decompressed; where a proxy stands between, through its tunnel (proxy-tunnel.ts). The deadline
// is a signal over the whole attempt, because a service that trickles one byte a second keeps every other timer
// alive. The body is always read or its connection closed, so that no answer can hold one for ever.

import { buildConnector, Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { EpochMs } from '../../std/clock.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { readAnswer } from './answer-reader.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import type { Answer } from './answer-reader.ts'
import { createTlsRootCause } from './tls-root-cause.ts'
import type { Proxy } from '../proxy.ts'
import type { Sign } from './sign.ts'
import { createTunnel } from './proxy-tunnel.ts'
import { unreachable } from './unreachable.ts'

/** What leads to one provider, as the thread needs it. */
export type TransportOptions = {
  baseUrl: string
  providerKey: string | null
  connections: number
  timeoutMs: number
  connectTimeoutMs: number
  responseBytesMax: number
  /** PEM text; null for the public authorities. */
  ca: string | null
  /** PEM text of what we show when the service asks who we are; null for nothing. */
  cert: string | null
  key: string | null
  passphrase: string | null
  /** Null for the direct way. */
  proxy: Proxy | null
}

type Submission = {
  /** The operation; a single one has one payload as its body. */
  turn: BatchOperation
  body: Buffer
  payloadIds: () => readonly PayloadId[]
  sign: Sign
  signingAt: EpochMs
  /** The wall clock when the attempt began. */
  startedAt: EpochMs
  stop: AbortSignal
}

export type SubmissionResult = {
  outcome: Outcome
  /** The Date header of the answer, where there was one. */
  date: string | null
}

export type Submitter = {
  submit(submission: Submission): Promise<SubmissionResult>
  /** Ends the connections; running submissions end with them. */
  close(): Promise<void>
}

const keepAliveMs = 30_000

/** Where each operation goes below base_url (ingestion-api.md 4.1, 4.2). */
const paths: Record<BatchOperation, string> = { batch: '/v2/telemetry/batch', single: '/v2/telemetry' }

export function createSubmitter(route: TransportOptions): Submitter {
  const url = new URL(route.baseUrl)
  const base = url.pathname.replace(/\/$/, '')
  const firstFault = createTlsRootCause(connectorOf(route))
  const pool = new Pool(url.origin, {
    connections: route.connections,
    pipelining: 1,
    allowH2: false,
    // The deadline below is the only one; these two would end an attempt in words of their own.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: route.responseBytesMax,
    connect: firstFault.connector,
    // Below what balancers and firewalls in use keep an idle connection for; a server that says less is obeyed.
    keepAliveTimeout: keepAliveMs,
  })
  const headers = {
    'content-type': 'application/json',
    ...(route.providerKey === null ? {} : { 'x-provider-key': route.providerKey }),
  }

  return { submit, close: () => pool.destroy() }

  async function submit(submission: Submission): Promise<SubmissionResult> {
    const { stop, startedAt } = submission
    if (stop.aborted) return { outcome: { kind: 'aborted' }, date: null }
    // A controller and a timer of its own, both ended with the attempt: AbortSignal.timeout() would keep
    // thousands of timers of long answered requests.
    const ending = new AbortController()
    const onStop = () => ending.abort()
    let late = false
    const timer = setTimeout(() => {
      late = true
      ending.abort()
    }, route.timeoutMs)
    stop.addEventListener('abort', onStop, { once: true })
    const startedMs = performance.now()
    try {
      const answer = await attempt(submission, ending.signal)
      const now = startedAt + (performance.now() - startedMs)
      const date = answer.headers['date']
      return {
        outcome: readAnswer(answer, submission.payloadIds(), now, submission.turn),
        date: typeof date === 'string' ? date : null,
      }
    } catch (error) {
      return { outcome: outcomeOf(error, { late, stopped: stop.aborted, startedAt }), date: null }
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
    }
  }

  async function attempt({ turn, body, sign, signingAt }: Submission, signal: AbortSignal): Promise<Answer> {
    const { protocol, hostname, host } = url
    const path = base + paths[turn]
    const request = { method: 'POST' as const, protocol, hostname, host, path, headers, body }
    const signed = await sign(request, signingAt)
    const response = await pool.request({ method: 'POST', path, headers: signed, body, signal })
    return readBody(response, signal)
  }

  function outcomeOf(
    error: unknown,
    { late, stopped, startedAt }: { late: boolean; stopped: boolean; startedAt: EpochMs },
  ): Outcome {
    if (late)
      return { kind: 'unreachable', reason: 'timeout', message: `no answer within ${route.timeoutMs} ms` }
    return stopped ? { kind: 'aborted' } : unreachable(firstFault.of(error), startedAt)
  }
}

function connectorOf({
  connectTimeoutMs,
  ca,
  cert,
  key,
  passphrase,
  proxy,
}: TransportOptions): buildConnector.connector {
  const direct = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    ...(ca === null ? {} : { ca }),
    ...(cert === null || key === null ? {} : { cert, key }),
    ...(passphrase === null ? {} : { passphrase }),
  })
  return proxy === null ? direct : createTunnel({ proxy, timeoutMs: connectTimeoutMs, ca }, direct)
}

async function readBody(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  signal: AbortSignal,
): Promise<Answer> {
  const parts: Buffer[] = []
  let cut: Answer['cut'] = null
  try {
    for await (const part of body) parts.push(part as Buffer)
  } catch (error) {
    // A status that needs no body is still an answer, but 200 is nothing without its lists.
    if (signal.aborted && statusCode < 300) throw error
    cut = codeOf(error) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' ? 'too large' : 'truncated'
  }
  return {
    status: statusCode,
    headers,
    body: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts),
    cut,
  }
}
