// daemon-client.ts: asks the running daemon over HTTP, or has it do something; its faults come back as if they were our own.

import { errorCodes, GatewayError, messageOf, type ErrorCode } from '../std/gateway-error.ts'

/** Far above any answer that has a bound; more is not ours. */
const answerBytesMax = 64 * 1024 * 1024
const answerMs = 30_000

export type DaemonRequest = {
  url: string
  path: string
  method: 'GET' | 'POST'
  stop: AbortSignal
  /** It may take as long as the work takes. */
  untimed?: boolean
  body?: string
}

/** The JSON of the answer. Rejects with the daemon's fault, or DAEMON_UNREACHABLE. */
export async function requestDaemon({
  url,
  path,
  method,
  stop,
  untimed: patient = false,
  body: sent,
}: DaemonRequest): Promise<unknown> {
  const signal = patient ? stop : AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
  let status: number
  let body: unknown
  try {
    const fetchNow = patient ? await patientFetch() : fetch
    const response: Answer = await fetchNow(`${url}${path}`, {
      method,
      signal,
      redirect: 'error',
      ...(sent === undefined ? {} : { body: sent }),
    })
    status = response.status
    body = JSON.parse(await boundedText(response, answerBytesMax))
  } catch (error) {
    const why = error instanceof SyntaxError ? 'what answers there sends no JSON' : messageOf(error)
    throw unreachable(url, why, error)
  }
  if (status === 200) return body
  throw faultIn(url, status, body)
}

/** Lines of NDJSON, while the daemon sends them; rejects as askDaemon does. */
export async function* requestDaemonLines({
  url,
  path,
  stop,
}: Pick<DaemonRequest, 'url' | 'path' | 'stop'>): AsyncGenerator<string> {
  let rest = ''
  try {
    const fetchNow = await patientFetch()
    const response: Answer = await fetchNow(`${url}${path}`, {
      method: 'POST',
      signal: stop,
      redirect: 'error',
    })
    if (response.status !== 200)
      throw faultIn(url, response.status, JSON.parse(await boundedText(response, answerBytesMax)))
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) yield `${line}\n`
    }
    if (rest !== '') throw new Error('its answer ends in the middle of a line')
  } catch (error) {
    throw error instanceof GatewayError ? error : unreachable(url, messageOf(error), error)
  }
}

function faultIn(url: string, status: number, body: unknown): GatewayError {
  const { code, what, why, act } = Object(body) as Record<string, unknown>
  if (typeof what !== 'string' || typeof why !== 'string' || typeof act !== 'string')
    return unreachable(url, `it answered with HTTP status ${status}`, undefined)
  return new GatewayError(codeIn(code) ?? (status === 400 ? 'USAGE' : 'DAEMON_REFUSED'), { what, why, act })
}

function codeIn(code: unknown): ErrorCode | null {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : null
}

type Answer = { status: number; body: AsyncIterable<Uint8Array> | null }

type Fetch = (
  url: string,
  init: { method: string; signal: AbortSignal; redirect: 'error'; body?: string },
) => Promise<Answer>

/** Node's own one gives up when an answer takes five minutes. */
async function patientFetch(): Promise<Fetch> {
  const { Agent, fetch } = await import('undici')
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  return (url, init) => fetch(url, { ...init, dispatcher })
}

/** Rejects where the answer is longer. */
export async function boundedText(response: Pick<Answer, 'body'>, lengthMax: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  if (!response.body) return text
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > lengthMax) throw new Error('its answer has no end')
  }
  return text + decoder.decode()
}

function unreachable(url: string, why: string, cause: unknown): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon does not answer at ${url}.`,
    why: `${why}. It must run for this: no other process may open its spool.`,
    act: 'Check `systemctl status telemetry-gateway`; where ops.listen is not the default, give --config or --url.',
    cause,
  })
}
