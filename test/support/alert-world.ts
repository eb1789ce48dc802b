// alert-world.ts: receivers of alerts for tests: an HTTP server and a mail relay that answer as a test wants,
// and alerts to send to them.

import { createServer as createHttp, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { onTestFinished } from 'vitest'
import { receiverDepsOf } from '../../src/alerts/alerts.ts'
import { alertsSchema, type AlertsConfig } from '../../src/alerts/config.ts'
import { tryOnce } from '../../src/alerts/receiver-try.ts'
import { createReceiver } from '../../src/alerts/receivers/receivers.ts'
import type { Alert, AlertReceiver, Change, OpenCondition, Sent } from '../../src/alerts/types.ts'
import { systemClock } from '../../src/std/clock.ts'

export type Request = { method: string; url: string; headers: IncomingHttpHeaders; body: string }

type Answer = (response: ServerResponse, request: Request) => void

export type HttpReceiver = { url: string; requests: Request[]; answer: Answer }

const ok: Answer = (response) => void response.end('ok')

/** Closed when the test ends, with its connections. */
export async function startHttpReceiver({
  tls,
  answer = ok,
}: { tls?: { cert: string; key: string }; answer?: Answer } = {}): Promise<HttpReceiver> {
  const receiver: HttpReceiver = { url: '', requests: [], answer }
  const sockets = new Set<Socket>()
  const server = (tls === undefined ? createHttp() : createHttps(tls)).on(
    'request',
    (request, response: ServerResponse) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const { method = '', url = '', headers } = request
        const seen = { method, url, headers, body: Buffer.concat(parts).toString() }
        receiver.requests.push(seen)
        receiver.answer(response, seen)
      })
    },
  )
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  receiver.url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  return receiver
}

export type Relay = {
  port: number
  mails: { from: string; to: string[]; text: string; user: string | null }[]
}

/** A real SMTP server. */
export async function startRelay(options: SMTPServerOptions = {}): Promise<Relay> {
  const relay: Relay = { port: 0, mails: [] }
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, session, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        relay.mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(parts).toString(),
          user: session.user === undefined ? null : String(session.user),
        })
        done(null, 'OK: queued as 12345')
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(resolve)
      }),
  )
  relay.port = (server.server.address() as AddressInfo).port
  return relay
}

export function condition(code: string, more: Partial<OpenCondition> = {}): OpenCondition {
  return {
    code,
    key: null,
    severity: 'error',
    since: 1_763_700_000_000,
    count: 1,
    what: `What ${code} is.`,
    why: 'Why it is.',
    act: 'What to do.',
    causes: [],
    ...more,
  }
}

export function change(code: string, more: Partial<Change> = {}): Change {
  return { ...condition(code), kind: 'raised', clearedAt: null, ...more }
}

export function alert(more: Partial<Alert> = {}): Alert {
  return {
    id: 'alert-1',
    isTest: false,
    gateway: 'depot-north',
    version: '1.2.3',
    receiver: 'chat',
    createdAt: 1_763_700_060_000,
    headline: 'RAISED error DEAD_LETTERS: What DEAD_LETTERS is.',
    verdict: 'degraded',
    sentence: 'DEAD_LETTERS: What it is.',
    changes: [change('DEAD_LETTERS')],
    omitted: 0,
    open: 1,
    heldBack: null,
    digest: null,
    page: null,
    ...more,
  }
}

/** The section `alerts`, with its defaults. */
export function alertsConfig(written: object): AlertsConfig {
  return alertsSchema.parse(written)
}

/** A receiver as the config has it, beside `name`. */
export function receiverOf(written: object, more: ReceiverOptions = {}): AlertReceiver {
  const { proxy = { from: 'none' }, ourTime } = more
  const alerts = alertsConfig({ receivers: [{ name: 'duty', ...written }] })
  const deps = receiverDepsOf({ clock: systemClock, env: {}, clockOffsetMs: () => null }, { alerts, proxy })
  return createReceiver({ ...deps, ...(ourTime && { ourTime }) }, alerts.receivers[0]!)
}

type ReceiverOptions = { proxy?: Parameters<typeof receiverDepsOf>[1]['proxy']; ourTime?: () => number }

/** As the gateway tries it, with its time limit. */
export function sendTo(to: AlertReceiver, one = alert(), stop = new AbortController().signal): Promise<Sent> {
  return tryOnce(systemClock, to, (ends) => to.send(one, ends), stop)
}
