// dead-letter-params.ts: a selection of dead letters as parameters of a request, for both sides:
// `reason=Validation&device=truck-7&since=1750000000000`.

import { quote } from '../../std/quote.ts'
import type { DeadLetterQuery } from '../../dead-letters/dead-letters.ts'

const texts = ['reason', 'device', 'source', 'provider'] as const
const times = ['since', 'until'] as const

/** The query, or what is wrong with the parameters. Those named in `others` are skipped. */
export function readDeadLetterParams(
  params: URLSearchParams,
  others: readonly string[],
): DeadLetterQuery | string {
  const query: DeadLetterQuery = {}
  const ids = params.getAll('id')
  if (ids.length > 0) query.ids = ids
  for (const [key, value] of params) {
    if (key === 'id' || others.includes(key)) continue
    const text = texts.find((name) => name === key)
    const time = times.find((name) => name === key)
    if (text !== undefined) query[text] = value
    else if (time !== undefined && /^\d{1,15}$/.test(value)) query[time] = Number(value)
    else if (key === 'stage' && (value === 'mapping' || value === 'delivery')) query.stage = value
    else return `Unknown parameter or value: ${quote(key, 40)} with ${quote(value, 60)}.`
  }
  return query
}

export function toDeadLetterParams({ ids = [], ...query }: DeadLetterQuery): URLSearchParams {
  const params = new URLSearchParams()
  for (const id of ids) params.append('id', id)
  for (const [key, value] of Object.entries(query)) params.set(key, String(value))
  return params
}
