// sandbox-control.ts: the routes below /sandbox/. They show what the service received and set its faults.
// They need no signature, because they are not part of the service and show only what the client sent.

import { quote } from '../std/quote.ts'
import { jsonAnswer, refusal, type Answer } from './http-server/answers.ts'
import { readFaults, type FaultPlan } from './fault-plan.ts'
import type { ReceivedPayload, ReceivedQuery } from './received-payloads.ts'
import type { SandboxStats } from './sandbox-stats.ts'

export const controlPrefix = '/sandbox/'
export const controlBodyBytesMax = 1024 ** 2

export type ControlSource = {
  stats(): SandboxStats
  received(query: ReceivedQuery): ReceivedPayload[]
  faults: { set(plans: readonly FaultPlan[]): void; show(): readonly (FaultPlan & { used: number })[] }
}

type Question = { requestId: string; method: string; url: URL; body: Buffer }

const defaultLimit = 100

export function answerControl(source: ControlSource, question: Question): Answer {
  const { requestId, method, url } = question
  const allowed = new Map([
    ['/sandbox/stats', ['GET']],
    ['/sandbox/received', ['GET']],
    ['/sandbox/faults', ['GET', 'PUT']],
  ]).get(url.pathname)
  if (!allowed) {
    const message = 'Ask /sandbox/stats, /sandbox/received or /sandbox/faults.'
    return refusal(requestId, { status: 404, reason: 'not_found', message })
  }
  if (!allowed.includes(method)) {
    const message = `${quote(method, 20)} is not allowed on ${url.pathname}.`
    const headers = { allow: allowed.join(', ') }
    return refusal(requestId, { status: 405, reason: 'method_not_allowed', message, headers })
  }
  if (url.pathname === '/sandbox/stats') return shown(source.stats())
  if (url.pathname === '/sandbox/received') return received(source, question)
  return method === 'GET' ? shown(source.faults.show()) : setFaults(source, question)
}

function shown(value: unknown): Answer {
  return jsonAnswer(200, `${JSON.stringify(value)}\n`)
}

function received(source: ControlSource, { requestId, url }: Question): Answer {
  const limit = url.searchParams.get('limit') ?? String(defaultLimit)
  if (!/^\d{1,9}$/.test(limit)) {
    const message = `limit must be a whole number, found ${quote(limit, 40)}.`
    return refusal(requestId, { status: 400, reason: 'limit_invalid', message, details: [] })
  }
  const device = url.searchParams.get('device')
  return shown({
    received: source.received({ limit: Number(limit), ...(device === null ? {} : { device }) }),
  })
}

function setFaults(source: ControlSource, { requestId, body }: Question): Answer {
  const refused = (message: string, details: { field: string; message: string }[]) =>
    refusal(requestId, { status: 400, reason: 'faults_invalid', message, details })
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch (error) {
    return refused(
      `The body is not JSON: ${quote(error instanceof Error ? error.message : String(error))}.`,
      [],
    )
  }
  const reading = readFaults(value)
  if (reading.kind === 'problems') {
    const details = reading.problems.map(({ path, message }) => ({ field: path.join('.'), message }))
    return refused('The faults are not valid. Nothing was changed.', details)
  }
  source.faults.set(reading.plans)
  return shown(source.faults.show())
}
