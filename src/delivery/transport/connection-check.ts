// connection-check.ts: checks the connection to a service step by step for `check --connect`: the first
// failed step is the cause. It connects as submissions do: through the proxy, with the same authorities and
// certificate. It sends no telemetry.
//
//   name, connection     or, with a proxy, the tunnel
//   certificate          of the service itself, also through the tunnel
//   clock                from the Date of the answer to HEAD

import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { request as httpRequest } from '../../std/node-http.ts'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { formatDuration } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { hostOf, portOf } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import { openTunnel } from './proxy-tunnel.ts'
import { transportOptions } from './transport-options.ts'
import type { TransportOptions } from './transport.ts'
import { unreachable } from './unreachable.ts'

export type ConnectionStep = {
  name: 'dns' | 'proxy' | 'connection' | 'tls' | 'clock'
  ok: boolean
  /** What the step found. */
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
  let options: TransportOptions
  try {
    options = transportOptions(provider, env)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    yield { name: 'proxy', ok: false, what: error.what, why: error.why, act: error.act }
    return
  }
  const target = { options, url, host: hostOf(url), port: portOf(url), stop }
  const steps = [
    ...(options.proxy === null ? [checkName, checkTcp] : [checkProxy]),
    ...(url.protocol === 'https:' ? [checkTls] : []),
    checkClock,
  ]
  for (const run of steps) {
    const step = await run(target)
    yield step
    if (!step.ok) return
  }
}

function checkName({ options, host }: Target): Promise<ConnectionStep> {
  return check(options, 'dns', `The host name ${host} of delivery.base_url cannot be resolved.`, async () => {
    const addresses = await lookup(host, { all: true })
    return `${host} resolves to ${addresses.map(({ address }) => address).join(', ')}.`
  })
}

function checkTcp(target: Target): Promise<ConnectionStep> {
  const address = `${target.host}:${target.port}`
  return check(target.options, 'connection', `Cannot connect to ${address}.`, async () => {
    const socket = await openPlain(target)
    socket.destroy()
    return `${address} accepts connections.`
  })
}

function checkProxy(target: Target): Promise<ConnectionStep> {
  const address = `${target.host}:${target.port}`
  const proxy = target.options.proxy?.url ?? ''
  return check(
    target.options,
    'proxy',
    `Cannot connect to ${address} through the proxy ${proxy}.`,
    async () => {
      const socket = await openPlain(target)
      socket.destroy()
      return `The proxy ${proxy} connects to ${address}.`
    },
  )
}

function checkTls(target: Target): Promise<ConnectionStep> {
  const { host } = target
  return check(target.options, 'tls', `TLS with ${host} failed.`, async () => {
    const socket = await openTls(target)
    const certificate = socket.getPeerCertificate(true)
    socket.destroy()
    const chain = chainOf(certificate).map(nameOf).join(', ')
    return `The certificate of ${host} is trusted and valid until ${certificate.valid_to}. Chain: ${chain}.`
  })
}

const chainLengthMax = 8

/** From the service to the authority that is trusted. The last one names itself as its issuer. */
function chainOf(certificate: DetailedPeerCertificate): readonly DetailedPeerCertificate[] {
  const chain = [certificate]
  while (chain.length < chainLengthMax) {
    const last = chain[chain.length - 1]
    const issuer = last?.issuerCertificate
    if (issuer === undefined || issuer.fingerprint256 === last?.fingerprint256) break
    chain.push(issuer)
  }
  return chain
}

function nameOf({ subject }: DetailedPeerCertificate): string {
  const { CN, O } = subject as { CN?: string; O?: string }
  return bounded(CN ?? O ?? 'without a name', 80)
}

async function checkClock(target: Target): Promise<ConnectionStep> {
  let offsetMs = 0
  const step = await check(
    target.options,
    'clock',
    `${target.url.origin} does not answer HTTP.`,
    async () => {
      const startedMs = performance.now()
      const socket = target.url.protocol === 'https:' ? await openTls(target) : await openPlain(target)
      const served = Date.parse((await dateFrom(socket, target)) ?? '')
      if (Number.isNaN(served)) return 'The service sends no Date header, so the clock was not compared.'
      // The header is cut to the second and was written between request and answer.
      offsetMs = Math.round(served + 500 - (Date.now() - (performance.now() - startedMs) / 2))
      const side = offsetMs > 0 ? 'behind' : 'ahead of'
      return `The clock of this machine is ${formatDuration(Math.abs(offsetMs))} ${side} the service.`
    },
  )
  if (Math.abs(offsetMs) <= clockOffsetMaxMs) return step
  return {
    ...step,
    ok: false,
    why: 'The service refuses signatures that are more than five minutes off its own time.',
    act:
      'Set the time of this machine (timedatectl, chrony). Until then the daemon uses the time of the ' +
      'service for signatures.',
  }
}

/** `run` returns what the step found; `problem` describes a failure. */
async function check(
  options: TransportOptions,
  name: ConnectionStep['name'],
  problem: string,
  run: () => Promise<string>,
): Promise<ConnectionStep> {
  try {
    return { name, ok: true, what: await run() }
  } catch (error) {
    const {
      message,
      act = 'Check the host and port in delivery.base_url, the firewall, and that the service is running.',
    } = unreachable(error, Date.now(), options)
    return { name, ok: false, what: problem, why: `${message}.`, act }
  }
}

function openPlain({ options, host, port, stop }: Target): Promise<Socket> {
  const { proxy, tls } = options
  if (proxy !== null)
    return openTunnel(
      { proxy, timeoutMs: answerMs, ca: tls.ca },
      `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
    )
  return opened(connect({ host, port, ...addressAttempts(answerMs) }), 'connect', stop)
}

async function openTls(target: Target): Promise<TLSSocket> {
  const { options, host, stop } = target
  const socket = connectTls({
    socket: await openPlain(target),
    host,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...options.tls,
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
