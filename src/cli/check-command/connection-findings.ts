// connection-findings.ts: the checks of `check --connect`, which `doctor` makes too, one step each, so that
// the first failed step is the cause: the connection to the service of each provider, its keys, the spool
// directory, each bridge, and each receiver of alerts.
// Changes nothing, sends no telemetry and takes no message.

import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { isLoopback } from '../../std/loopback.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import { accountIn } from './account-number.ts'
import { visible } from '../../std/quote.ts'
import type { Config } from '../../config/config.ts'
import { deliveryOptions } from '../../delivery/config.ts'
import { freeFilesMin, realDisk } from '../../storage/storage.ts'
import { tryReceivers } from '../alerts-command/config-alerts.ts'
import { checkAnyBridge } from '../../ingest/ingest.ts'
import {
  checkCompression,
  checkConnection,
  findSigningKeys,
  type SigningKeys,
} from '../../delivery/delivery.ts'

/** The result of one check. */
export type Finding = {
  name: string
  /** `warning`: works, and a person should change it. `skipped`: cannot be checked here, `what` says why. */
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  what: string
  why?: string
  /** The cure. */
  act?: string
  /** Providers that the check is about; missing where it is about none. */
  providers?: readonly string[]
}

const nameColumns = 12

/** One line, with the cure. `several`: the config has more than one provider. */
export function findingLine(
  { name, state, what, why, act, providers = [] }: Finding,
  several: boolean,
): string {
  const about = several && providers.length > 0 ? [`${providers.join(', ')}:`] : []
  const text = [...about, what, why, act].filter((part) => part !== undefined).join(' ')
  const line = text.replaceAll('\n', '; ')
  return `${state.padEnd(8)} ${name.padEnd(nameColumns)} ${visible(line)}\n`
}

export type Provider = ReturnType<typeof deliveryOptions>['providers'][number]
type Io = { env: NodeJS.ProcessEnv; stop: AbortSignal }

/** `more`: what else is tried with the keys of a provider. */
export async function* checkSurroundings(
  config: Config,
  io: Io,
  more?: (provider: Provider, keys: SigningKeys) => AsyncIterable<Finding>,
): AsyncGenerator<Finding> {
  const { providers } = deliveryOptions(config.delivery)
  /** Providers without a connection. */
  const failed = new Set<string>()
  for (const [first, names] of connectionsOf(providers))
    for await (const step of checkWay(first, names, io)) {
      yield step
      if (step.state === 'failed') for (const name of names) failed.add(name)
    }
  for (const provider of providers) {
    const { keys, finding } = await checkKeys(provider, io)
    yield finding
    if (keys === null) continue
    if (more !== undefined) yield* more(provider, keys)
    if (failed.has(provider.name)) continue
    const compression = await checkCompression({ clock: systemClock, ...io }, provider)
    if (compression !== null) yield fromStep('compression', compression, [provider.name])
  }
  yield await checkSpool(config)
  for (const bridge of await tryBridges(config, io.stop)) yield { name: 'bridge', ...bridge }
  yield* await checkAlerts(config, io)
}

function fromStep(
  name: string,
  { ok, what, why, act }: { ok: boolean; what: string; why?: string; act?: string },
  providers: readonly string[],
): Finding {
  const more = { ...(why !== undefined && { why }), ...(act !== undefined && { act }) }
  return { name, state: ok ? 'ok' : 'failed', what, ...more, providers }
}

async function* checkWay(provider: Provider, providers: readonly string[], io: Io): AsyncGenerator<Finding> {
  let isProxied = false
  for await (const { name, ...step } of checkConnection(provider, io)) {
    if (name === 'proxy') isProxied = true
    yield fromStep(name, step, providers)
  }
  if (!isProxied) yield { name: 'proxy', state: 'ok', what: 'The connection uses no proxy.', providers }
  const { protocol, hostname } = new URL(provider.baseUrl)
  if (protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
    yield {
      name: 'tls',
      state: 'warning',
      what: 'delivery.base_url is http://: positions are sent without encryption.',
      act: 'Use https://.',
      providers,
    }
}

/** All at once: a broker that does not answer takes its `connect_timeout`. */
function tryBridges(
  { ingest }: Config,
  stop: AbortSignal,
): Promise<Awaited<ReturnType<typeof checkAnyBridge>>[]> {
  return Promise.all(ingest.bridges.map((bridge) => checkAnyBridge(bridge, stop)))
}

/** Whether each receiver of alerts can be reached; sends nothing. */
async function checkAlerts(config: Config, io: Io): Promise<Finding[]> {
  const tests = await tryReceivers(config, io)
  return tests.map(({ name, type, target, ok, detail, act }) => {
    const about = `${name} (${type} ${target})`
    if (ok) return { name: 'alerts', state: 'ok', what: `${about}: ${detail}` }
    return {
      name: 'alerts',
      state: 'failed',
      what: `${about} cannot be reached.`,
      why: `${detail}.`,
      act: act ?? '',
    }
  })
}

/** One provider of each connection, with the names of all that use it. */
function connectionsOf(providers: readonly Provider[]): readonly (readonly [Provider, readonly string[]])[] {
  const found = new Map<string, [Provider, string[]]>()
  for (const provider of providers) {
    const { baseUrl, proxy, ca, clientCertificate } = provider
    const key = JSON.stringify([baseUrl, proxy, ca, clientCertificate?.cert])
    const known = found.get(key)
    if (known) known[1].push(provider.name)
    else found.set(key, [provider, [provider.name]])
  }
  return [...found.values()]
}

async function checkKeys(
  provider: Provider,
  { env }: Io,
): Promise<{ keys: SigningKeys | null; finding: Finding }> {
  const about = { name: 'credentials', providers: [provider.name] } as const
  const { source } = provider.credentials
  try {
    const keys = await findSigningKeys({ clock: systemClock, env }, provider)
    const { accessKeyId, expiresAt } = keys
    const account = accountIn(accessKeyId)
    const parts = [
      `Access key ${accessKeyId} from ${source}`,
      ...(account === null ? [] : [`of the account ${account}`]),
      ...(keys.sessionToken === null ? [] : ['with a session token']),
      ...(expiresAt === null ? [] : [`valid until ${new Date(expiresAt).toISOString()}`]),
    ]
    const what = `${parts.join(', ')}.`
    if (expiresAt === null || expiresAt > systemClock.now())
      return { keys, finding: { ...about, state: 'ok', what } }
    const act = 'Renew them at their source; check also the clock of this machine.'
    return { keys: null, finding: { ...about, state: 'failed', what, why: 'They have expired.', act } }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { what, why, act } = error
    return { keys: null, finding: { ...about, state: 'failed', what, why, act } }
  }
}

/** Looks at the nearest existing directory: the check must not create the spool. */
async function checkSpool({ spool }: Config): Promise<Finding> {
  const name = 'spool'
  try {
    const directory = await nearestExisting(spool.path)
    if (!(await stat(directory)).isDirectory()) throw new Error(`${directory} is not a directory`)
    await access(directory, constants.W_OK | constants.X_OK)
    const { bytes: free, files } = await realDisk.free(directory)
    if (files < freeFilesMin)
      return {
        name,
        state: 'failed',
        what: `The disk of ${spool.path} has only ${plural(files, 'free inode')}.`,
        why: `Each file takes one. Below ${freeFilesMin} the gateway acknowledges nothing.`,
        act: 'Delete files on that file system (`df -i`), or put the spool on another disk.',
      }
    if (free >= spool.min_free_bytes)
      return { name, state: 'ok', what: `${spool.path} is writable, ${formatSize(free)} free.` }
    return {
      name,
      state: 'failed',
      what: `The disk of ${spool.path} has only ${formatSize(free)} free.`,
      why: `spool.min_free_bytes is ${formatSize(spool.min_free_bytes)}. Below it the gateway acknowledges nothing.`,
      act: 'Free space, or put the spool on another disk.',
    }
  } catch (error) {
    return {
      name,
      state: 'failed',
      what: `The spool directory ${spool.path} is not writable.`,
      why: `${messageOf(error)}.`,
      act: 'Give the user of the daemon write access, or change spool.path.',
    }
  }
}

export async function nearestExisting(path: string): Promise<string> {
  try {
    await stat(path)
    return path
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
    return nearestExisting(dirname(path))
  }
}
