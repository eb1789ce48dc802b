// connection-check.ts: the way to a service, asked step by step for `check --connect`, so that the first that fails names the cause.
// It goes as submissions do: through the proxy, with the same authorities and certificate. No telemetry is sent.
//
//   name, connection     or, where a proxy stands between, its tunnel
//   certificate          with the service itself, also through the tunnel
//   clock                by the Date of an answer to HEAD

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
import { transportOptions } from './transport-options.ts'
import type { TransportOptions } from './submit.ts'
import { openTunnel } from './proxy-tunnel.ts'
import { unreachable } from './unreachable.ts'

export type ConnectionStep = {
  name: 'dns' | 'proxy' | 'connection' | 'tls' | 'clock'
  ok: boolean
  /** What was found. */
  what: string
  /** Only where it failed. */
  why?: string
  act?: string
}

type Asked = { route: TransportOptions; url: URL; host: string; port: number; stop: AbortSignal }

const answerMs = 10_000
/** A signature is good for about five minutes; half of that leaves room for the way. */
const clockOffsetMaxMs = 150_000

/** Ends with the first step that failed. */
export async function* checkConnection(
  options: ProviderOptions,
  { env, stop }: { env: Environment; stop: AbortSignal },
): AsyncGenerator<ConnectionStep> {
  const url = new URL(options.baseUrl)
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  let route: TransportOptions
  try {
    route = transportOptions(options, env)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    yield { name: 'proxy', ok: false, what: error.what, why: error.why, act: error.act }
    return
  }
  const asked = { route, url, host, port, stop }
  const steps = [
    ...(route.proxy === null ? [askName, askConnection] : [askProxy]),
    ...(url.protocol === 'https:' ? [askTls] : []),
    askClock,
  ]
  for (const ask of steps) {
    const step = await ask(asked)
    yield step
    if (!step.ok) return
  }
}

async function askName({ host }: Asked): Promise<ConnectionStep> {
  try {
    const addresses = await lookup(host, { all: true })
    const what = `${host} is ${addresses.map(({ address }) => address).join(', ')}.`
    return { name: 'dns', ok: true, what }
  } catch (error) {
    return failed('dns', `The name ${host} of delivery.base_url is not found.`, error)
  }
}

async function askConnection(asked: Asked): Promise<ConnectionStep> {
  const { host, port } = asked
  try {
    const socket = await openPlain(asked)
    socket.destroy()
    return { name: 'connection', ok: true, what: `${host}:${port} takes connections.` }
  } catch (error) {
    return failed('connection', `${host}:${port} cannot be reached.`, error)
  }
}

async function askProxy(asked: Asked): Promise<ConnectionStep> {
  const { route, host, port } = asked
  const proxy = route.proxy?.url ?? ''
  try {
    const socket = await openPlain(asked)
    socket.destroy()
    return { name: 'proxy', ok: true, what: `The proxy ${proxy} opens a way to ${host}:${port}.` }
  } catch (error) {
    return failed('proxy', `There is no way to ${host}:${port} through the proxy ${proxy}.`, error)
  }
}

async function askTls(asked: Asked): Promise<ConnectionStep> {
  const { host } = asked
  try {
    const socket = await openTls(asked)
    const until = socket.getPeerCertificate().valid_to
    socket.destroy()
    return { name: 'tls', ok: true, what: `The certificate of ${host} is trusted, and valid until ${until}.` }
  } catch (error) {
    return failed('tls', `There is no trusted TLS with ${host}.`, error)
  }
}

async function askClock(asked: Asked): Promise<ConnectionStep> {
  let date: string | undefined
  const startedMs = performance.now()
  try {
    const socket = asked.url.protocol === 'https:' ? await openTls(asked) : await openPlain(asked)
    date = await dateFrom(socket, asked)
  } catch (error) {
    return failed('clock', `${asked.url.origin} does not answer HTTP.`, error)
  }
  const served = Date.parse(date ?? '')
  if (Number.isNaN(served))
    return { name: 'clock', ok: true, what: 'The service tells no time; nothing to compare.' }
  // The header is cut to the second, and was written somewhere between.
  const offsetMs = Math.round(served + 500 - (Date.now() - (performance.now() - startedMs) / 2))
  const what = `Our clock is ${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'} the service.`
  if (Math.abs(offsetMs) <= clockOffsetMaxMs) return { name: 'clock', ok: true, what }
  return {
    name: 'clock',
    ok: false,
    what,
    why: 'A signature made more than five minutes away from the time of the service is refused.',
    act: 'Set the time of this machine (timedatectl, chrony). The daemon corrects its signatures meanwhile.',
  }
}

function failed(name: ConnectionStep['name'], what: string, error: unknown): ConnectionStep {
  const { message, act } = unreachable(error, Date.now())
  return {
    name,
    ok: false,
    what,
    why: `${message}.`,
    act: act ?? 'Check host and port in delivery.base_url, the firewall, and that the service runs.',
  }
}

function openPlain({ route, host, port, stop }: Asked): Promise<Socket> {
  const { proxy, ca } = route
  if (proxy !== null)
    return openTunnel({ proxy, timeoutMs: answerMs, ca }, `${isIP(host) === 6 ? `[${host}]` : host}:${port}`)
  return opened(connect({ host, port }), 'connect', stop)
}

async function openTls(asked: Asked): Promise<TLSSocket> {
  const { route, host, stop } = asked
  const { ca, cert, key, passphrase } = route
  const socket = connectTls({
    socket: await openPlain(asked),
    host,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === null ? {} : { ca }),
    ...(cert === null || key === null ? {} : { cert, key }),
    ...(passphrase === null ? {} : { passphrase }),
  })
  return opened(socket, 'secureConnect', stop)
}

/** Resolves with the socket when it is open; whoever gets it ends it. */
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
    // It stays: a socket that is torn down later must not end the process.
    socket.on('error', fail)
    socket.once('close', () => fail(cut()))
    socket.once(event, () => {
      signal.removeEventListener('abort', onAbort)
      resolve(socket)
    })
  })
}

function dateFrom(socket: Socket, { url, stop }: Asked): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
    const { host, pathname: path } = url
    const options = { method: 'HEAD', path, headers: { host }, signal, createConnection: () => socket }
    const request = httpRequest(options, (response) => {
      resolve(response.headers.date)
      socket.destroy()
    })
    // What TLS has to say comes as the socket's own error, behind which the request only hangs up.
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
    : Object.assign(new Error(`nothing within ${answerMs / 1000} s`), { code: 'ETIMEDOUT' })
}

function cut(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}
