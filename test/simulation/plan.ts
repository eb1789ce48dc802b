// plan.ts: what a seed draws before anything runs: config, fleet, service, length, faults.

import type { SpoolOptions } from '../../src/spool/spool.ts'
import { createRandom, type Random } from '../support/random.ts'
import { mayLosePosition, packetBytesMax, sourcesOf } from './world/contents.ts'
import { drawDevices } from './world/device-plans.ts'
import type { DevicePlan } from './world/fleet.ts'
import { deliveryText, drawDelivery, drawProviders, mayFail } from './delivery-plan.ts'
import type { DeliveryPlan, ProviderPlan, RulesChange } from './delivery-plan.ts'
import { drawEngine, engineText, type EnginePlan } from './engine-plan.ts'
import type { Habit } from './acts/operator.ts'
import { ingestOf, providersOf, themed, themeOf, type Theme } from './themes.ts'

export type Plan = {
  seed: number
  theme: Theme | null
  providers: ProviderPlan[]
  devices: DevicePlan[]
  /** Their messages come through it; null: they connect to the gateway. */
  engine: EnginePlan | null
  delivery: DeliveryPlan
  /** `isPositionLost`: the mapping looks for the position where it is not. */
  config: (delivery: DeliveryPlan, isPositionLost?: boolean) => string
  /** In this part of the safety phase the position is lost. */
  positionLoss: { fromMs: number; toMs: number } | null
  /** From then on the rules of failures are others. */
  rulesChange: RulesChange | null
  /** The clock of the machine goes on without power. Without it, a server of the time sets it after each boot. */
  hasClockBattery: boolean
  /** `delivery.backoff.max` */
  backoffS: number
  /** Virtual time with faults. */
  safetyMs: number
  /** The end waits for all that takes long: conditions that stay for an hour, devices whose payloads are refused. */
  isPatient: boolean
  /** Between two looks at what the gateway says of itself. */
  lookEveryMs: number
  /** What happens within so long is in one turn of the daemon. */
  turnMs: number
  /** Where the spool has less room in memory than usual. */
  spoolBounds: Partial<SpoolOptions>
  /** What the operator does; null: anything. */
  habit: Habit | null
  /** Means between two faults of a kind; 0: none. */
  everyMs: Record<FaultKind, number>
}

export type IngestPlan = { windowS: number; inFlightMax: number; heldMax: number }

export const faultKinds = [
  ...(['kill', 'powerCut', 'stop', 'dropDevice', 'network', 'service'] as const),
  ...(['disk', 'operator', 'away', 'clock', 'keys', 'flip'] as const),
] as const
export type FaultKind = (typeof faultKinds)[number]

export const mqttPort = 1883

/** Many short runs find more than few long ones; some things take long. */
const lengths = [30_000, 30_000, 45_000, 45_000, 60_000, 60_000, 120_000] as const
const long = { share: 0.005, ms: 600_000 } as const
/** One of them takes as long as ten others; with a message engine, whose connections have heartbeats, as forty. */
const patientShare = 0.004
/** Each device must send several messages until a loss is noticed. */
const positionLoss = { share: 0.08, everyMs: 1500, countMax: 60 } as const

export function drawPlan(seed: number, random: Random): Plan {
  const theme = themeOf(seed)
  const providers = providersOf(theme, drawProviders(random), seed)
  const delivery = drawDelivery(random)
  const safetyMs = random.chance(long.share) ? long.ms : random.pick(lengths)
  const devices = drawDevices(random, {
    providers: providers.map((provider) => ({ name: provider.name, mayFail: mayFail(provider) })),
    everyMs: safetyMs / 4,
  })
  const ingest = ingestOf(theme, {
    windowS: random.pick([5, 30, 120]),
    inFlightMax: random.pick([2, 5, 1000]),
    heldMax: random.pick([1, 3, 10_000]),
  })
  const spoolMiB = random.pick([1, 16])
  const every = (share: number, meanMs: number) => (random.chance(share) ? meanMs * (0.5 + random.next()) : 0)
  const hasClockBattery = random.chance(0.9)
  const clock = hasClockBattery ? every(0.15, safetyMs / 3) : 0
  // With short waits a service that fails is soon unavailable.
  const drawnS = random.pick([60, 60, 2])
  const backoffS = theme === 'backoffs' ? 60 : drawnS
  const isClockWrong = clock > 0 || !hasClockBattery
  const loss = isClockWrong ? null : drawLoss(createRandom(seed ^ 0x7a3d5c1b), safetyMs)
  const isThemed = !isClockWrong && loss === null
  const isThroughEngine = isThemed && theme === 'custody'
  const engine = isThroughEngine ? drawEngine(createRandom(seed ^ 0x51ab60c7)) : null
  const plan: Plan = {
    seed,
    theme,
    providers,
    devices: isClockWrong
      ? devices.map(withoutMemory)
      : loss === null
        ? devices
        : devices.map((device) => losingPosition(device, safetyMs)),
    engine,
    delivery,
    config: (delivery, isPositionLost = false) =>
      configText({
        providers,
        engine,
        delivery,
        ingest,
        spoolMiB,
        hasClockBattery,
        backoffS,
        isPositionLost,
      }),
    positionLoss: loss,
    rulesChange: null,
    hasClockBattery,
    backoffS,
    safetyMs,
    isPatient: random.chance(patientShare) && engine === null,
    lookEveryMs: 10_000,
    turnMs: 0,
    spoolBounds: {},
    habit: null,
    everyMs: {
      kill: every(0.5, safetyMs / 1.5),
      powerCut: every(0.35, safetyMs / 1.5),
      stop: every(0.25, safetyMs / 1.5),
      dropDevice: every(0.5, safetyMs / 10),
      network: every(0.4, safetyMs / 4),
      service: every(0.8, safetyMs / 10),
      disk: every(0.4, safetyMs / 3),
      operator: every(0.4, safetyMs / 6),
      away: every(0.4, safetyMs / 3),
      clock,
      keys: delivery.keysInFile ? every(0.5, safetyMs / 3) : 0,
      flip: 0,
    },
  }
  return isThemed ? themed(plan, theme) : { ...plan, theme: null }
}

/** By draws of its own: other seeds stay as they are. */
function drawLoss(random: Random, safetyMs: number): Plan['positionLoss'] {
  if (!random.chance(positionLoss.share)) return null
  const fromMs = safetyMs * (0.3 + 0.2 * random.next())
  return { fromMs, toMs: fromMs + safetyMs * (0.2 + 0.4 * random.next()) }
}

/** What is released from quarantine has no part in what is noticed. */
function losingPosition(device: DevicePlan, safetyMs: number): DevicePlan {
  const kind = mayLosePosition(device.kind) ? device.kind : 'plain'
  const poisons = device.poisons.filter((poison) => poison !== 'a bad vehicle')
  const everyMs = Math.min(device.everyMs, Math.max(positionLoss.everyMs, safetyMs / positionLoss.countMax))
  return { ...device, kind, poisons, clockMs: 0, everyMs, burst: 1 }
}

/**
 * What was in quarantine while the clock of the machine was wrong has no part in what the mapping remembers, and the
 * oracle does not know which messages that were. The times of arrival go back with that clock.
 */
function withoutMemory(device: DevicePlan): DevicePlan {
  const isTimed = device.kind === 'plain' || device.kind === 'parked' || device.kind === 'several'
  return isTimed ? device : { ...device, kind: 'plain' }
}

type Config = {
  providers: readonly ProviderPlan[]
  engine: EnginePlan | null
  delivery: DeliveryPlan
  ingest: IngestPlan
  spoolMiB: number
  hasClockBattery: boolean
  backoffS: number
  isPositionLost: boolean
}

function configText(config: Config): string {
  const { providers, engine, delivery, ingest, spoolMiB, hasClockBattery, backoffS, isPositionLost } = config
  const { windowS, inFlightMax, heldMax } = ingest
  const sources = providers.map(({ name }) => sourcesOf(name, { windowS, isPositionLost })).join('')
  const listeners = engine === null ? `[{ url: "mqtt://0.0.0.0:${mqttPort}" }]` : '[]'
  return `
ingest:${engine === null ? '' : engineText(engine)}
  broker:
    listeners: ${listeners}
    access: { anonymous: true, anonymous_beyond_loopback: true }
    limits: { max_in_flight: ${inFlightMax}, max_packet_bytes: ${packetBytesMax}B, max_held_messages: ${heldMax} }
sources:${sources}
clocks: { trust_local: ${hasClockBattery} }
spool: { path: /sim/spool, create: false, max_bytes: ${spoolMiB}MiB, min_free_bytes: 1MiB }
${deliveryText(providers, delivery)}
  backoff: { min: 1s, max: ${backoffS}s }
ops: { listen: "127.0.0.1:8080", control_socket: /sim/run/control.sock, silence: { after: 12h } }
log: { level: info }
`
}
