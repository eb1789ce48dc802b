// request-refusals.ts: the refusals of requests that reach no route: an unknown path, a wrong method, a body,
// wrong parameters; and the answer where a route fails.

import { distance } from 'fastest-levenshtein'
import { messageOf } from '../../../std/gateway-error.ts'
import { quote } from '../../../std/quote.ts'
import { problem, unknownPath, type JsonAnswer, type ParameterProblem } from '../json-answer.ts'
import { methodsOf, type Route } from './route.ts'

export class ParametersInvalid extends Error {
  readonly problems: readonly (ParameterProblem & { why: string })[]

  constructor(problems: readonly (ParameterProblem & { why: string })[]) {
    super('The parameters are not valid.')
    this.problems = problems
  }
}

/** No route has this path and method. */
export function withoutRoute(
  routes: readonly Route[],
  { method, path }: { method: string; path: string },
): JsonAnswer {
  const known = routes.filter((route) => patternOf(route).test(path))
  if (known.length === 0) return unknownPath(path, nearestPaths(path, routes))
  const allow = [...new Set(known.flatMap(methodsOf))].join(', ')
  const answer = problem(405, 'METHOD_NOT_ALLOWED', {
    what: `${method} is not allowed on ${quote(path, 100)}.`,
    why: 'Paths below /control change something, with POST; the others show something, with GET.',
    act: `Use ${allow.replace(', ', ' or ')}.`,
  })
  return { ...answer, headers: { allow } }
}

const nearestMax = 3

function nearestPaths(path: string, routes: readonly Route[]): readonly string[] {
  if (path.length > 64) return []
  const allowed = Math.max(2, Math.floor(path.length / 4))
  return [...new Set(routes.map((route) => route.path))]
    .map((known) => ({ known, apart: distance(path.toLowerCase(), known) }))
    .filter(({ apart }) => apart <= allowed)
    .sort((a, b) => a.apart - b.apart)
    .slice(0, nearestMax)
    .map(({ known }) => known)
}

function patternOf({ path }: Route): RegExp {
  return new RegExp(`^${path.replaceAll('.', String.raw`\.`).replace('{key}', '[^/]+')}$`)
}

export function failureAnswer(error: unknown): JsonAnswer {
  if (error instanceof ParametersInvalid) return parametersRefused(error.problems)
  const { statusCode } = error as { statusCode?: unknown }
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return problem(statusCode, 'REQUEST_INVALID', {
      what: 'The request is not valid.',
      why: messageOf(error),
      act: 'Correct the request.',
    })
  // A stage that throws while it is being closed must not stop the server.
  return problem(500, 'REQUEST_FAILED', {
    what: 'The request failed.',
    why: messageOf(error),
    act: 'Try again. If it fails again, report it with this text.',
  })
}

export function parametersRefused(problems: readonly (ParameterProblem & { why: string })[]): JsonAnswer {
  const [first] = problems
  return problem(400, 'REQUEST_INVALID', {
    what: 'The request is not valid.',
    why: problems.map(({ why }) => why).join(' '),
    act: 'Correct the parameters. Request / for those of each path.',
    ...(first && { parameter: first.parameter, found: first.found }),
    ...(first?.allowed && { allowed: first.allowed }),
    problems,
  })
}

export const withoutBody = problem(413, 'BODY_NOT_ALLOWED', {
  what: 'The request has a body.',
  why: 'This path takes no body.',
  act: 'Send the request without a body.',
})
