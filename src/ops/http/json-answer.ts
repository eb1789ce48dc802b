// json-answer.ts: the answer to a request: a value as JSON, or a problem in three sentences.

import type { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'

export type JsonAnswer = { status: number; value: unknown; headers?: Readonly<Record<string, string>> }

type Problem = { what: string; why: string; act: string }

export function ok(value: unknown): JsonAnswer {
  return { status: 200, value }
}

export function problem(status: number, { what, why, act }: Problem): JsonAnswer {
  return { status, value: { what, why, act } }
}

/** The request cannot be understood: wrong parameters, or none where they are needed. */
export function badRequest(why: string, act: string): JsonAnswer {
  return problem(400, { what: 'The request is not valid.', why, act })
}

export function notFound(path: string, why: string): JsonAnswer {
  const what = `There is nothing at ${quote(path, 100)}.`
  return problem(404, { what, why, act: 'Request / for the list of paths.' })
}

export function notYet(what: string): JsonAnswer {
  return problem(503, { what, why: 'The daemon is starting.', act: 'Try again.' })
}

export function faultAnswer(status: number, { code, what, why, act }: GatewayError): JsonAnswer {
  return { status, value: { code, what, why, act } }
}

/** No page may embed an answer, run it as a script, or read it from another site. */
export const safetyHeaders = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const
