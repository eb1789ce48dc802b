// http-routing.ts: from a request to the code that answers it, by fastify. Entry file of this folder.
//
//   route.ts         what a path is: method, right, parameters, answers
//   parameters.ts    the kinds of parameters, and what is wrong with those of a request
//   route-list.ts    GET /
//   openapi.ts       GET /openapi.json
//   form-body.ts     reads the form of a page
//   long-lists.ts    long answers, in slices
//   request-refusals.ts    answers to requests that reach no route
//
// A request passes, in this order
//
//   turns        a connection has one request at a time (../request-turns.ts)
//   safety       headers of every answer, also of errors
//   rights       ../request-rights: before anything of the request but its path and method is read
//   path         404 with the nearest paths; 405 with `Allow`
//   body         413 where the path takes none. Where it takes one, the route reads it, with a bound; a form
//                is read here, and its token is compared with that of the session
//   parameters   400 with every wrong one: unknown, missing, given twice, not allowed
//   turn         lists and views wait for each other, long ones between their slices, too
//
// fastify has no server of its own here: ../listening has the servers, with their limits, and hands over
// their requests. It has no log, reads no header of a proxy, and makes no schemas: zod checks parameters, and
// answers are JSON.stringify of what the stages give, so no field is lost.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { timeZone, type EpochMs } from '../../../std/clock.ts'
import type { Audit } from '../../audit/audit.ts'
import type { Caller } from '../../types.ts'
import { problemBody, safetyHeaders, type JsonAnswer } from '../json-answer.ts'
import { problemPage } from '../../page/problem-page.ts'
import type { Access, RequestRights, Right } from '../request-rights/request-rights.ts'
import type { RequestTurns } from '../request-turns.ts'
import { readForm } from './form-body.ts'
import { jsonType, withoutLongLists } from './long-lists.ts'
import { rawParametersIn, readParameters, type RawParameters } from './parameters.ts'
import { failureAnswer, ParametersInvalid, withoutBody, withoutRoute } from './request-refusals.ts'
import { prefersHtml } from '../accepted-type.ts'
import { methodsOf, type HttpSource, type Route, type RouteAnswer } from './route.ts'

type Deps = {
  source: HttpSource
  rights: RequestRights
  audit: Audit
  turns: RequestTurns
  routes: readonly Route[]
  spoolPath: string
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** A key of a device may be long; the length of a URL is bounded by that of the headers. */
const keyLengthMax = 8192

/** For each of the two servers, the function that answers its requests. */
export async function createRouting(deps: Deps): Promise<{ onTcp: Listener; onSocket: Listener }> {
  const { rights, turns, routes } = deps
  const fromSocket = new WeakSet<IncomingMessage>()
  const callers = new WeakMap<IncomingMessage, Asker>()
  const app = await createApp(deps.source)

  app.addHook('onRequest', async (request, reply) => {
    const { raw } = request
    const route = routeOf(request)
    const wanted = {
      right: route?.right ?? rightForUnknown(request),
      isPage: route?.page === true,
      isForm: route?.form !== undefined,
    }
    const admitted = fromSocket.has(raw) ? rights.admitOnSocket(raw) : await rights.admit(raw, wanted)
    if (admitted.kind === 'refused') return send(request, reply, admitted.answer)
    callers.set(raw, admitted)
    if (route === null) return send(request, reply, withoutRoute(routes, asked(request)))
    const takesBody = route.body !== undefined || route.form !== undefined
    if (!takesBody && hasBody(raw)) return send(request, reply, withoutBody)
    return undefined
  })
  app.setErrorHandler((error, request, reply) => send(request, reply, failureAnswer(error)))
  // Every request has passed the hook, which answers these.
  app.setNotFoundHandler((request, reply) => send(request, reply, withoutRoute(routes, asked(request))))
  for (const route of routes) addRoute(app, deps, route, callers)
  await app.ready()

  const listener = (isSocket: boolean): Listener => {
    return (request, response) => {
      if (!turns.begin(request.socket, response)) return
      if (isSocket) fromSocket.add(request)
      // Before a stream begins, too.
      for (const [name, value] of Object.entries(safetyHeaders)) response.setHeader(name, value)
      response.setHeader('gateway-time-zone', timeZone())
      app.routing(request, response)
    }
  }
  return { onTcp: listener(false), onSocket: listener(true) }
}

async function createApp({ ourNow }: Pick<HttpSource, 'ourNow'>): Promise<FastifyInstance> {
  // Only the daemon needs it; commands start without.
  const { fastify } = await import('fastify')
  const app = fastify<Server>({
    logger: false,
    exposeHeadRoutes: false,
    rewriteUrl: ({ url = '/' }) => decodable(url),
    routerOptions: {
      maxParamLength: keyLengthMax,
      querystringParser: (text) => rawParametersIn(text),
    },
    schemaController: {
      compilersFactory: {
        // Without these, fastify loads validators that nothing here uses: 20 MB and 30 ms of the start.
        // The type asks for a function of ajv; this one is never called.
        buildValidator: (() => () => () => true) as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
  })
  app.setValidatorCompiler<z.ZodObject>(({ schema }) => checkBy(schema, ourNow))
  // Routes read their bodies themselves, whatever their content type.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  return app
}

function addRoute(
  app: FastifyInstance,
  { source, audit, turns, spoolPath, rights }: Deps,
  route: Route,
  callers: WeakMap<IncomingMessage, Asker>,
): void {
  app.route({
    method: [...methodsOf(route)],
    url: route.path.replace('{key}', ':key'),
    config: { [routeKey]: route },
    schema: { querystring: route.parameters },
    // A browser also sends the fields of a form that are empty.
    ...(route.page === true && { preValidation: withoutEmpty }),
    async handler(request, reply) {
      if (route.atOnce !== true) await turns.next()
      const { raw } = request
      const closed = new AbortController()
      reply.raw.once('close', () => closed.abort())
      const { key = '' } = request.params as { key?: string }
      const { caller, access } = callers.get(raw) ?? unknownAsker
      const form = route.form === undefined ? emptyForm : await readForm(raw, route.form, { access, rights })
      if (!(form instanceof URLSearchParams)) return send(request, reply, form)
      const answered = await route.answer({
        source,
        audit,
        spoolPath,
        values: request.query,
        key,
        caller,
        access,
        rights,
        form,
        request: raw,
        response: reply.raw,
        turn: turns.next,
        signal: closed.signal,
      })
      return send(request, reply, await withoutLongLists(answered, turns.next))
    },
  })
}

const routeKey = 'route'

/** Null where no route has the path and the method. */
function routeOf({ routeOptions }: FastifyRequest): Route | null {
  return (routeOptions.config as { [routeKey]?: Route })[routeKey] ?? null
}

type Asker = { caller: Caller; access: Access }

const unknownAsker: Asker = {
  caller: { via: 'tcp', user: null, address: '' },
  access: {
    user: null,
    mayRead: false,
    mayChange: false,
    hasUsers: false,
    token: null,
    isOpen: () => false,
  },
}
const emptyForm = new URLSearchParams()

async function withoutEmpty(request: FastifyRequest): Promise<void> {
  const given = Object.entries(request.query as RawParameters).filter(([, value]) => value !== '')
  request.query = Object.fromEntries(given)
}

function checkBy(schema: z.ZodObject, ourNow: () => EpochMs) {
  return (raw: RawParameters) => {
    const read = readParameters(schema, raw, ourNow())
    return read.kind === 'values' ? { value: read.values } : { error: new ParametersInvalid(read.problems) }
  }
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: RouteAnswer,
): Promise<FastifyReply> {
  const answered = forBrowser(request, answer)
  if (answered === 'streams') return reply.hijack()
  if ('lines' in answered) {
    reply.hijack()
    await sendLines(answered.lines, reply.raw)
    return reply
  }
  const { contentType, body } = 'value' in answered ? jsonOf(answered, pathOf(request)) : answered
  void reply.code(answered.status).headers({
    'content-type': contentType,
    ...answered.headers,
    // A request with a body is not read to its end, so the connection cannot carry another one.
    ...(hasBody(request.raw) ? { connection: 'close' } : {}),
  })
  return reply.send(Buffer.from(body))
}

/** Problems of views are views. */
function forBrowser(request: FastifyRequest, answered: RouteAnswer): RouteAnswer {
  const isProblem = typeof answered === 'object' && 'value' in answered && answered.isProblem === true
  const isView = routeOf(request)?.page === true || pathOf(request).startsWith('/page/')
  return isProblem && isView && prefersHtml(request.headers.accept) ? problemPage(answered) : answered
}

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

function jsonOf(answered: JsonAnswer, path: string): { contentType: string; body: string } {
  return answered.isProblem === true
    ? {
        contentType: 'application/problem+json; charset=utf-8',
        body: `${JSON.stringify(problemBody(answered, path))}\n`,
      }
    : { contentType: jsonType, body: `${JSON.stringify(answered.value)}\n` }
}

/** A path below /control is a secret as long as nobody may change anything; the others are no secret. */
function rightForUnknown(request: FastifyRequest): Right {
  const path = pathOf(request)
  if (path === '/healthz' || path === '/readyz') return 'open'
  return request.method === 'POST' && path.startsWith('/control/') ? 'change' : 'read'
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function asked(request: FastifyRequest) {
  return { method: request.method, path: pathOf(request) }
}

/** As the client sent it, without its parameters. */
function pathOf({ originalUrl }: FastifyRequest): string {
  return originalUrl.split('?', 1)[0] ?? ''
}

/** A lone percent sign, or bytes that are not UTF-8, may be part of a name: they stand for themselves. */
function decodable(url: string): string {
  const end = url.indexOf('?')
  const path = end < 0 ? url : url.slice(0, end)
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length)
  }
}
