// submit.ts: one HTTP attempt with one batch. Every way in which it can end is an Outcome; it never throws.
// Runs in the thread of outpost.ts.
//
// undici, HTTP/1.1, one request at a time on each connection, no redirects, nothing decompressed. The deadline
// is a signal over the whole attempt, because a service that trickles one byte a second keeps every other timer
// alive. The body is always read or its connection closed, so that no answer can hold one for ever.

import { Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { EpochMs } from '../std/clock.ts'
import { codeOf, messageOf } from '../std/fault.ts'
import type { PayloadId } from '../domain/ids.ts'
import type { Outcome, UnreachableReason } from '../domain/outcome.ts'
import { readAnswer } from './answer.ts'
import type { Answer } from './answer.ts'
import type { Sign } from './sign.ts'

/** What leads to one provider, as the thread needs it. */
export type Route = {
  baseUrl: string
  providerKey: string | null
  connections: number
  timeoutMs: number
  connectTimeoutMs: number
  responseBytesMax: number
  /** PEM text; null for the public authorities. */
  ca: string | null
}

type Submission = {
  body: Buffer
  payloadIds: () => readonly PayloadId[]
  sign: Sign
  signingAt: EpochMs
  /** The wall clock when the attempt began. */
  startedAt: EpochMs
  stop: AbortSignal
}

export type Ending = {
  outcome: Outcome
  /** The Date header of the answer, where there was one. */
  date: string | null
}

export type Submitter = {
  submit(submission: Submission): Promise<Ending>
  /** Ends the connections; running submissions end with them. */
  close(): Promise<void>
}

/** Where a batch goes below base_url (ingestion-api.md 4.2). */
const batchPath = '/v2/telemetry/batch'

export function createSubmitter(route: Route): Submitter {
  const url = new URL(route.baseUrl + batchPath)
  const pool = new Pool(url.origin, {
    connections: route.connections,
    pipelining: 1,
    allowH2: false,
    // The deadline below is the only one; these two would end an attempt in words of their own.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: route.responseBytesMax,
    connect: { timeout: route.connectTimeoutMs, ...(route.ca === null ? {} : { ca: route.ca }) },
  })
  const headers = {
    'content-type': 'application/json',
    ...(route.providerKey === null ? {} : { 'x-provider-key': route.providerKey }),
  }

  return { submit, close: () => pool.destroy() }

  async function submit(submission: Submission): Promise<Ending> {
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
        outcome: readAnswer(answer, submission.payloadIds(), now),
        date: typeof date === 'string' ? date : null,
      }
    } catch (error) {
      return { outcome: outcomeOf(error, { late, stopped: stop.aborted }), date: null }
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
    }
  }

  async function attempt({ body, sign, signingAt }: Submission, signal: AbortSignal): Promise<Answer> {
    const { protocol, hostname, host, pathname } = url
    const request = { method: 'POST' as const, protocol, hostname, host, path: pathname, headers, body }
    const signed = await sign(request, signingAt)
    const response = await pool.request({ method: 'POST', path: pathname, headers: signed, body, signal })
    return readBody(response, signal)
  }

  function outcomeOf(error: unknown, { late, stopped }: { late: boolean; stopped: boolean }): Outcome {
    if (late)
      return { kind: 'unreachable', reason: 'timeout', message: `no answer within ${route.timeoutMs} ms` }
    return stopped ? { kind: 'aborted' } : unreachable(error)
  }
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

const reasons: readonly (readonly [pattern: RegExp, reason: UnreachableReason, words: string])[] = [
  [/^ECONNREFUSED$/, 'refused', 'nothing listens at that address'],
  [/^(ENOTFOUND|EAI_\w+)$/, 'dns', 'the name cannot be resolved'],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'timeout', 'no connection in time'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)$/, 'reset', 'the connection was cut'],
  [
    /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|EPROTO|ERR_OSSL|HOSTNAME_MISMATCH)/,
    'tls',
    'TLS failed',
  ],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN)$/, 'other', 'there is no route'],
  [/^(HPE_|HTTPParserError$)/, 'other', 'the answer is not HTTP'],
]

function unreachable(error: unknown): Outcome {
  // Where a name has several addresses, each failed in its own way and the first one stands for all.
  const cause = error instanceof AggregateError && codeOf(error) === undefined ? error.errors[0] : error
  const code = codeOf(cause) ?? (cause instanceof Error ? cause.name : '')
  const [, reason, words] = reasons.find(([pattern]) => pattern.test(code)) ?? [
    null,
    'other' as const,
    'it failed',
  ]
  return {
    kind: 'unreachable',
    reason,
    message: `${words} (${code === '' ? '' : `${code}: `}${messageOf(cause)})`,
  }
}
