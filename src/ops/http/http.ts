// http.ts: the daemon over HTTP, for people, probes and Prometheus. What can be changed stands in control.ts: POST, and
// from this machine alone; all else is GET and HEAD.
//
//   /         says what there is
//   /healthz  200 while the event loop turns. A full disk or a refusing service is no reason to be restarted, so
//             it never says 503; who wants to know about those asks /readyz, /status or the conditions
//   /readyz   200 from ready until stopping, else 503 with the reason
//   /status   status.ts as JSON
//   /metrics  Prometheus text
//   /tap      messages as they come, raw and mapped, a line of JSON each, until the reader goes: tap-stream.ts
//   /devices, /devices/{key}, /dead-letters, /ledger, /quarantine    device-views.ts
//   /control/...    control.ts
//
// It listens on loopback unless told otherwise and asks for no password; so it says nothing secret. Headers,
// bodies, connections and times are bounded: a port scanner must not cost the daemon anything.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { opsUrl, type HostPort } from '../config.ts'
import { takesBody } from './control-dead-letters.ts'
import { answerControl, isControl } from './control.ts'
import type { StageViews } from '../types.ts'
import { tapContentType } from './tap-stream.ts'
import { viewAt } from './device-views.ts'

const limits = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
} as const
/** Beyond this a connection is closed at once. */
const connectionsMax = 64
/** A reader that does not read for so long is cut. */
const idleMs = 10_000

export type HttpSource = {
  status(): unknown
  /** Null where ready. */
  notReady(): string | null
  metrics(): Promise<{ contentType: string; text: string }>
  stages: StageViews
  /** Answers by itself, for as long as the reader stays; or says why not. */
  tap(query: URLSearchParams, response: ServerResponse): Problem | null
}

export type Problem = { status: number; what: string; why: string; act: string }

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
      act: `See which one with \`ss -ltnp 'sport = :${port}'\`, or set ops.listen to another port.`,
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
  const { status, contentType, body } = answered
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
): Promise<Answer | 'streams'> {
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2)
  const changes = request.method === 'POST' && isControl(path)
  if (request.method !== 'GET' && request.method !== 'HEAD' && !changes) {
    return problem(405, {
      what: `${request.method ?? 'This method'} is not allowed on ${quote(path, 100)}.`,
      why: 'The daemon answers questions over HTTP; only below /control something can be changed, with POST.',
      act: 'Use GET or HEAD.',
    })
  }
  if (hasBody(request) && !(changes && takesBody(path))) {
    return problem(413, {
      what: 'The request has a body.',
      why: 'No path here takes one.',
      act: 'Send the request without a body.',
    })
  }
  if (changes) {
    const asked = { path, query: new URLSearchParams(query) }
    const answered = await answerControl(source.stages, asked, request, response)
    if ('value' in answered) return json(answered.status, answered.value)
    await sendLines(answered.lines, response)
    return 'streams'
  }
  switch (path) {
    case '/':
      return text(
        200,
        'telemetry gateway\n\n/status\n/healthz\n/readyz\n/metrics\n/devices\n/dead-letters\n/ledger\n/quarantine\n/tap\n',
      )
    case '/healthz':
      return text(200, 'ok\n')
    case '/readyz': {
      const reason = source.notReady()
      return json(reason === null ? 200 : 503, { ready: reason === null, reason })
    }
    case '/status':
      return json(200, source.status())
    case '/metrics': {
      const { contentType, text: body } = await source.metrics()
      return { status: 200, contentType, body }
    }
    case '/tap': {
      if (request.method === 'HEAD') return { status: 200, contentType: tapContentType, body: '' }
      const refused = source.tap(new URLSearchParams(query), response)
      if (refused === null) return 'streams'
      const { status, ...words } = refused
      return problem(status, words)
    }
    default:
      return viewOrNothing(source, path, new URLSearchParams(query), response)
  }
}

/** As fast as the reader reads; who goes away ends it. */
async function sendLines(lines: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  response.writeHead(200, {
    'content-type': 'application/x-ndjson; charset=utf-8',
    'cache-control': 'no-store',
  })
  try {
    await pipeline(Readable.from(lines), response)
  } catch {
    // The reader is gone, or the spool: an answer without its end says so.
    response.destroy()
  }
}

async function viewOrNothing(
  { stages }: HttpSource,
  path: string,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<Answer> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const view = await viewAt(path, query, stages, gone.signal)
  if (view?.kind === 'view') return json(200, view.value)
  if (view?.kind === 'refused') {
    const { status, what, why, act } = view
    return problem(status, { what, why, act })
  }
  return problem(404, {
    what: `There is nothing at ${quote(path, 100)}.`,
    why: view?.why ?? 'The path is unknown.',
    act: 'Ask / for the paths there are.',
  })
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** A stage that throws while it is being closed must not take the server with it. */
function failed(thrown: unknown): Answer {
  return problem(500, {
    what: 'The answer could not be made.',
    why: messageOf(thrown),
    act: 'Ask again; if it stays, report it with this text.',
  })
}

function problem(status: number, body: { what: string; why: string; act: string }): Answer {
  return json(status, body)
}

function json(status: number, value: unknown): Answer {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` }
}

function text(status: number, body: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}
