// connection-findings.ts: the questions of `check --connect`, each asked by itself so that the first that fails names the cause: the
// way to the service of each provider, its credentials, and the spool directory. Nothing is changed, no telemetry is sent.

import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import type { Config } from '../../config/config.ts'
import { deliveryOptions } from '../../delivery/config.ts'
import { checkConnection, findCredentials, type ConnectionStep } from '../../delivery/delivery.ts'

export type Finding = Omit<ConnectionStep, 'name'> & {
  name: ConnectionStep['name'] | 'credentials' | 'spool'
  /** Whom it concerns; those with the same way are asked for once. Empty for the spool. */
  providers: readonly string[]
}

type Provider = ReturnType<typeof deliveryOptions>['providers'][number]

export async function* connectChecks(
  config: Config,
  { env, stop }: { env: NodeJS.ProcessEnv; stop: AbortSignal },
): AsyncGenerator<Finding> {
  const { providers } = deliveryOptions(config.delivery)
  for (const [first, names] of ways(providers))
    for await (const step of checkConnection(first, { env, stop })) yield { ...step, providers: names }
  for (const provider of providers) yield await checkCredentials(provider, env)
  yield await checkSpool(config)
}

/** One provider of each way, with the names of all that go it. */
function ways(providers: readonly Provider[]): readonly (readonly [Provider, readonly string[]])[] {
  const found = new Map<string, [Provider, string[]]>()
  for (const provider of providers) {
    const { baseUrl, proxy, ca, clientCertificate } = provider
    const way = JSON.stringify([baseUrl, proxy, ca, clientCertificate?.cert])
    const known = found.get(way)
    if (known) known[1].push(provider.name)
    else found.set(way, [provider, [provider.name]])
  }
  return [...found.values()]
}

async function checkCredentials(provider: Provider, env: NodeJS.ProcessEnv): Promise<Finding> {
  const about = { name: 'credentials', providers: [provider.name] } as const
  const { source } = provider.credentials
  try {
    const { accessKeyId, expiresAt } = await findCredentials({ clock: systemClock, env }, provider)
    const until = expiresAt === null ? '' : `, until ${new Date(expiresAt).toISOString()}`
    return { ...about, ok: true, what: `Access key ${accessKeyId} from ${source}${until}.` }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { ...about, ok: false, what: error.what, why: error.why, act: error.act }
  }
}

/** The directory itself, or where it would be made: looking must not make it. */
async function checkSpool({ spool }: Config): Promise<Finding> {
  const about = { name: 'spool', providers: [] } as const
  try {
    const place = await existing(spool.path)
    if (!(await stat(place)).isDirectory()) throw new Error(`${place} is no directory`)
    await access(place, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = await statfs(place)
    const free = bavail * bsize
    if (free >= spool.min_free_bytes)
      return { ...about, ok: true, what: `${spool.path} can be written, ${formatSize(free)} are free.` }
    return {
      ...about,
      ok: false,
      what: `The disk of ${spool.path} has ${formatSize(free)} free.`,
      why: `spool.min_free_bytes is ${formatSize(spool.min_free_bytes)}; below it acks are held.`,
      act: 'Free space, or put the spool on another disk.',
    }
  } catch (error) {
    return {
      ...about,
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
