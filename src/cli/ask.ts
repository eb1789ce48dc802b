// ask.ts: asks the running daemon over HTTP, or has it do something; its faults come back as if they were our own.

import { faultCodes, GatewayError, messageOf, type FaultCode } from '../std/fault.ts'

/** Far above any answer that has a bound; more is not ours. */
const answerBytesMax = 64 * 1024 * 1024
const answerMs = 30_000

export type Asked = {
  url: string
  path: string
  method: 'GET' | 'POST'
  stop: AbortSignal
  /** It may take as long as the work takes. */
  patient?: boolean
}

/** The JSON of the answer. Rejects with the daemon's fault, or DAEMON_UNREACHABLE. */
export async function askDaemon({ url, path, method, stop, patient = false }: Asked): Promise<unknown> {
  const signal = patient ? stop : AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
  let status: number
  let body: unknown
  try {
    const response = await fetch(`${url}${path}`, { method, signal, redirect: 'error' })
    status = response.status
    body = JSON.parse(await boundedText(response))
  } catch (error) {
    const why = error instanceof SyntaxError ? 'what answers there sends no JSON' : messageOf(error)
    throw unreachable(url, why, error)
  }
  if (status === 200) return body
  const { code, what, why, act } = Object(body) as Record<string, unknown>
  if (typeof what !== 'string' || typeof why !== 'string' || typeof act !== 'string')
    throw unreachable(url, `it answered with HTTP status ${status}`, undefined)
  throw new GatewayError(codeIn(code) ?? (status === 400 ? 'USAGE' : 'DAEMON_REFUSED'), { what, why, act })
}

function codeIn(code: unknown): FaultCode | null {
  return typeof code === 'string' && Object.hasOwn(faultCodes, code) ? (code as FaultCode) : null
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  if (!response.body) return text
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > answerBytesMax) throw new Error('its answer has no end')
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
