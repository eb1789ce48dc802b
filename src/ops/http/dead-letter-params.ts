// dead-letter-params.ts: a selection of dead letters as parameters of a request, for both sides:
// `reason=Validation&device=truck-7&since=2026-11-21T14:03:20Z`.

import { isoTime } from '../../std/clock.ts'
import type { DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import { choice, text, texts, time } from './http-routing/parameters.ts'

export const deadLetterParameters = {
  id: texts('Only this one. May be given more than once.'),
  stage: choice('Where it was given up.', ['mapping', 'delivery']),
  reason: text('Only this reason.'),
  device: text('Only of this device.'),
  source: text('Only of this source.'),
  provider: text('Only of this provider.'),
  since: time('From this time on.'),
  until: time('Before this time.'),
}

type Values = {
  id: readonly string[]
  [name: string]: unknown
}

/** Of parameters that were validated. */
export function deadLetterQueryOf({ id, ...values }: Values): DeadLetterQuery {
  const query: Record<string, unknown> = id.length > 0 ? { ids: id } : {}
  for (const name of ['stage', 'reason', 'device', 'source', 'provider', 'since', 'until'])
    if (values[name] !== undefined) query[name] = values[name]
  return query
}

export function toDeadLetterParams({ ids = [], since, until, ...query }: DeadLetterQuery): URLSearchParams {
  const params = new URLSearchParams()
  for (const id of ids) params.append('id', id)
  for (const [key, value] of Object.entries(query)) params.set(key, value)
  if (since !== undefined) params.set('since', isoTime(since))
  if (until !== undefined) params.set('until', isoTime(until))
  return params
}
