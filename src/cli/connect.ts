// connect.ts: the questions of `check --connect`, each asked by itself so that the first that fails names the cause:
// name, connection, certificate, clock, credentials, spool directory. Nothing is changed and no telemetry is sent.

import { lookup } from 'node:dns/promises'
import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, isIP } from 'node:net'
import { dirname } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/fault.ts'
import { formatDuration, formatSize } from '../std/quantity.ts'
import type { Config } from '../config/config.ts'
import { deliveryOptions } from '../delivery/config.ts'
import { probeCredentials } from '../delivery/delivery.ts'

export type Finding = {
  name: 'dns' | 'connection' | 'tls' | 'clock' | 'credentials' | 'spool'
  ok: boolean
  /** What was found. */
  what: string
  /** Only where it failed. */
  why?: string
  act?: string
}

const answerMs = 10_000
/** A signature is good for about five minutes; half of that leaves room for the way. */
const clockOffsetMaxMs = 150_000

export async function* connectChecks(
  config: Config,
  { env, stop }: { env: NodeJS.ProcessEnv; stop: AbortSignal },
): AsyncGenerator<Finding> {
  const url = new URL(config.delivery.base_url)
  const ca = config.delivery.tls.ca
  const found = await checkDns(url)
  yield found
  if (found.ok) {
    const connected = await checkConnection(url, stop)
    yield connected
    if (connected.ok) {
      const tls = url.protocol === 'https:' ? await checkTls(url, ca, stop) : null
      if (tls) yield tls
      if (!tls || tls.ok) yield await checkClock(url, ca, stop)
    }
  }
  yield await checkCredentials(config, env)
  yield await checkSpool(config)
}

async function checkDns({ hostname }: URL): Promise<Finding> {
  const host = bareHost(hostname)
  try {
    const addresses = await lookup(host, { all: true })
    return {
      name: 'dns',
      ok: true,
      what: `${host} is ${addresses.map(({ address }) => address).join(', ')}.`,
    }
  } catch (error) {
    return {
      name: 'dns',
      ok: false,
      what: `The name ${host} of delivery.base_url is not found.`,
      why: `${codeOf(error) ?? messageOf(error)}.`,
      act: 'Check the spelling, /etc/resolv.conf and whether this machine has a network.',
    }
  }
}

/** Connects, and hangs up. */
function attempt<Found>(
  stop: AbortSignal,
  open: (
    signal: AbortSignal,
    settled: (found: Found) => void,
    failed: (error: unknown) => void,
  ) => () => void,
): Promise<Found> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
    const onAbort = () => {
      close()
      reject(new Error(stop.aborted ? 'stopped' : `no answer within ${answerMs / 1000} s`))
    }
    const end = () => {
      signal.removeEventListener('abort', onAbort)
      close()
    }
    const close = open(
      signal,
      (found) => {
        end()
        resolve(found)
      },
      (error) => {
        end()
        reject(error instanceof Error ? error : new Error(String(error)))
      },
    )
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

async function checkConnection(url: URL, stop: AbortSignal): Promise<Finding> {
  const { host, port } = addressOf(url)
  try {
    await attempt<null>(stop, (_signal, settled, failed) => {
      const socket = connect({ host, port }, () => settled(null))
      socket.on('error', failed)
      return () => socket.destroy()
    })
    return { name: 'connection', ok: true, what: `${host}:${port} takes connections.` }
  } catch (error) {
    return {
      name: 'connection',
      ok: false,
      what: `${host}:${port} cannot be reached.`,
      why: `${codeOf(error) ?? messageOf(error)}.`,
      act: 'Check the port in delivery.base_url, the firewall, and that the service runs.',
    }
  }
}

async function checkTls(url: URL, ca: string | undefined, stop: AbortSignal): Promise<Finding> {
  const { host, port } = addressOf(url)
  try {
    const until = await attempt<string>(stop, (_signal, settled, failed) => {
      const socket = connectTls(
        {
          host,
          port,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(ca === undefined ? {} : { ca }),
        },
        () => settled(socket.getPeerCertificate().valid_to),
      )
      socket.on('error', failed)
      return () => socket.destroy()
    })
    return { name: 'tls', ok: true, what: `The certificate of ${host} is trusted, and valid until ${until}.` }
  } catch (error) {
    return {
      name: 'tls',
      ok: false,
      what: `The certificate of ${host} is not trusted.`,
      why: `${messageOf(error)}.`,
      act: 'Where the service has a private authority, set delivery.tls.ca; else check the date of this machine.',
    }
  }
}

async function checkClock(url: URL, ca: string | undefined, stop: AbortSignal): Promise<Finding> {
  try {
    const sentAt = Date.now()
    const date = await attempt<string | undefined>(stop, (signal, settled, failed) => {
      const options = { method: 'HEAD', signal, agent: false as const, ...(ca === undefined ? {} : { ca }) }
      const ask = url.protocol === 'https:' ? httpsRequest : httpRequest
      const sent = ask(url, options, (response) => settled(response.headers.date))
      sent.on('error', failed)
      sent.end()
      return () => sent.destroy()
    })
    const served = Date.parse(date ?? '')
    if (Number.isNaN(served))
      return { name: 'clock', ok: true, what: 'The service tells no time; nothing to compare.' }
    // The header is cut to the second.
    const offsetMs = Math.round(served + 500 - (sentAt + Date.now()) / 2)
    const what = `Our clock is ${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'} the service.`
    if (Math.abs(offsetMs) <= clockOffsetMaxMs) return { name: 'clock', ok: true, what }
    return {
      name: 'clock',
      ok: false,
      what,
      why: 'A signature made more than five minutes away from the time of the service is refused.',
      act: 'Set the time of this machine (timedatectl, chrony). The daemon corrects its signatures meanwhile.',
    }
  } catch (error) {
    return {
      name: 'clock',
      ok: false,
      what: `${url.origin} does not answer HTTP.`,
      why: `${messageOf(error)}.`,
      act: 'Check that delivery.base_url is the ingestion API, and http:// or https:// in it.',
    }
  }
}

async function checkCredentials({ delivery }: Config, env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'credentials'
  try {
    const found = await probeCredentials({ clock: systemClock, env }, deliveryOptions(delivery))
    const keys = found.map(({ provider, accessKeyId }) => `${accessKeyId} for provider ${provider}`)
    return { name, ok: true, what: `Access key ${keys.join(', ')}, from ${delivery.credentials.source}.` }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { name, ok: false, what: error.what, why: error.why, act: error.act }
  }
}

/** The directory itself, or where it would be made: looking must not make it. */
async function checkSpool({ spool }: Config): Promise<Finding> {
  const name = 'spool'
  try {
    const place = await existing(spool.path)
    if (!(await stat(place)).isDirectory()) throw new Error(`${place} is no directory`)
    await access(place, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = await statfs(place)
    const free = bavail * bsize
    if (free >= spool.min_free_bytes)
      return { name, ok: true, what: `${spool.path} can be written, ${formatSize(free)} are free.` }
    return {
      name,
      ok: false,
      what: `The disk of ${spool.path} has ${formatSize(free)} free.`,
      why: `spool.min_free_bytes is ${formatSize(spool.min_free_bytes)}; below it acks are held.`,
      act: 'Free space, or put the spool on another disk.',
    }
  } catch (error) {
    return {
      name,
      ok: false,
      what: `The spool directory ${spool.path} cannot be written.`,
      why: `${messageOf(error)}.`,
      act: 'Give it to the user that the daemon runs as, or set spool.path.',
    }
  }
}

async function existing(path: string): Promise<string> {
  try {
    await stat(path)
    return path
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
    return existing(dirname(path))
  }
}

function addressOf(url: URL): { host: string; port: number } {
  const standard = url.protocol === 'https:' ? 443 : 80
  return { host: bareHost(url.hostname), port: url.port === '' ? standard : Number(url.port) }
}

function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
