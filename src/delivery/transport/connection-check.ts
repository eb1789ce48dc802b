// connection-check.ts: checks the connection to a service step by step for `check --connect`: the first
// failed step is the cause. It connects as submissions do: through the proxy, with the same authorities and
// certificate. It sends no telemetry.
//
//   name, connection     or, with a proxy, the tunnel
//   certificate          of the service itself, also through the tunnel
//   clock                from the Date of the answer to HEAD

import { lookup } from 'node:dns/promises'
import { request as httpRequest } from 'node:http'
import { connect, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import { GatewayError } from '../../std/gateway-error.ts'
import { formatDuration } from '../../std/quantity.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { Environment } from '../proxy.ts'
import { openTunnel } from './proxy-tunnel.ts'
import { transportOptions } from './transport-options.ts'
import type { TransportOptions } from './transport.ts'
import { unreachable } from './unreachable.ts'

export type ConnectionStep = {
  name: 'dns' | 'proxy' | 'connection' | 'tls' | 'clock'
  ok: boolean
  /** The finding. */
  what: string
  /** Only of a failed step. */
  why?: string
  act?: string
}

type Target = { options: TransportOptions; url: URL; host: string; port: number; stop: AbortSignal }

const answerMs = 10_000
/** A signature is valid for about five minutes; half of that leaves a margin. */
const clockOffsetMaxMs = 150_000

/** Ends with the first failed step. */
export async function* checkConnection(
  provider: ProviderOptions,
  { env, stop }: { env: Environment; stop: AbortSignal },
): AsyncGenerator<ConnectionStep> {
  const url = new URL(provider.baseUrl)
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  let options: TransportOptions
  try {
    options = transportOptions(provider, env)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    yield { name: 'proxy', ok: false, what: error.what, why: error.why, act: error.act }
    return
  }
  const target = { options, url, host, port, stop }
  const steps = [
    ...(options.proxy === null ? [checkName, checkTcp] : [checkProxy]),
    ...(url.protocol === 'https:' ? [checkTls] : []),
    checkClock,
  ]
  for (const check of steps) {
    const step = await check(target)
    yield step
    if (!step.ok) return
  }
}

async function checkName({ host }: Target): Promise<ConnectionStep> {
  try {
    const addresses = await lookup(host, { all: true })
    const what = `${host} resolves to ${addresses.map(({ address }) => address).join(', ')}.`
    return { name: 'dns', ok: true, what }
  } catch (error) {
    return failed('dns', `The host name ${host} of delivery.base_url cannot be resolved.`, error)
  }
}

async function checkTcp(target: Target): Promise<ConnectionStep> {
  const { host, port } = target
  try {
    const socket = await openPlain(target)
    socket.destroy()
    return { name: 'connection', ok: true, what: `${host}:${port} accepts connections.` }
  } catch (error) {
    return failed('connection', `Cannot connect to ${host}:${port}.`, error)
  }
}

async function checkProxy(target: Target): Promise<ConnectionStep> {
  const { options, host, port } = target
  const proxy = options.proxy?.url ?? ''
  try {
    const socket = await openPlain(target)
    socket.destroy()
    return { name: 'proxy', ok: true, what: `The proxy ${proxy} connects to ${host}:${port}.` }
  } catch (error) {
    return failed('proxy', `Cannot connect to ${host}:${port} through the proxy ${proxy}.`, error)
  }
}

async function checkTls(target: Target): Promise<ConnectionStep> {
  const { host } = target
  try {
    const socket = await openTls(target)
    const until = socket.getPeerCertificate().valid_to
    socket.destroy()
    return { name: 'tls', ok: true, what: `The certificate of ${host} is trusted and valid until ${until}.` }
  } catch (error) {
    return failed('tls', `TLS with ${host} failed.`, error)
  }
}

async function checkClock(target: Target): Promise<ConnectionStep> {
  let date: string | undefined
  const startedMs = performance.now()
  try {
    const socket = target.url.protocol === 'https:' ? await openTls(target) : await openPlain(target)
    date = await dateFrom(socket, target)
  } catch (error) {
    return failed('clock', `${target.url.origin} does not answer HTTP.`, error)
  }
  const served = Date.parse(date ?? '')
  if (Number.isNaN(served))
    return { name: 'clock', ok: true, what: 'The service sends no Date; the clock was not compared.' }
  // The header is cut to the second and was written between request and answer.
  const offsetMs = Math.round(served + 500 - (Date.now() - (performance.now() - startedMs) / 2))
  const what = `Our clock is ${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'} the service.`
  if (Math.abs(offsetMs) <= clockOffsetMaxMs) return { name: 'clock', ok: true, what }
  return {
    name: 'clock',
    ok: false,
    what,
    why: 'The service refuses signatures that are more than five minutes off its own time.',
    act: 'Set the time of this machine (timedatectl, chrony). Meanwhile the daemon corrects its signatures.',
  }
}

function failed(name: ConnectionStep['name'], what: string, error: unknown): ConnectionStep {
  const { message, act } = unreachable(error, Date.now())
  return {
    name,
    ok: false,
    what,
    why: `${message}.`,
    act:
      act ?? 'Check the host and port in delivery.base_url, the firewall, and that the service is running.',
  }
}

function openPlain({ options, host, port, stop }: Target): Promise<Socket> {
  const { proxy, ca } = options
  if (proxy !== null)
    return openTunnel({ proxy, timeoutMs: answerMs, ca }, `${isIP(host) === 6 ? `[${host}]` : host}:${port}`)
  return opened(connect({ host, port }), 'connect', stop)
}

async function openTls(target: Target): Promise<TLSSocket> {
  const { options, host, stop } = target
  const { ca, cert, key, passphrase } = options
  const socket = connectTls({
    socket: await openPlain(target),
    host,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === null ? {} : { ca }),
    ...(cert === null || key === null ? {} : { cert, key }),
    ...(passphrase === null ? {} : { passphrase }),
  })
  return opened(socket, 'secureConnect', stop)
}

/** Resolves with the open socket; the caller ends it. */
function opened<Kind extends Socket>(socket: Kind, event: string, stop: AbortSignal): Promise<Kind> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
    const fail = (error: Error) => {
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      reject(error)
    }
    const onAbort = () => fail(late(stop))
    signal.addEventListener('abort', onAbort, { once: true })
    // The listener stays: an error of the socket later must not end the process.
    socket.on('error', fail)
    socket.once('close', () => fail(cut()))
    socket.once(event, () => {
      signal.removeEventListener('abort', onAbort)
      resolve(socket)
    })
  })
}

function dateFrom(socket: Socket, { url, stop }: Target): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
    const { host, pathname: path } = url
    const options = { method: 'HEAD', path, headers: { host }, signal, createConnection: () => socket }
    const request = httpRequest(options, (response) => {
      resolve(response.headers.date)
      socket.destroy()
    })
    // A TLS failure is an error of the socket; the request then reports only that the connection closed.
    socket.once('error', reject)
    request.on('error', (error) => {
      if (signal.aborted) reject(late(stop))
      else setImmediate(() => reject(error))
    })
    request.end()
  })
}

function late(stop: AbortSignal): Error {
  return stop.aborted
    ? new Error('stopped')
    : Object.assign(new Error(`no answer within ${answerMs / 1000} s`), { code: 'ETIMEDOUT' })
}

function cut(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}
