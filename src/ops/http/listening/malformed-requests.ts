// malformed-requests.ts: answers what is not HTTP, has too large a head, or is too slow, with the problem
// body of every other refusal. There may be no request object, so the answer goes to the socket directly.
// Where an answer has begun, the connection is only closed.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../../std/node-http.ts'
import { codeOf, messageOf } from '../../../std/gateway-error.ts'
import { problem, problemBody, safetyHeaders, type JsonAnswer } from '../json-answer.ts'

export function answerMalformedRequests(server: Server): void {
  const last = new WeakMap<Socket, ServerResponse>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    last.set(socket, response)
    response.once('finish', () => last.delete(socket))
  })
  server.on('clientError', (error, duplex) => {
    const socket = duplex as Socket
    if (codeOf(error) === 'ECONNRESET' || !socket.writable || last.get(socket)?.headersSent) {
      socket.destroy()
      return
    }
    socket.end(textOf(answerTo(error)))
    // The rest of what it sends is of no use, and it may never end it.
    socket.destroySoon()
  })
}

function answerTo(error: Error): JsonAnswer {
  switch (codeOf(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return problem(431, 'HEAD_TOO_LARGE', {
        what: 'The head of the request is too large.',
        why: 'Path and headers have more than 8 KiB.',
        act: 'Send fewer or shorter headers.',
      })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problem(408, 'REQUEST_TOO_SLOW', {
        what: 'The request did not arrive in time.',
        why: 'Its head must arrive within 5 s.',
        act: 'Send it again.',
      })
    case undefined:
    default:
      return problem(400, 'REQUEST_MALFORMED', {
        what: 'The request is not HTTP.',
        why: `${messageOf(error)}.`,
        act: 'Send a request of HTTP/1.1.',
      })
  }
}

function textOf(answer: JsonAnswer): string {
  const body = `${JSON.stringify(problemBody(answer, ''))}\n`
  const headers: Record<string, string | number> = {
    ...safetyHeaders,
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body}`
}
