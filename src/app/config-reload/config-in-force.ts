// config-in-force.ts: which options of a changed config are in force without a restart, and which are not.
//
//   at once      the mapping with its sections, alerts, `log`, `ops.silence`, `ops.time_zone`, most limits of
//                `ingest.broker` (ingest/config.ts)
//   where its    users, tokens, password files and certificates of listeners and bridges: with the same
//   place is     listeners and bridges. Users and certificates of ops: with the same `ops.listen`. All of
//   the same     delivery: with the same services (base_url, provider_key, proxy, source of the credentials,
//                mode). With another service all of it waits for the restart: keys and certificates may not
//                be meant for the service in force, and sealed batches stay with it
//   by restart   everything else

import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../config/config.ts'
import { liveLimits } from '../../ingest/config.ts'

/** The config in force after a reload: `next`, but for what stays as it is at `present`. */
export function configInForce(next: Config, present: Config): Config {
  const { broker, bridges } = next.ingest
  const live = Object.fromEntries(liveLimits.map((name) => [name, broker.limits[name]]))
  const ownBroker = { ...present.ingest.broker, limits: { ...present.ingest.broker.limits, ...live } }
  const { access, listeners } = broker
  const ingest = isSameBroker(next, present)
    ? { ...present.ingest, broker: { ...ownBroker, access, listeners }, bridges }
    : { ...present.ingest, broker: ownBroker }
  const { users, tls, silence, time_zone } = next.ops
  const opsAccess = isSameOps(next, present) ? { users, tls } : {}
  return {
    ...next,
    ingest,
    spool: present.spool,
    delivery: isSameService(next, present) ? next.delivery : present.delivery,
    ledger: present.ledger,
    ops: { ...present.ops, ...opsAccess, silence, time_zone },
  }
}

/** The options that differ, as paths such as `delivery.batch.linger`. A list is one option. */
export function differingOptions(one: unknown, other: unknown, path = ''): readonly string[] {
  if (isDeepStrictEqual(one, other)) return []
  if (!isSection(one) || !isSection(other)) return [path]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].flatMap((name) =>
    differingOptions(one[name], other[name], path === '' ? name : `${path}.${name}`),
  )
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** Other listeners and bridges need a restart. */
export function isSameBroker(one: Config, other: Config): boolean {
  return isDeepStrictEqual(listenersOf(one), listenersOf(other)) && areSameBridges(one, other)
}

export function isSameOps(one: Config, other: Config): boolean {
  return isDeepStrictEqual(opsListenerOf(one), opsListenerOf(other))
}

export function isSameService(one: Config, other: Config): boolean {
  return isDeepStrictEqual(servicesOf(one), servicesOf(other))
}

export function areSameBridges(one: Config, other: Config): boolean {
  return isDeepStrictEqual(bridgesOf(one), bridgesOf(other))
}

function opsListenerOf({ ops: { listen, tls } }: Config) {
  return { listen, tls: tls !== undefined }
}

function listenersOf({ ingest: { broker } }: Config) {
  return broker.listeners.map((listener) => {
    const { access: _, tls, ...fixed } = listener
    const asksForCertificate = tls?.client_ca !== undefined
    return { ...fixed, asksForCertificate, certificateName: tls?.certificate_name }
  })
}

/**
 * Where they connect to, and what they do there; with another address, the password may not be meant for it.
 */
function bridgesOf({ ingest }: Config) {
  return ingest.bridges.map(({ username: _name, password: _password, tls: _tls, ...fixed }) => ({
    ...fixed,
    token: undefined,
  }))
}

type ServiceConfig = Config['delivery'] | NonNullable<Config['delivery']['providers']>[number]

/** Where delivery connects to, and by which operation. */
function servicesOf({ delivery }: Config) {
  return [delivery, ...(delivery.providers ?? [])].map((one: ServiceConfig) => {
    const { base_url, provider_key, proxy, credentials, mode } = one
    const source = credentials?.source === 'keys' ? credentials.source : credentials
    return { name: 'name' in one ? one.name : null, base_url, provider_key, proxy, source, mode }
  })
}
