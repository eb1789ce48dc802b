// daemon-client.ts: requests to the running daemon over HTTP, on its control socket or on TCP. An error of
// the daemon is thrown here as if it were our own; an answer that is too long or not JSON is
// DAEMON_UNREACHABLE.
//
//   find-daemon.ts      where the daemon is
//   absent-daemon.ts    why no daemon answers (service-unit.ts: what systemd says)
//   daemon-options.ts   the options of the commands
//   spool-access.ts     commands that can also read the spool of a daemon that does not run

import type { IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { request as requestHttp } from '../../std/node-http.ts'
import { isTimeZone, useTimeZone } from '../../std/clock.ts'
import { codeOf, errorCodes, GatewayError, messageOf, type ErrorCode } from '../../std/gateway-error.ts'
import { formatDuration } from '../../std/quantity.ts'
import { shownUrl } from '../../std/shown-url.ts'

/** Far above any bounded answer of the daemon. */
const answerLengthMax = 64 * 1024 * 1024
/** A line has one message of at most 64 KiB and its payloads, or one dead letter. */
const lineLengthMax = 16 * 1024 * 1024
const defaultTimeoutMs = 30_000
/** After this time without an answer, the daemon is asked whether it lives. */
const quietMs = 1000
const silentMs = 5000
/** To find out whether the daemon is there. */
const presenceMs = 3000

/** `url`: http:, https:, or `unix:` with the path of the control socket. `headers`: who asks. */
export type Daemon = {
  url: string
  headers: Readonly<Record<string, string>>
  /** Of a daemon on this machine: why it does not answer. `code`: of the failed connection. */
  whyAbsent?: (code: string | null) => Promise<{ why: string; act: string }>
}

export type DaemonRequest = {
  daemon: Daemon
  path: string
  method: 'GET' | 'POST'
  stop: AbortSignal
  /** Infinity where the work may take any time. */
  timeoutMs?: number
  body?: string
  bodyType?: string
}

/** The JSON of the answer. Rejects with the error of the daemon, or with DAEMON_UNREACHABLE. */
export async function requestDaemon(request: DaemonRequest): Promise<unknown> {
  let status: number
  let answer: unknown
  const { timeoutMs = defaultTimeoutMs } = request
  const limit = limitOf(request, timeoutMs)
  let isConnected = false
  try {
    const response = await send(request, limit.signal, () => (isConnected = true))
    status = response.statusCode ?? 0
    answer = JSON.parse(await textOf(response))
  } catch (error) {
    if (limit.signal.aborted && !request.stop.aborted)
      throw daemonSilent(request.daemon.url, { timeoutMs: limit.ms, isConnected }, error)
    throw await absent(request.daemon, error)
  } finally {
    limit.end()
  }
  if (status === 200) return answer
  throw errorIn(request.daemon.url, status, answer)
}

/** Whether the daemon that is meant answers there, or why not. One that is too busy to answer does. */
export async function presenceAt(
  daemon: Daemon,
  stop: AbortSignal,
): Promise<{ answers: true } | { answers: false; code: string | null }> {
  try {
    const response = await send(
      { daemon, path: '/healthz', method: 'GET', stop },
      AbortSignal.timeout(presenceMs),
    )
    response.resume()
    return response.statusCode === 200 ? { answers: true } : { answers: false, code: null }
  } catch (error) {
    stop.throwIfAborted()
    return isTimeout(error) ? { answers: true } : { answers: false, code: codeOf(error) ?? null }
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

type Limit = { signal: AbortSignal; ms: number; end: () => void }

/** Work without a limit of time also ends where the daemon does not even say that it lives. */
function limitOf({ daemon, stop }: DaemonRequest, timeoutMs: number): Limit {
  if (Number.isFinite(timeoutMs))
    return { signal: AbortSignal.timeout(timeoutMs), ms: timeoutMs, end: () => undefined }
  const silent = new AbortController()
  let isOver = false
  let timer = setTimeout(ask, quietMs)
  return {
    signal: silent.signal,
    ms: silentMs,
    end: () => {
      isOver = true
      clearTimeout(timer)
    },
  }

  function ask(): void {
    const question = { daemon, path: '/healthz', method: 'GET', stop } as const
    send(question, AbortSignal.timeout(silentMs)).then(
      (response) => {
        response.resume()
        if (!isOver) timer = setTimeout(ask, quietMs)
      },
      (error: unknown) => {
        if (isTimeout(error)) silent.abort()
        else if (!isOver) timer = setTimeout(ask, quietMs)
      },
    )
  }
}

/** Of an answer whose end may take any time. */
async function headOf(request: DaemonRequest): Promise<IncomingMessage> {
  const limit = limitOf(request, Infinity)
  try {
    return await send(request, limit.signal, () => undefined)
  } catch (error) {
    if (!limit.signal.aborted || request.stop.aborted) throw error
    throw daemonSilent(request.daemon.url, { timeoutMs: limit.ms, isConnected: true }, error)
  } finally {
    limit.end()
  }
}

/** Lines of NDJSON as the daemon sends them, without their ends. Rejects as requestDaemon does. */
export async function* requestDaemonLines(request: DaemonRequest): AsyncGenerator<string> {
  const { url } = request.daemon
  try {
    const response = await headOf(request)
    const { statusCode: status = 0 } = response
    if (status !== 200) throw errorIn(url, status, JSON.parse(await textOf(response)))
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > lineLengthMax) throw new Error('a line of the answer is too long')
      yield* lines
    }
    if (rest !== '') throw new Error('the answer ends in the middle of a line')
  } catch (error) {
    throw error instanceof GatewayError ? error : await absent(request.daemon, error)
  }
}

/** Where no connection was made, with what this machine knows about the daemon. */
async function absent({ url, whyAbsent }: Daemon, error: unknown): Promise<GatewayError> {
  const code = codeOf(error) ?? null
  const noted = daemonUnreachable(url, whyOf(error), error)
  if (whyAbsent === undefined || !/^(ECONNREFUSED|ENOENT|EACCES)$/.test(code ?? '')) return noted
  const { what, why } = noted
  const found = await whyAbsent(code)
  return new GatewayError('DAEMON_UNREACHABLE', {
    what,
    why: `${why} ${found.why}`,
    act: found.act,
    cause: error,
  })
}

export function daemonUnreachable(url: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon does not answer at ${placeOf(url)}.`,
    why: `${why}.`,
    act:
      'Check `systemctl status telemetry-gateway`. Give --config with the config of the daemon, or --socket ' +
      'with the path of its control socket, which only its user, its group and root may open.',
    cause,
  })
}

function daemonSilent(
  url: string,
  { timeoutMs, isConnected }: { timeoutMs: number; isConnected: boolean },
  cause: unknown,
): GatewayError {
  const time = formatDuration(timeoutMs)
  if (!isConnected) return daemonUnreachable(url, `No connection was accepted within ${time}`, cause)
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon at ${placeOf(url)} accepts the connection and gives no answer within ${time}.`,
    why: 'Its process is stopped, or its event loop is busy.',
    act:
      'Check `systemctl status telemetry-gateway` and the load of the machine. The watchdog of the unit restarts a ' +
      'daemon that hangs (WatchdogSec). A change that was requested may still be made.',
    cause,
  })
}

function placeOf(url: string): string {
  return url.startsWith('unix:') ? `the socket ${url.slice('unix:'.length)}` : shownUrl(url)
}

/** Resolves with the head of the answer; its body is still to be read. */
function send(
  { daemon: { url, headers }, path, method, stop, body, bodyType }: DaemonRequest,
  timeout: AbortSignal,
  onConnect: () => void = () => undefined,
): Promise<IncomingMessage> {
  const signal = AbortSignal.any([stop, timeout])
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const type = bodyType === undefined ? {} : { 'content-type': bodyType }
  const options = { method, signal, agent: false, headers: { ...headers, ...length, ...type } } as const
  return new Promise((resolve, reject) => {
    const isSocket = url.startsWith('unix:')
    const target = new URL(`${isSocket ? 'http://localhost' : url}${path}`)
    const place = isSocket ? { socketPath: url.slice('unix:'.length) } : {}
    const request = target.protocol === 'https:' ? requestHttps : requestHttp
    const sent = request(target, { ...options, ...place }, (response) => {
      // What is printed for people has the zone of the gateway.
      const zone = response.headers['gateway-time-zone']
      if (typeof zone === 'string' && isTimeZone(zone)) useTimeZone(zone)
      resolve(response)
    })
    sent.on('error', reject)
    sent.on('socket', (socket) => socket.once('connect', onConnect))
    sent.end(body)
  })
}

async function textOf(response: IncomingMessage): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response as AsyncIterable<Buffer>) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > answerLengthMax) throw new Error('the answer is too long')
  }
  return text + decoder.decode()
}

function whyOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'What answers there does not send JSON'
  switch (codeOf(error)) {
    case 'ECONNREFUSED':
      return 'Nothing listens at this address'
    case 'ENOENT':
      return 'There is no such socket'
    case 'EACCES':
      return 'You may not open it'
    case undefined:
    default:
      return messageOf(error)
  }
}

function errorIn(url: string, status: number, answer: unknown): GatewayError {
  const { code, what, why, act } = Object(answer) as Record<string, unknown>
  if (typeof what !== 'string' || typeof why !== 'string' || typeof act !== 'string')
    return daemonUnreachable(url, `It answered with HTTP status ${status}`)
  return new GatewayError(codeIn(code) ?? (status === 400 ? 'USAGE' : 'DAEMON_REFUSED'), { what, why, act })
}

function codeIn(code: unknown): ErrorCode | null {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : null
}
