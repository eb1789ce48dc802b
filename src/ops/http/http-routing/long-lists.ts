// long-lists.ts: the JSON of an answer with long lists. Made at once, that of a thousand devices holds the
// loop for many milliseconds, and ten of them at the same moment for ten times as long. So a list is written
// in slices, and between two slices the request waits for its turn.

import type { RouteAnswer } from './route.ts'

/** Of a list; 100 devices take half a millisecond. */
const sliceLength = 100

export const jsonType = 'application/json; charset=utf-8'

/** The answer as its text, where it has a long list; else the answer. */
export async function withoutLongLists(
  answered: RouteAnswer,
  turn: () => Promise<void>,
): Promise<RouteAnswer> {
  if (typeof answered === 'string' || !('value' in answered) || answered.isProblem === true) return answered
  const { status, value, headers } = answered
  if (typeof value !== 'object' || value === null || !Object.values(value).some(isLong)) return answered
  const body = `${await jsonInSlices(value, turn)}\n`
  return { status, contentType: jsonType, body, ...(headers && { headers }) }
}

/** As JSON.stringify of an object. */
export async function jsonInSlices(value: object, turn: () => Promise<void>): Promise<string> {
  const members: string[] = []
  for (const [name, one] of Object.entries(value)) {
    if (one === undefined) continue
    const text = isLong(one) ? await listInSlices(one, turn) : JSON.stringify(one)
    members.push(`${JSON.stringify(name)}:${text}`)
  }
  return `{${members.join(',')}}`
}

function isLong(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > sliceLength
}

async function listInSlices(list: readonly unknown[], turn: () => Promise<void>): Promise<string> {
  const slices: string[] = []
  for (let from = 0; from < list.length; from += sliceLength) {
    await turn()
    slices.push(JSON.stringify(list.slice(from, from + sliceLength)).slice(1, -1))
  }
  return `[${slices.join(',')}]`
}
