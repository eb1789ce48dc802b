import { STATUS_CODES } from '../../std/node-http.ts'
// json-answer.ts: the answer to a request: a value as JSON, or a problem: what happened, why, what to do, and
// a stable code (RFC 9457, `application/problem+json`).

import type { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'

/** The codes of refused requests, with their meaning. The codes of std/gateway-error.ts occur too. */
export const requestCodes = {
  REQUEST_INVALID: 'A parameter is unknown, missing, given twice, or its value is not allowed.',
  PATH_UNKNOWN: 'There is no such path.',
  METHOD_NOT_ALLOWED: 'The path does not know this method.',
  NOT_FOUND: 'What the request names is not known, or is gone.',
  SWITCHED_OFF: 'The config switches this part off.',
  STARTING: 'The gateway is starting, or it cannot open its spool.',
  UNAVAILABLE: 'This part of the gateway cannot answer now.',
  BODY_NOT_ALLOWED: 'The path takes no body.',
  BODY_TOO_LARGE: 'The body is too large.',
  ORIGIN_REFUSED: 'The request comes from another site, or names another host.',
  LOGIN_REQUIRED: 'The request needs a user and a password.',
  LOGIN_BUSY: 'Too many passwords are being checked.',
  LOGIN_LIMITED: 'Too many wrong passwords came from this address.',
  TOKEN_MISSING: 'A change by a browser has no valid token of the login.',
  RIGHT_MISSING: 'The user may not do this.',
  NO_USERS: 'The config has no users, so nothing can be changed over TCP.',
  OTHER_GATEWAY: 'The request is for another gateway.',
  REQUEST_MALFORMED: 'The request is not HTTP.',
  HEAD_TOO_LARGE: 'Path and headers of the request are too large.',
  REQUEST_TOO_SLOW: 'The head of the request did not arrive in time.',
  REQUEST_FAILED: 'The gateway has a fault.',
} as const

export type RequestCode = keyof typeof requestCodes

export type JsonAnswer = {
  status: number
  value: unknown
  headers?: Readonly<Record<string, string>>
  /** `value` has `what`, `why` and `act`. */
  isProblem?: boolean
}

export type TextAnswer = {
  status: number
  contentType: string
  body: string
  headers?: Readonly<Record<string, string>>
}

/** Of one parameter. */
export type ParameterProblem = { parameter: string; found: string | null; allowed?: readonly string[] }

type Problem = { what: string; why: string; act: string } & Partial<ParameterProblem> & {
    problems?: readonly (ParameterProblem & { why: string })[]
    nearest?: readonly string[]
  }

export function ok(value: unknown): JsonAnswer {
  return { status: 200, value }
}

export function problem(status: number, code: RequestCode, problem: Problem): JsonAnswer {
  const { what, why, act, ...members } = problem
  return { status, value: { code, what, why, act, ...members }, isProblem: true }
}

/** The request cannot be understood: wrong parameters, or none where they are needed. */
export function badRequest(why: string, act: string): JsonAnswer {
  return problem(400, 'REQUEST_INVALID', { what: 'The request is not valid.', why, act })
}

/** A value of one parameter is wrong, which only the stages know. */
export function badParameter(why: string, of: ParameterProblem): JsonAnswer {
  const act = 'Correct the parameter.'
  return problem(400, 'REQUEST_INVALID', { what: 'The request is not valid.', why, act, ...of })
}

export function notFound(what: string, why: string, act: string): JsonAnswer {
  return problem(404, 'NOT_FOUND', { what, why, act })
}

export function starting(what = 'There is nothing to show yet.'): JsonAnswer {
  const why = 'The daemon is starting, or its spool is not open.'
  return problem(503, 'STARTING', {
    what,
    why,
    act: 'Try again. `/readyz` and `status` say what it waits for.',
  })
}

export function faultAnswer(status: number, { code, what, why, act }: GatewayError): JsonAnswer {
  return { status, value: { code, what, why, act }, isProblem: true }
}

/** The members of RFC 9457, then ours. `instance`: the path of the request. */
export function problemBody({ status, value }: JsonAnswer, instance: string): Record<string, unknown> {
  const { code, what, why, ...others } = value as { code: string; what: string; why: string }
  return {
    type: `urn:telemetry-gateway:problem:${code}`,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: `${what} ${why}`,
    instance,
    code,
    what,
    why,
    ...others,
  }
}

export function unknownPath(path: string, nearest: readonly string[]): JsonAnswer {
  const names = nearest.map((one) => quote(one, 100)).join(' or ')
  return problem(404, 'PATH_UNKNOWN', {
    what: `There is nothing at ${quote(path, 100)}.`,
    why: 'The path is unknown.',
    act: `${names === '' ? '' : `Did you mean ${names}? `}Request / for the list of paths.`,
    nearest,
  })
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
