// malformed-request.ts: answers what is not HTTP, has too large a head, or is too slow. There may be no
// request object, so the answer is written to the socket directly.

import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { STATUS_CODES } from '../../std/node-http.ts'
import type { Clock } from '../../std/clock.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { dateAt, refusal } from './answers.ts'
import type { SandboxCounters } from '../sandbox-stats.ts'

export function answerMalformed(
  { newId, counters, clock }: { clock: Clock; newId: () => string; counters: SandboxCounters },
  error: Error,
  socket: Duplex,
  current: ServerResponse | undefined,
): void {
  const code = codeOf(error)
  const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  if (code === 'ECONNRESET' || !socket.writable || current?.headersSent) {
    socket.destroy()
    return
  }
  if (!current) counters.counts.requests += 1
  counters.byStatus.add(status)
  counters.refusedRequests.add('malformed_http')
  const { body } = refusal(newId(), { status, reason: 'malformed_http', message: `${messageOf(error)}.` })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `Date: ${dateAt(clock.now())}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
