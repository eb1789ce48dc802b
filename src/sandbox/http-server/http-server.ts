// http-server.ts: requests and answers over node:http. Every request gets an answer with a requestId or a
// closed connection; no request can end the process.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { createServer, STATUS_CODES } from '../../std/node-http.ts'
import { pause, type Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { dateAt, refusal, type Answer } from './answers.ts'
import type { Headers } from '../signature/canonical-request.ts'
import { answerControl, controlBodyBytesMax, controlPrefix, type ControlSource } from '../sandbox-control.ts'
import { answerMalformed } from './malformed-request.ts'
import type { InjectedFaults, FaultInjector, Operation } from '../fault-injection.ts'
import type { SandboxListener } from '../sandbox-options.ts'
import { reply } from './reply.ts'
import { readRequestBody } from './request-body.ts'
import type { Service } from '../ingestion-service.ts'
import type { SandboxCounters } from '../sandbox-stats.ts'

const limits = {
  maxHeaderSize: 32_768,
  headersTimeout: 20_000,
  requestTimeout: 120_000,
  // Longer than clients keep an idle connection, so that the client closes it and no request meets a closed
  // one.
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5000,
} as const

type Deps = {
  clock: Clock
  newId: () => string
  service: Service
  faultInjector: FaultInjector
  control: ControlSource
  counters: SandboxCounters
  listener: SandboxListener
  /** Aborts when the sandbox closes, and ends every wait. */
  stop: AbortSignal
}

type Options = { basePath: string; bodyBytesMax: number; connectionsMax: number }

type Exchange = {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  expectsContinue: boolean
}

export function createHttp(deps: Deps, options: Options): Server {
  const { clock, newId, service, faultInjector, counters } = deps
  const operations = new Map<string, Operation>([
    [`${options.basePath}/v2/telemetry`, 'single'],
    [`${options.basePath}/v2/telemetry/batch`, 'batch'],
  ])

  /** The current request of each connection. */
  const current = new WeakMap<Duplex, ServerResponse>()

  const server = createServer(limits)
  server.maxConnections = options.connectionsMax
  // serve() catches every error.
  server.on(
    'request',
    (request, response) => void serve({ requestId: newId(), request, response, expectsContinue: false }),
  )
  server.on(
    'checkContinue',
    (request, response) => void serve({ requestId: newId(), request, response, expectsContinue: true }),
  )
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const message = 'Expect can only be 100-continue.'
    void refuse(
      { requestId: newId(), request, response, expectsContinue: false },
      { status: 417, reason: 'expectation', message },
    )
  })
  server.on('clientError', (error, socket) => answerMalformed(deps, error, socket, current.get(socket)))
  return server

  async function serve(exchange: Exchange): Promise<void> {
    const { requestId, request } = exchange
    const { socket } = request
    current.set(socket, exchange.response)
    try {
      const url = request.url ?? '/'
      if (url.startsWith(controlPrefix)) await serveControl(exchange)
      else await serveOperation(exchange, url)
    } catch (error) {
      counters.counts.internalErrors += 1
      const message = `The sandbox failed: ${messageOf(error)}.`
      const answer = refusal(requestId, { status: 500, reason: 'internal', message })
      if (exchange.response.headersSent) exchange.response.destroy()
      else await send(exchange, answer, null, false).catch(() => exchange.response.destroy())
    } finally {
      current.delete(socket)
    }
  }

  async function serveControl(exchange: Exchange): Promise<void> {
    const { requestId, request, response, expectsContinue } = exchange
    const body = await readRequestBody(request, response, { bytesMax: controlBodyBytesMax, expectsContinue })
    if (body.kind === 'cut') return
    const options = {
      date: dateAt(clock.now()),
      fault: null,
      hugeBytes: 0,
      close: body.kind === 'too_large' && body.unread,
    }
    if (body.kind === 'too_large') {
      const message = `The body may have at most ${controlBodyBytesMax} bytes here.`
      return reply(response, refusal(requestId, { status: 413, reason: 'body_too_large', message }), options)
    }
    const url = URL.parse(request.url ?? '', 'http://sandbox') ?? new URL('http://sandbox/sandbox/')
    const question = { requestId, method: request.method ?? '', url, body: body.bytes }
    await reply(response, answerControl(deps.control, question), options)
  }

  async function serveOperation(exchange: Exchange, target: string): Promise<void> {
    const { requestId, request, response, expectsContinue } = exchange
    counters.counts.requests += 1
    const path = target.split('?', 1)[0] ?? ''
    const operation = operations.get(path)
    const drawn = operation && request.method === 'POST' ? draw(operation, request) : null
    if (drawn?.cut === 'before_reading') {
      cut(exchange, 'cut_before_reading')
      return
    }

    const body = await readRequestBody(request, response, { bytesMax: options.bodyBytesMax, expectsContinue })
    if (body.kind === 'cut') return
    if (body.kind === 'too_large') {
      const message = `The body is larger than ${options.bodyBytesMax} bytes.`
      return refuse(exchange, { status: 413, reason: 'body_too_large', message }, body.unread)
    }
    counters.counts.bytes += body.bytes.length
    if (!operation)
      return refuse(exchange, {
        status: 404,
        reason: 'not_found',
        message: `There is no route ${quote(path, 100)}.`,
      })
    if (request.method !== 'POST') {
      const message = `${request.method ?? ''} is not allowed here; submit with POST.`
      return refuse(exchange, {
        status: 405,
        reason: 'method_not_allowed',
        message,
        headers: { allow: 'POST' },
      })
    }
    if (drawn && !(await goesOn(exchange, drawn))) return
    const answer =
      drawn && drawn.status !== null
        ? injected(requestId, drawn, drawn.status)
        : service.submit({
            operation,
            requestId,
            method: request.method,
            target: wireText(target),
            headers: wireHeaders(request),
            body: body.bytes,
            plan: drawn?.plan ?? null,
          })
    if (drawn) await spoil(exchange, drawn, answer)
    else await send(exchange, answer, null, false)
  }

  function draw(operation: Operation, request: IncomingMessage): InjectedFaults | null {
    return faultInjector.draw(operation, request.headersDistinct['x-provider-key']?.[0] ?? null)
  }

  /** Applies the faults before the work; false where the request ends with one of them. */
  async function goesOn(exchange: Exchange, drawn: InjectedFaults): Promise<boolean> {
    if (drawn.cut === 'after_reading') return cut(exchange, 'cut_after_reading')
    if (drawn.hang) {
      // The client closes the connection or the sandbox closes; both end the wait.
      counters.faultsInjected.add('hang')
      return false
    }
    if (drawn.latencyMs > 0) {
      counters.faultsInjected.add('latency')
      // A client that closed the connection meanwhile is not noticed: the work is done, as by a slow service.
      return pause(clock, drawn.latencyMs, deps.stop)
    }
    return true
  }

  /** Applies the faults after the work: to accepted payloads, and changes of the body to any answer. */
  async function spoil(exchange: Exchange, drawn: InjectedFaults, answer: Answer): Promise<void> {
    if (answer.reason === null) {
      const { latencyMs, kind } = drawn.afterCommit
      if (latencyMs > 0) {
        counters.faultsInjected.add('latency_after_commit')
        if (!(await pause(clock, latencyMs, deps.stop))) return
      }
      if (kind !== null) counters.faultsInjected.add(`${kind}_after_commit`)
      if (kind === 'hang') return
      if (kind === 'cut') {
        reset(exchange)
        return
      }
      if (kind === 'error')
        return send(
          exchange,
          injected(exchange.requestId, drawn, drawn.plan.after_commit.error_status),
          drawn,
          false,
        )
    }
    await send(exchange, answer, drawn, false)
  }

  function injected(requestId: string, { plan }: InjectedFaults, status: number): Answer {
    counters.faultsInjected.add(`status_${status}`)
    const headers: Record<string, string> = {}
    if (plan.retry_after !== undefined)
      headers['retry-after'] =
        plan.retry_after_form === 'seconds'
          ? String(Math.ceil(plan.retry_after / 1000))
          : dateAt(clock.now() + plan.clock_offset + plan.retry_after)
    if (status < 400) headers['location'] = `${options.basePath}/elsewhere`
    const message = `${STATUS_CODES[status] ?? 'Status'} ${status}, injected by a fault.`
    return refusal(requestId, { status, reason: 'injected', message, headers })
  }

  function cut(exchange: Exchange, name: string): false {
    counters.faultsInjected.add(name)
    reset(exchange)
    return false
  }

  async function refuse(
    exchange: Exchange,
    why: Parameters<typeof refusal>[1],
    close = false,
  ): Promise<void> {
    counters.refusedRequests.add(why.reason)
    await send(exchange, refusal(exchange.requestId, why), null, close)
  }

  async function send(
    exchange: Exchange,
    answer: Answer,
    drawn: InjectedFaults | null,
    close: boolean,
  ): Promise<void> {
    const { requestId, request, response } = exchange
    counters.byStatus.add(answer.status)
    if (drawn?.body) counters.faultsInjected.add(`body_${drawn.body}`)
    const { status, reason } = answer
    const message =
      reason === null ? null : (JSON.parse(answer.body) as { errorMessage: string }).errorMessage
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    deps.listener.onAnswer?.({ requestId, method: request.method ?? '', path, status, reason, message })
    await reply(response, answer, {
      date: dateAt(clock.now() + (drawn?.plan.clock_offset ?? 0)),
      fault: drawn?.body ?? null,
      hugeBytes: drawn?.plan.body.huge_bytes ?? 0,
      close,
    })
  }
}

function reset({ request }: Exchange): void {
  request.socket.resetAndDestroy()
}

/** node:http decodes the head as Latin-1. The bytes on the wire, which were signed, may be UTF-8. */
function wireText(text: string): string {
  return /[\u0080-\u00ff]/.test(text) ? Buffer.from(text, 'latin1').toString() : text
}

function wireHeaders({ headersDistinct }: IncomingMessage): Headers {
  return Object.fromEntries(
    Object.entries(headersDistinct).map(([name, values]) => [name, values?.map(wireText)]),
  )
}
