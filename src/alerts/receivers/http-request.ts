// http-request.ts: one HTTP request to a receiver, on a connection of its own: alerts are rare. Redirects are
// not followed: the body and its headers are for the configured host only. Of an answer, 2 KiB are read.
// The client takes 5 MB, so only a gateway with receivers loads it.

import type { Agent, buildConnector, Dispatcher } from 'undici'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import type { Secret } from '../../std/secret.ts'
import {
  createTunnel,
  isLoopbackUrl,
  proxyFor,
  type Environment,
  type ProxyOptions,
} from '../../delivery/delivery.ts'
import type { Sent } from '../types.ts'
import { failureOf, isBroken, type ReceiverPlace } from './failure-text.ts'
import { lookupName } from './name-lookup.ts'
import { createHiding, decoded, secretsOfUrl, shownTarget } from './hidden-text.ts'

export type HttpTarget = {
  url: Secret
  headers: ReadonlyMap<string, Secret>
  ca: string | null
  timeoutMs: number
  proxy: ProxyOptions
  env: Environment
}

export type HttpContent = {
  method: 'POST' | 'GET' | 'HEAD'
  headers: Readonly<Record<string, string>>
  body: string | null
}

const answerBytesMax = 2048

/**
 * Called when a receiver is made: an alert must leave also where no more files can be opened, or where other
 * ones are installed. Where it fails, sendHttp() and checkHttp() try again, and say why.
 */
export function loadHttpClient(): void {
  import('undici').catch(() => undefined)
}

/** Never rejects. Sent: a status of 200 to 299. */
export async function sendHttp(target: HttpTarget, content: HttpContent, ends: AbortSignal): Promise<Sent> {
  const hide = hidingOf(target)
  let agent: Agent | null = null
  try {
    const { url, authorization } = placeOf(target)
    const undici = await import('undici')
    agent = new undici.Agent({
      connect: await connectorOf(target),
      allowH2: false,
      pipelining: 1,
      connections: 1,
    })
    const answer = await undici.request(url, {
      dispatcher: agent,
      method: content.method,
      headers: {
        'user-agent': 'telemetry-gateway',
        ...authorization,
        ...Object.fromEntries([...target.headers].map(([name, value]) => [name, value.reveal()])),
        ...content.headers,
      },
      ...(content.body === null ? {} : { body: content.body }),
      signal: ends,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const excerpt = hide(await excerptOf(answer, ends))
    return resultOf(answer, excerpt, hide)
  } catch (error) {
    const { why, act } = failureOf(error, receiverPlace(target))
    return { kind: 'failed', why: hide(why), act, retryAfterMs: null, mayHaveArrived: isBroken(error) }
  } finally {
    // It also ends an answer that was not read to its end.
    await agent?.destroy().catch(() => undefined)
  }
}

/** Connects, with TLS where the URL has it, and sends nothing. */
export async function checkHttp(target: HttpTarget, ends: AbortSignal): Promise<Sent> {
  const hide = hidingOf(target)
  try {
    const { protocol, hostname, host, port } = new URL(target.url.reveal())
    const connect = await connectorOf(target)
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => reject(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }))
      if (ends.aborted) onAbort()
      ends.addEventListener('abort', onAbort, { once: true })
      connect({ protocol, hostname: hostname.replace(/^\[|\]$/g, ''), host, port }, (error, socket) => {
        socket?.destroy()
        if (error === null) resolve()
        else reject(error)
      })
    })
    return { kind: 'sent', detail: 'It accepts connections. No request was sent.', warning: null }
  } catch (error) {
    const { why, act } = failureOf(error, receiverPlace(target))
    return { kind: 'failed', why: hide(why), act, retryAfterMs: null, mayHaveArrived: isBroken(error) }
  }
}

function receiverPlace({ url, ca }: HttpTarget): ReceiverPlace {
  const { hostname, host } = new URL(url.reveal())
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    address: host,
    hasCa: ca !== null,
    options: '`url` of the receiver',
  }
}

function hidingOf({ url, headers }: HttpTarget) {
  const values = [...headers.values()].map((value) => value.reveal())
  // `Bearer TOKEN`: an answer may have the token alone.
  return createHiding([
    ...secretsOfUrl(url.reveal()),
    ...values,
    ...values.flatMap((value) => value.split(/\s+/)),
  ])
}

/** A user in the URL becomes a header. */
function placeOf({ url: secret }: HttpTarget): { url: URL; authorization: Record<string, string> } {
  const url = new URL(secret.reveal())
  const { username, password } = url
  url.username = ''
  url.password = ''
  url.hash = ''
  if (username === '' && password === '') return { url, authorization: {} }
  const login = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')
  return { url, authorization: { authorization: `Basic ${login}` } }
}

async function connectorOf({
  url: secret,
  ca,
  timeoutMs,
  proxy: options,
  env,
}: HttpTarget): Promise<buildConnector.connector> {
  const undici = await import('undici')
  const url = new URL(secret.reveal())
  const direct = undici.buildConnector({
    timeout: timeoutMs,
    ...addressAttempts(timeoutMs),
    allowH2: false,
    lookup: lookupName,
    ...(ca === null ? {} : { ca }),
  })
  const proxy = isLoopbackUrl(url) ? null : proxyFor(url.href, options, env)
  return proxy === null
    ? direct
    : createTunnel({ proxy, timeoutMs, ca: ca ?? undefined, lookup: lookupName }, direct)
}

async function excerptOf({ body }: Dispatcher.ResponseData, ends: AbortSignal): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part)
      bytes += part.length
      if (bytes >= answerBytesMax || ends.aborted) break
    }
  } catch {
    // The status counts, also where the body breaks off.
  }
  return Buffer.concat(parts).subarray(0, answerBytesMax).toString('utf8')
}

type Hide = ReturnType<typeof createHiding>

function resultOf(
  { statusCode: status, headers }: Dispatcher.ResponseData,
  excerpt: string,
  hide: Hide,
): Sent {
  const answer = excerpt === '' ? `HTTP ${status}` : `HTTP ${status}: ${excerpt}`
  if (status >= 200 && status <= 299) return { kind: 'sent', detail: answer, warning: null }
  const retryAfterMs = retryAfterOf(headers['retry-after'])
  const failed = (why: string, act: string): Sent => ({
    kind: 'failed',
    why,
    act,
    retryAfterMs,
    mayHaveArrived: false,
  })
  if (status >= 300 && status <= 399) {
    const to = headers['location']
    const place =
      typeof to === 'string' && /^https?:/i.test(to) && URL.canParse(to) ? ` to ${hide(shownTarget(to))}` : ''
    return failed(
      `HTTP ${status}: it redirects${place}`,
      'Redirects are not followed. Set the final address as `url`.',
    )
  }
  if (status === 401 || status === 403)
    return failed(answer, 'Check the secret, the headers and the token in the url of the receiver.')
  if (status === 404 || status === 410)
    return failed(answer, 'Check the url of the receiver: it may have been deleted there.')
  if (status === 429)
    return failed(answer, 'Nothing: it is tried again later. If it continues, lower max_per_hour.')
  if (status >= 500)
    return failed(answer, 'Nothing: it is tried again. If it continues, ask who runs the receiver.')
  return failed(answer, 'The receiver refuses the request. Check `body` and its documentation.')
}

function retryAfterOf(header: string | string[] | undefined): number | null {
  const text = [header].flat()[0]?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now())
}
