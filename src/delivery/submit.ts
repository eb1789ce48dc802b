// submit.ts: one HTTP attempt with one batch. Every way in which it can end is an Outcome; it never throws.
//
// undici, HTTP/1.1, one request at a time on each connection, no redirects, nothing decompressed. The deadline
// is a signal over the whole attempt, because a service that trickles one byte a second keeps every other timer
// alive. The body is always read or its connection closed, so that no answer can hold one for ever.

import { Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { Clock } from '../std/clock.ts'
import { codeOf, messageOf } from '../std/fault.ts'
import type { PayloadId } from '../domain/ids.ts'
import type { Outcome, UnreachableReason } from '../domain/outcome.ts'
import { readAnswer } from './answer.ts'
import type { Answer } from './answer.ts'
import type { ProviderOptions } from './options.ts'
import type { ServiceClock } from './service-clock.ts'
import type { Sign } from './sign.ts'

type Submission = { body: Buffer; payloadIds: readonly PayloadId[]; sign: Sign; stop: AbortSignal }

export type Submitter = {
  submit(submission: Submission): Promise<Outcome>
  /** Ends the connections; running submissions end with them. */
  close(): Promise<void>
}

type Deps = { clock: Clock; serviceClock: ServiceClock }

/** Where a batch goes below base_url (ingestion-api.md 4.2). */
const batchPath = '/v2/telemetry/batch'

export function createSubmitter({ clock, serviceClock }: Deps, options: ProviderOptions): Submitter {
  const url = new URL(options.baseUrl + batchPath)
  const pool = new Pool(url.origin, {
    connections: options.maxInFlight,
    pipelining: 1,
    allowH2: false,
    // The deadline below is the only one; these two would end an attempt in words of their own.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: options.responseBytesMax,
    connect: { timeout: options.connectTimeoutMs, ...(options.ca === null ? {} : { ca: options.ca }) },
  })
  const headers = {
    'content-type': 'application/json',
    ...(options.providerKey === null ? {} : { 'x-provider-key': options.providerKey }),
  }

  return { submit, close: () => pool.destroy() }

  async function submit({ body, payloadIds, sign, stop }: Submission): Promise<Outcome> {
    if (stop.aborted) return { kind: 'aborted' }
    // A controller and a timer of its own, both ended with the attempt: AbortSignal.timeout() would keep
    // thousands of timers of long answered requests.
    const ending = new AbortController()
    const onStop = () => ending.abort()
    let late = false
    const timer = setTimeout(() => {
      late = true
      ending.abort()
    }, options.timeoutMs)
    stop.addEventListener('abort', onStop, { once: true })
    try {
      const answer = await attempt(body, sign, ending.signal)
      return readAnswer(answer, payloadIds, clock.now())
    } catch (error) {
      if (late)
        return { kind: 'unreachable', reason: 'timeout', message: `no answer within ${options.timeoutMs} ms` }
      return stop.aborted ? { kind: 'aborted' } : unreachable(error)
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
    }
  }

  async function attempt(body: Buffer, sign: Sign, signal: AbortSignal): Promise<Answer> {
    const { protocol, hostname, host, pathname } = url
    const request = { method: 'POST' as const, protocol, hostname, host, path: pathname, headers, body }
    const signed = await sign(request, serviceClock.signingAt())
    const sentAt = clock.now()
    const response = await pool.request({ method: 'POST', path: pathname, headers: signed, body, signal })
    serviceClock.answered(response.headers['date'], sentAt)
    return readBody(response, signal)
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
