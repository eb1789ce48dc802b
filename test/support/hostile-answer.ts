// hostile-answer.ts: answers that a service, a proxy, a balancer or another web server may give and that the
// specification does not show (hostile-bodies.ts, hostile-wires.ts). Each is given once (or `times`), then
// the service accepts everything.

import type { Received, Reply } from './scripted-service.ts'

/**
 * How a payload is sent after the answer: `delivered` never again, `again` in the same batch with the same
 * bytes, `cut` in a smaller batch under a new batchId, `retried` after the delay of its errorType.
 */
export type Becomes = 'delivered' | 'again' | 'again, again' | 'again, retried' | 'cut' | 'retried'

export type HostileAnswer = {
  name: string
  reply: (received: Received) => Reply
  /** Members that the outcome must have. */
  outcome: Record<string, unknown>
  /** One value for all three payloads, or one for each. */
  becomes: Becomes | readonly [Becomes, Becomes, Becomes]
  /** Part of the reported deviations of an answer that could be read. */
  deviation?: RegExp
  times?: number
  provider?: { responseBytesMax?: number; timeoutMs?: number }
}

export type Fields = Record<string, unknown>

export const page = '<!doctype html><html><body>Service\r\nbusy</body></html>'

/** A valid answer to this request with a change. */
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
