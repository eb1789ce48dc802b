// hostile-answer.ts: what a service, a proxy, a balancer or somebody else's web server can say instead of what the
// specification shows: hostile-bodies.ts, hostile-wires.ts. Each answer is given once (or `times`), then the service is
// well again.

import type { Received, Reply } from './scripted-service.ts'

/**
 * What a payload went through after the answer: `delivered` is never sent again, `again` in the same batch with the same
 * bytes, `cut` in a smaller batch under a new batchId, `retried` after the pause of its errorType.
 */
export type Fate = 'delivered' | 'again' | 'again, again' | 'again, retried' | 'cut' | 'retried'

export type HostileAnswer = {
  name: string
  reply: (received: Received) => Reply
  /** Members that the outcome must have. */
  outcome: Record<string, unknown>
  /** One for all, or one for each of the three payloads. */
  fates: Fate | readonly [Fate, Fate, Fate]
  /** Part of what a person is told of an answer that could be read although it is odd. */
  odd?: RegExp
  times?: number
  provider?: { responseBytesMax?: number; timeoutMs?: number }
}

export type Fields = Record<string, unknown>

export const page = '<!doctype html><html><body>Service\r\nbusy</body></html>'

/** A good answer to this request with something changed. */
export const good =
  (change: (fields: Fields, ids: readonly string[]) => Fields, status = 200) =>
  (received: Received): Reply => {
    const { payloadIds: ids } = received
    const summary = { total: ids.length, accepted: ids.length, failed: 0 }
    const fields: Fields = { requestId: 'request-1', responseCode: 200, accepted: ids, failed: [], summary }
    return { status, body: { ...fields, ...change(fields, ids) } }
  }

export const body = (status: number, text: string | Buffer, headers: Record<string, string> = {}) => {
  return (): Reply => ({ status, body: text, headers })
}

export const answered = { kind: 'answered' }

export const unreadable = { kind: 'unreadable', status: 200 }
