// connection-findings.ts: the checks of `check --connect`, one step each, so that the first failed step is
// the cause:
// the connection to the service of each provider, its credentials, the spool directory, each bridge, and each
// receiver of alerts.
// Changes nothing, sends no telemetry and takes no message.

import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import type { Config } from '../../config/config.ts'
import { deliveryOptions } from '../../delivery/config.ts'
import { freeFilesMin, realDisk } from '../../storage/storage.ts'
import { tryReceivers } from '../alerts-command/config-alerts.ts'
import { checkAnyBridge } from '../../ingest/ingest.ts'
import {
  checkCompression,
  checkConnection,
  findCredentials,
  type ConnectionStep,
} from '../../delivery/delivery.ts'

export type Finding = Omit<ConnectionStep, 'name'> & {
  name: ConnectionStep['name'] | 'credentials' | 'compression' | 'spool' | 'bridge' | 'alerts'
  /** It can be used, and something about it is not as it should be. */
  warns?: true
  /** Providers of this connection or these credentials. Empty for the spool, bridges and alerts. */
  providers: readonly string[]
}

export type Provider = ReturnType<typeof deliveryOptions>['providers'][number]

export async function* checkSurroundings(
  config: Config,
  { env, stop }: { env: NodeJS.ProcessEnv; stop: AbortSignal },
): AsyncGenerator<Finding> {
  const { providers } = deliveryOptions(config.delivery)
  /** Providers without a connection. */
  const failed = new Set<string>()
  for (const [first, names] of connectionsOf(providers))
    for await (const step of checkConnection(first, { env, stop })) {
      yield { ...step, providers: names }
      if (!step.ok) for (const name of names) failed.add(name)
    }
  for (const provider of providers) {
    const credentials = await checkCredentials(provider, env)
    yield credentials
    if (!credentials.ok || failed.has(provider.name)) continue
    const compression = await checkCompression({ clock: systemClock, env, stop }, provider)
    if (compression !== null) yield { name: 'compression', providers: [provider.name], ...compression }
  }
  yield await checkSpool(config)
  for (const { state, ...finding } of await tryBridges(config, stop))
    yield {
      name: 'bridge',
      providers: [],
      ok: state !== 'failed',
      ...(state === 'warning' && { warns: true }),
      ...finding,
    }
  for (const finding of await checkAlerts(config, { env, stop })) yield { ...finding, providers: [] }
}

/** All at once: a broker that does not answer takes its `connect_timeout`. */
export function tryBridges(
  { ingest }: Config,
  stop: AbortSignal,
): Promise<Awaited<ReturnType<typeof checkAnyBridge>>[]> {
  return Promise.all(ingest.bridges.map((bridge) => checkAnyBridge(bridge, stop)))
}

/** Whether each receiver of alerts can be reached; sends nothing. */
export async function checkAlerts(
  config: Config,
  deps: { env: NodeJS.ProcessEnv; stop: AbortSignal },
): Promise<(Pick<ConnectionStep, 'ok' | 'what' | 'why' | 'act'> & { name: 'alerts' })[]> {
  const tests = await tryReceivers(config, deps)
  return tests.map(({ name, type, target, ok, detail, act }) => {
    const about = `${name} (${type} ${target})`
    if (ok) return { name: 'alerts', ok, what: `${about}: ${detail}` }
    return { name: 'alerts', ok, what: `${about} cannot be reached.`, why: `${detail}.`, act: act ?? '' }
  })
}

/** One provider of each connection, with the names of all that use it. */
export function connectionsOf(
  providers: readonly Provider[],
): readonly (readonly [Provider, readonly string[]])[] {
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

async function checkCredentials(provider: Provider, env: NodeJS.ProcessEnv): Promise<Finding> {
  const about = { name: 'credentials', providers: [provider.name] } as const
  const { source } = provider.credentials
  try {
    const { accessKeyId, expiresAt } = await findCredentials({ clock: systemClock, env }, provider)
    const validity = expiresAt === null ? '' : `, valid until ${new Date(expiresAt).toISOString()}`
    return { ...about, ok: true, what: `Access key ${accessKeyId} from ${source}${validity}.` }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { ...about, ok: false, what: error.what, why: error.why, act: error.act }
  }
}

/** Looks at the nearest existing directory: the check must not create the spool. */
export async function checkSpool({ spool }: Config): Promise<Finding> {
  const about = { name: 'spool', providers: [] } as const
  try {
    const directory = await nearestExisting(spool.path)
    if (!(await stat(directory)).isDirectory()) throw new Error(`${directory} is not a directory`)
    await access(directory, constants.W_OK | constants.X_OK)
    const { bytes: free, files } = await realDisk.free(directory)
    if (files < freeFilesMin)
      return {
        ...about,
        ok: false,
        what: `The disk of ${spool.path} has only ${plural(files, 'free inode')}.`,
        why: `Each file takes one. Below ${freeFilesMin} the gateway acknowledges nothing.`,
        act: 'Delete files on that file system (`df -i`), or put the spool on another disk.',
      }
    if (free >= spool.min_free_bytes)
      return { ...about, ok: true, what: `${spool.path} is writable, ${formatSize(free)} free.` }
    return {
      ...about,
      ok: false,
      what: `The disk of ${spool.path} has only ${formatSize(free)} free.`,
      why: `spool.min_free_bytes is ${formatSize(spool.min_free_bytes)}. Below it the gateway acknowledges nothing.`,
      act: 'Free space, or put the spool on another disk.',
    }
  } catch (error) {
    return {
      ...about,
      ok: false,
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
