// daemon-client.ts: requests to the running daemon over HTTP. An error of the daemon is thrown here as if it
// were our own; an answer that is too long or not JSON is DAEMON_UNREACHABLE.

import { codeOf, errorCodes, GatewayError, messageOf, type ErrorCode } from '../../std/gateway-error.ts'

/** Far above any bounded answer of the daemon. */
const answerLengthMax = 64 * 1024 * 1024
/** A line has one message of at most 64 KiB and its payloads, or one dead letter. */
const lineLengthMax = 16 * 1024 * 1024
const defaultTimeoutMs = 30_000

export type DaemonRequest = {
  url: string
  path: string
  method: 'GET' | 'POST'
  stop: AbortSignal
  /** Infinity where the work may take any time. */
  timeoutMs?: number
  body?: string
}

/** The JSON of the answer. Rejects with the error of the daemon, or with DAEMON_UNREACHABLE. */
export async function requestDaemon(request: DaemonRequest): Promise<unknown> {
  let status: number
  let answer: unknown
  try {
    const response = await send(request)
    status = response.status
    answer = JSON.parse(await textOf(response))
  } catch (error) {
    throw daemonUnreachable(request.url, whyOf(error), error)
  }
  if (status === 200) return answer
  throw errorIn(request.url, status, answer)
}

/** Lines of NDJSON as the daemon sends them, without their ends. Rejects as requestDaemon does. */
export async function* requestDaemonLines(request: DaemonRequest): AsyncGenerator<string> {
  const { url } = request
  try {
    const response = await send({ timeoutMs: Infinity, ...request })
    if (response.status !== 200) throw errorIn(url, response.status, JSON.parse(await textOf(response)))
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of response.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > lineLengthMax) throw new Error('a line of the answer is too long')
      yield* lines
    }
    if (rest !== '') throw new Error('the answer ends in the middle of a line')
  } catch (error) {
    throw error instanceof GatewayError ? error : daemonUnreachable(url, whyOf(error), error)
  }
}

export function daemonUnreachable(url: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon does not answer at ${url}.`,
    why: `${why}.`,
    act: 'Check `systemctl status telemetry-gateway`. If ops.listen is not 127.0.0.1:8080, give --config or --url.',
    cause,
  })
}

type Response = { status: number; body: AsyncIterable<Uint8Array> | null }

async function send({
  url,
  path,
  method,
  stop,
  timeoutMs = defaultTimeoutMs,
  body,
}: DaemonRequest): Promise<Response> {
  const init = { method, redirect: 'error', ...(body === undefined ? {} : { body }) } as const
  if (Number.isFinite(timeoutMs)) {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
    return fetch(`${url}${path}`, { ...init, signal })
  }
  // The fetch of Node gives up after five minutes without headers or data.
  const { Agent, fetch: fetchUntimed } = await import('undici')
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  return fetchUntimed(`${url}${path}`, { ...init, signal: stop, dispatcher })
}

async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > answerLengthMax) throw new Error('the answer is too long')
  }
  return text + decoder.decode()
}

function whyOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'What answers there does not send JSON'
  return codeOf(error) === 'ECONNREFUSED' ? 'Nothing listens at this address' : messageOf(error)
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
