// scripted-service.ts: an ingestion service that answers whatever a test tells it to, over real sockets.
// It verifies nothing: the sandbox does that. It remembers what it was sent.

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
  | { status: number; body?: unknown; headers?: Record<string, string> }
  /** Does with the connection what it likes. */
  | { raw: (socket: Socket) => void }
  /** Never answers. */
  | 'hang'
  | 'reset'

export type Script = (received: Received, index: number) => Reply

export type ScriptedService = {
  url: string
  received: Received[]
  answer(script: Script): void
  /** Requests that wait for an answer, and the most that ever did at once. */
  open(): number
  mostOpen(): number
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
      const one = readRequest(request, Buffer.concat(parts))
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Body = { payloadId: string } | { batchId: string; data: { payloadId: string }[] }

function readRequest({ method, url, headers }: IncomingMessage, body: Buffer): Received {
  const parsed = JSON.parse(body.toString('utf8')) as Body
  const single = !('data' in parsed)
  const payloadIds = single ? [parsed.payloadId] : parsed.data.map(({ payloadId }) => payloadId)
  const batchId = single ? '' : parsed.batchId
  return { method: method ?? '', path: url ?? '', headers, body, batchId, payloadIds, single }
}

function reply(answer: Reply, request: IncomingMessage, response: ServerResponse): void {
  if (answer === 'hang') return
  if (answer === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  if ('raw' in answer) {
    answer.raw(request.socket)
    return
  }
  const { status, body, headers } = answer
  const bytes = Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body ?? {})
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(status === 204 ? undefined : bytes)
}
