// plan.ts: what a seed draws before anything runs: config, fleet, service, length, faults.

import type { Random } from '../support/random.ts'
import type { DevicePlan } from './world/fleet.ts'
import { deliveryText, drawDelivery, drawProviders, mayFail } from './delivery-plan.ts'
import type { DeliveryPlan, ProviderPlan } from './delivery-plan.ts'

export type Plan = {
  seed: number
  providers: ProviderPlan[]
  devices: DevicePlan[]
  delivery: DeliveryPlan
  /** What stands before the section `delivery`, and behind it. */
  config: (delivery: DeliveryPlan) => string
  /** Virtual time with faults. */
  safetyMs: number
  /** Means between two faults of a kind; 0: none. */
  everyMs: Record<FaultKind, number>
}

export type FaultKind =
  'kill' | 'powerCut' | 'stop' | 'dropDevice' | 'network' | 'service' | 'disk' | 'operator'

export const mqttPort = 1883

export function drawPlan(seed: number, random: Random): Plan {
  const providers = drawProviders(random)
  const delivery = drawDelivery(random)
  const isFast = random.chance(0.5)
  const count = 1 + random.below(6)
  const safetyMs = random.pick([60_000, 180_000, 600_000])
  const devices = Array.from({ length: count }, (_, index): DevicePlan => {
    const qos = random.pick([1, 1, 1, 2, 0] as const)
    const provider = random.pick(providers)
    const burst = isFast ? random.pick([1, 5, 15, 40]) : random.pick([1, 1, 1, 5])
    return {
      id: `truck-${index + 1}`,
      provider: provider.name,
      version: random.pick([4, 5]),
      qos,
      window: random.pick([1, 1, 4, 16]),
      burst,
      // Fewer bursts than single messages, so that a seed stays small.
      everyMs: (safetyMs / 10) * (0.3 + random.next()) * Math.sqrt(burst),
      poison: random.chance(0.2) ? 0.2 : 0,
      isDoomed: mayFail(provider) && random.chance(0.1),
      cleanSession: random.chance(0.5),
    }
  })
  const every = (share: number, meanMs: number) => (random.chance(share) ? meanMs * (0.5 + random.next()) : 0)
  return {
    seed,
    providers,
    devices,
    delivery,
    config: (delivery) => configText(providers, delivery),
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

function configText(providers: readonly ProviderPlan[], delivery: DeliveryPlan): string {
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
  return `
ingest:
  broker:
    listeners: [{ url: "mqtt://0.0.0.0:${mqttPort}" }]
    access: { anonymous: true, anonymous_beyond_loopback: true }
sources:${sources}
clocks: { trust_local: true }
spool: { path: /sim/spool, create: false, max_bytes: 16MiB, min_free_bytes: 1MiB }
${deliveryText(providers, delivery)}
ops: { listen: "127.0.0.1:8080", control_socket: /sim/run/control.sock, silence: { after: 12h } }
log: { level: info }
`
}
