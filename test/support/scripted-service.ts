// scripted-service.ts: an ingestion service that answers by a script, over real sockets. It verifies nothing (the sandbox
// does) and keeps all requests.

import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export type Received = {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Buffer
  batchId: string
  payloadIds: readonly string[]
  /** By the operation for one payload (ingestion-api.md 4.1); it has no batchId. */
  single: boolean
}

export type Reply =
  | { status: number; body?: unknown; headers?: Record<string, string>; truncated?: boolean }
  /** Uses the connection itself. */
  | { raw: (socket: Socket) => void }
  /** Never answers. */
  | 'hang'
  | 'reset'
  /** As if nothing listened; only without sockets. */
  | 'no connection'
  /** Without an answer, by an error with this code, after this time; only without sockets. */
  | { fails: string; afterMs: number }

export type Script = (received: Received, index: number) => Reply

export type ScriptedService = {
  url: string
  received: Received[]
  answer(script: Script): void
  /** Requests without an answer yet, and the most at once. */
  open(): number
  mostOpen(): number
  /** Open requests that only the clock can end; 0 with real sockets. */
  hanging(): number
  close(): Promise<void>
}

/** The answer of a service that accepts everything. */
export function acceptAll({ payloadIds, single }: Received): Reply {
  if (single) return { status: 202, body: { requestId: 'request-1' } }
  return breakdown({ accepted: payloadIds, failed: [] })
}

export function breakdown(lists: {
  accepted: readonly string[]
  failed: readonly { payloadId: string; errorType?: string; errorMessage?: string }[]
}): Reply {
  const accepted = lists.accepted.length
  const failed = lists.failed.length
  const summary = { total: accepted + failed, accepted, failed }
  return { status: 200, body: { requestId: 'request-1', responseCode: 200, ...lists, summary } }
}

/** Every payload of the batch failed with `errorType`. */
export function failAll(errorType: string): Script {
  return ({ payloadIds }) =>
    breakdown({
      accepted: [],
      failed: payloadIds.map((payloadId) => ({ payloadId, errorType, errorMessage: `no: ${errorType}` })),
    })
}

/** What a service that remembers the batchIds that it answered 200 does with one that it knows. */
export const repeatModes = ['same', 'conflict', 'fresh'] as const

/** A service that remembers batchIds: it answers `same` again or 409 (`conflict`), or processes them (`fresh`). */
export function remembering(mode: (typeof repeatModes)[number], script: Script): Script {
  const answers = new Map<string, Reply>()
  return (one, index) => {
    const known = mode === 'fresh' ? undefined : answers.get(one.batchId)
    if (known !== undefined)
      return mode === 'same' ? known : { status: 409, body: { requestId: 'request-2', message: 'known' } }
    const reply = script(one, index)
    if (!one.single && typeof reply === 'object' && 'status' in reply && reply.status === 200)
      answers.set(one.batchId, reply)
    return reply
  }
}

export async function startScriptedService(first: Script = acceptAll): Promise<ScriptedService> {
  let script = first
  let open = 0
  let mostOpen = 0
  const received: Received[] = []
  const server = createServer((request, response) => {
    open += 1
    mostOpen = Math.max(mostOpen, open)
    response.once('close', () => {
      open -= 1
    })
    const parts: Buffer[] = []
    request.on('error', () => undefined)
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = receivedOf({ method, path: url, headers, body: Buffer.concat(parts) })
      received.push(one)
      reply(script(one, received.length - 1), request, response)
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answer(next) {
      script = next
    },
    open: () => open,
    mostOpen: () => mostOpen,
    hanging: () => 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Body = { payloadId: string } | { batchId: string; data: { payloadId: string }[] }

export function receivedOf(request: Pick<Received, 'method' | 'path' | 'headers' | 'body'>): Received {
  const parsed = JSON.parse(request.body.toString('utf8')) as Body
  const single = !('data' in parsed)
  const payloadIds = single ? [parsed.payloadId] : parsed.data.map(({ payloadId }) => payloadId)
  return { ...request, batchId: single ? '' : parsed.batchId, payloadIds, single }
}

/** A text or bytes as they are, anything else as JSON. */
export function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
}

function reply(answer: Reply, request: IncomingMessage, response: ServerResponse): void {
  if (answer === 'hang') return
  if (answer === 'no connection' || (typeof answer === 'object' && 'fails' in answer))
    throw new Error('a connection that fails needs the scripted sender')
  if (answer === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  if ('raw' in answer) {
    answer.raw(request.socket)
    return
  }
  const { status, body, headers, truncated = false } = answer
  const bytes = bytesOf(body)
  const length = truncated ? { 'content-length': bytes.length + 100 } : {}
  response.writeHead(status, { 'content-type': 'application/json', ...length, ...headers })
  if (truncated) response.write(bytes, () => request.socket.destroy())
  else response.end(status === 204 ? undefined : bytes)
}
