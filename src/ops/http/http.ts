// http.ts: the daemon over HTTP, for people, probes and Prometheus.
//
//   /         the list of paths
//   /healthz  200 while the event loop turns. It is never 503: a full disk or a refusing service is no reason
//             for a restart. /readyz, /status and the conditions show those
//   /readyz   200 from ready until stopping, else 503 with the reason
//   /status   status.ts as JSON
//   /metrics  Prometheus text
//   /tap      messages as they come, raw and mapped, as NDJSON, while the client reads: tap-stream.ts
//   /devices, /devices/{key}, /dead-letters, /ledger, /quarantine, /batches    read-routes.ts
//   /control/...    changes: POST, from this machine only: control-routes.ts
//
// All else is GET and HEAD. The server listens on loopback by default and asks for no password, so it shows
// nothing secret. Headers, bodies, connections and times are bounded: a port scanner must not cost the daemon
// anything.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { opsUrl, type HostPort } from '../config.ts'
import { takesBody } from './control-dead-letters.ts'
import { answerControl, isControl } from './control-routes.ts'
import { ok, problem, type JsonAnswer } from './json-answer.ts'
import { answerRead } from './read-routes.ts'
import { tapContentType } from './tap-stream.ts'
import type { StageViews } from '../types.ts'

const limits = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
} as const
/** Beyond this a connection is closed at once. */
const connectionsMax = 64
/** A connection that does not read for this long is closed. */
const idleMs = 10_000

export type HttpSource = {
  status(): unknown
  /** Null where ready. */
  notReady(): string | null
  metrics(): Promise<{ contentType: string; text: string }>
  stages: StageViews
  /** Streams, and gives null; or refuses. */
  tap(query: URLSearchParams, response: ServerResponse): JsonAnswer | null
}

export type HttpServer = {
  /** With the port that the system chose where the config says 0. */
  url: string
  close(): Promise<void>
}

type Answer = { status: number; contentType: string; body: string }

/** Rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
export async function openHttp(source: HttpSource, listen: HostPort): Promise<HttpServer> {
  const server = createServer(limits, (request, response) => {
    // answer() catches everything; a failure to write means that the reader is gone.
    void respond(source, request, response)
  })
  server.maxConnections = connectionsMax
  server.setTimeout(idleMs)
  await opened(server, listen)
  const bound = server.address()
  const port = typeof bound === 'object' && bound ? bound.port : listen.port
  return {
    url: opsUrl({ host: listen.host, port }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function opened(server: Server, { host, port }: HostPort): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(faultOf(error, host, port))
    server.once('error', onError)
    server.listen({ host, port }, () => {
      server.removeListener('error', onError)
      // A listening server reports only failed accepts (no file descriptors left); the client tries again.
      server.on('error', () => undefined)
      resolve()
    })
  })
}

function faultOf(error: Error, host: string, port: number): GatewayError {
  const what = `Cannot listen for HTTP on ${host}:${port} (ops.listen).`
  if (codeOf(error) === 'EADDRINUSE') {
    return new GatewayError('ADDRESS_IN_USE', {
      what,
      why: 'Another process listens there, perhaps another gateway.',
      act: `Find it with \`ss -ltnp 'sport = :${port}'\`, or set ops.listen to another port.`,
      cause: error,
    })
  }
  return new GatewayError('ADDRESS_UNAVAILABLE', {
    what,
    why: messageOf(error),
    act: 'Set ops.listen to an address of this machine and a port above 1023.',
    cause: error,
  })
}

async function respond(
  source: HttpSource,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answered = await answer(source, request, response).catch(failed)
  if (answered === 'streams') return
  const { status, contentType, body } = 'value' in answered ? json(answered) : answered
  const bytes = Buffer.from(body)
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
    // A request with a body is not read to its end, so the connection cannot carry another one.
    ...(hasBody(request) ? { connection: 'close' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

async function answer(
  source: HttpSource,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer | JsonAnswer | 'streams'> {
  const [path = '/', search = ''] = (request.url ?? '/').split('?', 2)
  const query = new URLSearchParams(search)
  const changes = request.method === 'POST' && isControl(path)
  if (request.method !== 'GET' && request.method !== 'HEAD' && !changes) {
    return problem(405, {
      what: `${request.method ?? 'This method'} is not allowed on ${quote(path, 100)}.`,
      why: 'Only the paths below /control change something, with POST.',
      act: 'Use GET or HEAD.',
    })
  }
  if (hasBody(request) && !(changes && takesBody(path))) {
    return problem(413, {
      what: 'The request has a body.',
      why: 'This path takes no body.',
      act: 'Send the request without a body.',
    })
  }
  if (changes) {
    const answered = await answerControl(source.stages, { path, query, request, response })
    if ('value' in answered) return answered
    await sendLines(answered.lines, response)
    return 'streams'
  }
  switch (path) {
    case '/':
      return text(`telemetry gateway\n\n${paths.join('\n')}\n`)
    case '/healthz':
      return text('ok\n')
    case '/readyz': {
      const reason = source.notReady()
      return { status: reason === null ? 200 : 503, value: { ready: reason === null, reason } }
    }
    case '/status':
      return ok(source.status())
    case '/metrics': {
      const { contentType, text: body } = await source.metrics()
      return { status: 200, contentType, body }
    }
    case '/tap':
      if (request.method === 'HEAD') return { status: 200, contentType: tapContentType, body: '' }
      return source.tap(query, response) ?? 'streams'
    default: {
      const closed = new AbortController()
      response.once('close', () => closed.abort())
      return answerRead(source.stages, { path, query, signal: closed.signal })
    }
  }
}

const paths = [
  '/status',
  '/healthz',
  '/readyz',
  '/metrics',
  '/devices',
  '/dead-letters',
  '/ledger',
  '/quarantine',
  '/batches',
  '/tap',
]

/** As fast as the client reads. Closing the connection ends it. */
async function sendLines(lines: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  response.writeHead(200, {
    'content-type': 'application/x-ndjson; charset=utf-8',
    'cache-control': 'no-store',
  })
  try {
    await pipeline(Readable.from(lines), response)
  } catch {
    // The client or the spool is gone: an answer without its end shows it.
    response.destroy()
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** A stage that throws while it is being closed must not stop the server. */
function failed(thrown: unknown): JsonAnswer {
  return problem(500, {
    what: 'The request failed.',
    why: messageOf(thrown),
    act: 'Try again. If it fails again, report it with this text.',
  })
}

function json({ status, value }: JsonAnswer): Answer {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` }
}

function text(body: string): Answer {
  return { status: 200, contentType: 'text/plain; charset=utf-8', body }
}
