// http.ts: the daemon over HTTP, for people, probes and Prometheus.
//
//   /         the list of paths
//   /healthz  200 while the event loop turns. It is never 503: a full disk or a refusing service is no reason
//             for a restart. /readyz, /status and the conditions show those
//   /readyz   503 with the reason while every acknowledgement is held, and while starting or stopping; else
//             200. Never for delivery: a load balancer would take the gateway out when it is needed most
//   /verdict  ../gateway-verdict: 200 for ok and degraded, else 503
//   /status   status.ts as JSON
//   /metrics  Prometheus text
//   /tap      messages as they come, raw and mapped, as NDJSON, while the client reads: tap-stream.ts
//   /devices, /devices/{key}, /dead-letters, /ledger, /quarantine, /batches, /audit    read-routes.ts
//   /control/...    changes: POST, on the control socket or by a user: control-routes.ts
//
// All else is GET and HEAD. There are two servers (listening/): one on TCP, by default on loopback, and the
// control socket for the commands of this machine. request-rights/ decides who may do what; no web
// page may do anything. Nothing secret is shown. Headers, bodies, connections and times are bounded.
//
// Where the control socket cannot be opened, the daemon goes on without it: condition CONTROL_SOCKET_FAILED.
// It tries again whenever the spool is opened or refused, because the directory may be there then.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../std/clock.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { Emit } from '../../domain/event.ts'
import { createAudit, type Audit } from '../audit/audit.ts'
import type { OpsConfig } from '../config.ts'
import { createRequestRights, type RequestRights, type Right } from './request-rights/request-rights.ts'
import { takesBody } from './control-dead-letters.ts'
import { answerControl, isControl, rightFor } from './control-routes.ts'
import { ok, problem, safetyHeaders, type JsonAnswer } from './json-answer.ts'
import {
  listenOnControlSocket,
  listenOnTcp,
  type ConnectionCounters,
  type Listener,
  type SocketListener,
  type SocketPlace,
} from './listening/listening.ts'
import { answerRead } from './read-routes.ts'
import { tapContentType } from './tap-stream.ts'
import { createRequestTurns, type RequestTurns } from './request-turns.ts'
import type { StageViews } from '../types.ts'

export type HttpSource = {
  status(): unknown
  /** Null where ready. */
  notReady(): string | null
  verdict(): JsonAnswer
  metrics(): Promise<{ contentType: string; text: string }>
  stages: StageViews
  /** Streams, and gives null; or refuses. */
  tap(query: URLSearchParams, response: ServerResponse): JsonAnswer | null
}

export type HttpDeps = { clock: Clock; emit: Emit }

export type HttpOptions = OpsConfig & {
  spoolPath: string
  /** Null: no control socket. */
  socket: SocketPlace | null
}

export type HttpServer = {
  /** With the port that the system chose where the config says 0. */
  url: string
  /** Path of the control socket; null while it is not open. */
  readonly socketPath: string | null
  /** Opens the control socket where it is not open, or where its file is gone. Does not reject. */
  ensureSocket(): Promise<void>
  /** See Ops. */
  renew(options: Pick<OpsConfig, 'users' | 'tls'>): void
  counters(): HttpCounters
  close(): Promise<void>
}

export type HttpCounters = ConnectionCounters & { refused: ReadonlyMap<string, number> }

type Server = HttpSource & {
  rights: RequestRights
  audit: Audit
  turns: RequestTurns
  spoolPath: string
  isSocket: boolean
}
type Answer = { status: number; contentType: string; body: string }

/** Rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
export async function openHttp(
  source: HttpSource,
  { clock, emit }: HttpDeps,
  options: HttpOptions,
): Promise<HttpServer> {
  const { spoolPath, socket: place } = options
  const rights = createRequestRights({ clock, emit }, options)
  const audit = createAudit({ clock, emit }, { folder: spoolPath, bytesMax: options.audit_max_bytes })
  const turns = createRequestTurns()
  const answerOn = (isSocket: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    // answer() catches everything; a failure to write means that the reader is gone.
    if (turns.begin(request.socket, response))
      void respond({ ...source, rights, audit, turns, spoolPath, isSocket }, request, response)
  }
  const tcp: Listener = await listenOnTcp(answerOn(false), options)
  let socket: SocketListener | null = null
  let opening: Promise<void> | null = null
  let isClosed = false
  let hasFailed = false
  try {
    await ensureSocket(true)
  } catch (error) {
    await tcp.close()
    throw error
  }
  return {
    url: tcp.url,
    get socketPath() {
      return socket?.path ?? null
    },
    ensureSocket: () => (opening ??= ensureSocket(false).finally(() => (opening = null))),
    renew({ users, tls }) {
      rights.renew(users)
      tcp.renew(tls)
    },
    counters: () => ({
      open: tcp.connections.open,
      closedForOthers: tcp.connections.closedForOthers,
      refused: rights.refusals(),
    }),
    async close() {
      isClosed = true
      await opening
      await Promise.all([tcp.close(), socket?.close()])
      await audit.close()
    },
  }

  async function ensureSocket(isStart: boolean): Promise<void> {
    if (place === null || isClosed || socket?.isThere()) return
    await socket?.close()
    socket = null
    try {
      socket = await listenOnControlSocket(answerOn(true), place)
      if (hasFailed) emit({ kind: 'control_socket_opened', path: place.path })
      hasFailed = false
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // At the start that is another gateway, as for a port.
      if (isStart && error.code === 'ADDRESS_IN_USE') throw error
      // The directory of the spool is created when the spool is opened; then it is tried again.
      if (isStart) return
      emit({ kind: 'control_socket_failed', fault: error })
      hasFailed = true
    }
  }
}

async function respond(source: Server, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // Before a stream begins, too.
  for (const [name, value] of Object.entries(safetyHeaders)) response.setHeader(name, value)
  const answered = await answer(source, request, response).catch(failed)
  if (answered === 'streams') return
  const { status, contentType, body } = 'value' in answered ? json(answered) : answered
  const bytes = Buffer.from(body)
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': bytes.length,
    ...('value' in answered ? answered.headers : {}),
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
    // A request with a body is not read to its end, so the connection cannot carry another one.
    ...(hasBody(request) ? { connection: 'close' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

async function answer(
  source: Server,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer | JsonAnswer | 'streams'> {
  const [path = '/', search = ''] = (request.url ?? '/').split('?', 2)
  const query = new URLSearchParams(search)
  const changes = request.method === 'POST' && isControl(path)
  const right = changes ? rightFor(path) : readRight(path)
  const admitted = source.isSocket
    ? source.rights.admitOnSocket(request)
    : await source.rights.admit(request, right)
  if (admitted.kind === 'refused') return admitted.answer
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
    const { stages, audit } = source
    const { caller } = admitted
    const answered = await answerControl({ stages, audit }, { path, query, request, response, caller })
    if ('value' in answered) return answered
    await sendLines(answered.lines, response)
    return 'streams'
  }
  return answerGet(source, { path, query }, request, response)
}

function readRight(path: string): Right {
  return path === '/healthz' || path === '/readyz' ? 'open' : 'read'
}

async function answerGet(
  source: Server,
  { path, query }: { path: string; query: URLSearchParams },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer | JsonAnswer | 'streams'> {
  switch (path) {
    case '/':
      return text(`telemetry gateway\n\n${paths.join('\n')}\n`)
    case '/healthz':
      return text('ok\n')
    case '/readyz': {
      const reason = source.notReady()
      return { status: reason === null ? 200 : 503, value: { ready: reason === null, reason } }
    }
    case '/verdict':
      await source.turns.next()
      return source.verdict()
    case '/status':
      await source.turns.next()
      return ok(source.status())
    case '/metrics': {
      await source.turns.next()
      const { contentType, text: body } = await source.metrics()
      return { status: 200, contentType, body }
    }
    case '/tap':
      if (request.method === 'HEAD') return { status: 200, contentType: tapContentType, body: '' }
      return source.tap(query, response) ?? 'streams'
    default: {
      await source.turns.next()
      const closed = new AbortController()
      response.once('close', () => closed.abort())
      const { stages, spoolPath } = source
      return answerRead({ ...stages, spoolPath }, { path, query, signal: closed.signal })
    }
  }
}

const paths = [
  '/status',
  '/verdict',
  '/healthz',
  '/readyz',
  '/metrics',
  '/devices',
  '/dead-letters',
  '/ledger',
  '/quarantine',
  '/batches',
  '/audit',
  '/tap',
]

/** As fast as the client reads. Closing the connection ends it. */
async function sendLines(lines: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
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
