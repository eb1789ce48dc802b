// plan.ts: what a seed draws before anything runs: config, fleet, service, length, faults.

import type { Random } from '../support/random.ts'
import type { DevicePlan } from './world/fleet.ts'
import type { RepeatBehaviour } from './world/service.ts'

export type Plan = {
  seed: number
  providers: { name: string; host: string; port: number; repeat: RepeatBehaviour }[]
  devices: DevicePlan[]
  payloadsMax: number
  config: string
  /** Virtual time with faults. */
  safetyMs: number
  /** Means between two faults of a kind; 0: none. */
  everyMs: Record<FaultKind, number>
}

export type FaultKind =
  'kill' | 'powerCut' | 'stop' | 'dropDevice' | 'network' | 'service' | 'disk' | 'operator'

export const mqttPort = 1883

export function drawPlan(seed: number, random: Random): Plan {
  const names = random.chance(0.3) ? ['own', 'partner'] : ['own']
  const providers = names.map((name) => ({
    name,
    host: `${name}.service.test`,
    port: 8000,
    repeat: random.pick<RepeatBehaviour>(['same', 'same', 'fresh', 'conflict']),
  }))
  const payloadsMax = random.pick([1, 2, 5, 20, 500])
  const count = 1 + random.below(6)
  const safetyMs = random.pick([60_000, 180_000, 600_000])
  const devices = Array.from({ length: count }, (_, index): DevicePlan => {
    const qos = random.pick([1, 1, 1, 2, 0] as const)
    const provider = random.pick(providers)
    return {
      id: `truck-${index + 1}`,
      provider: provider.name,
      version: random.pick([4, 5]),
      qos,
      window: random.pick([1, 1, 4, 16]),
      everyMs: (safetyMs / 10) * (0.3 + random.next()),
      poison: random.chance(0.2) ? 0.2 : 0,
      isDoomed: mayFail(provider.repeat) && random.chance(0.1),
      cleanSession: random.chance(0.5),
    }
  })
  const every = (share: number, meanMs: number) => (random.chance(share) ? meanMs * (0.5 + random.next()) : 0)
  return {
    seed,
    providers,
    devices,
    payloadsMax,
    config: configText({ providers, payloadsMax, random }),
    safetyMs,
    everyMs: {
      kill: every(0.7, safetyMs / 2),
      powerCut: every(0.5, safetyMs / 2),
      stop: every(0.3, safetyMs / 2),
      dropDevice: every(0.5, safetyMs / 10),
      network: every(0.4, safetyMs / 4),
      service: every(0.8, safetyMs / 10),
      disk: every(0.4, safetyMs / 3),
      operator: every(0.3, safetyMs / 5),
    },
  }
}

/**
 * A service that answers 409 for a batch that it knows does not say what failed in it. `on_repeat: delivered` then says
 * that nothing did, and the operator may set it only where that is so.
 */
export function mayFail(repeat: RepeatBehaviour): boolean {
  return repeat !== 'conflict'
}

function configText({
  providers,
  payloadsMax,
  random,
}: {
  providers: Plan['providers']
  payloadsMax: number
  random: Random
}): string {
  const sources = providers
    .map(
      ({ name }) => `
  - name: ${name}-trucks
    topic: ${name}/{device}
    provider: ${name}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      signals: [{ type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }]`,
    )
    .join('')
  const list = providers
    .map(
      ({ name, host, port }) =>
        `    - { name: ${name}, provider_key: ${name.toUpperCase()}, base_url: "http://${host}:${port}" }`,
    )
    .join('\n')
  return `
ingest:
  broker:
    listeners: [{ url: "mqtt://0.0.0.0:${mqttPort}" }]
    access: { anonymous: true, anonymous_beyond_loopback: true }
sources:${sources}
clocks: { trust_local: true }
spool: { path: /sim/spool, create: false, max_bytes: 16MiB, min_free_bytes: 1MiB }
delivery:
  base_url: "http://${providers[0]!.host}:${providers[0]!.port}"
  credentials: { source: environment }
  batch: { max_payloads: ${payloadsMax}, linger: ${random.pick(['0s', '1s', '5s'])} }
  max_in_flight: ${random.pick([1, 2, 4])}
  timeout: ${random.pick(['5s', '30s'])}
  on_repeat: ${providers.some(({ repeat }) => repeat === 'conflict') ? 'delivered' : 'hold'}
  errors: { Validation: [10s, 1m], default: [1s, 10s, 1m] }
  providers:
${list}
ops: { listen: "127.0.0.1:8080", control_socket: /sim/run/control.sock, silence: { after: 12h } }
log: { level: info }
`
}
