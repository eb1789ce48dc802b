// themes.ts: what some seeds have more of than chance gives: several rare things at once. A theme is drawn apart, so that
// the other seeds stay as they are.
//
//   answers    half answers, answers that leave out, and answers that are lost, of a service that fails a part
//   together   two people work on kept messages and dead letters at once, on a slow disk, and the process ends then
//   bounds     memory for a few messages: chunks are read from the disk, and what is remembered of devices moves there
//   requeue    dead letters are requeued while fresh payloads come
//   holes      the messages of one device leave the quarantine between those of others, and the process ends
//   outage     a service that fails for long, with a store that is lost meanwhile
//   cuts       a batch becomes smaller while a backlog waits, of which chunks are read from the disk
//   lanes      backlogs become backfill again and again, and the file that knows the numbers of lanes is lost
//   forget     a device is forgotten just when it sends, and the process ends
//   flips      bits flip at rest, in keys and values: of chunks and batches that wait for a service that fails, of dead
//              letters, and of what is known of devices
//   backoffs   a service that fails for so long that the batches wait long between their tries
//   rules      payloads fail in several ways, and a reload gives each rule fewer steps
//   custody    the messages come through a message engine, which gets its acknowledgement when they are delivered
//   full       a spool with room for a few payloads, and writes of one message: others wait, also when the gateway stops
//   told       outages told inside a 200, between answers that name some as failed: a failure is soon the last one
//   swaps      an older copy of the spool comes in its place again and again, while devices send
//   resends    acknowledgements that are lost, on a slow disk: by drops of devices and the end of the process
//   losses     writes fail while requests wait for their answers
//   keys       the service withdraws the keys while batches are under way, or asks to wait; odometers fall

import { createRandom, type Random } from '../support/random.ts'
import { noDelays, shortDelays, type ProviderPlan, type RetryDelays } from './delivery-plan.ts'
import { poisons } from './world/contents.ts'
import type { DevicePlan } from './world/fleet.ts'
import type { IngestPlan, Plan } from './plan.ts'
import type { Fault } from './world/service-faults.ts'

/** Of all seeds. */
const shares = {
  answers: 0.05,
  together: 0.05,
  bounds: 0.03,
  requeue: 0.01,
  holes: 0.02,
  outage: 0.02,
  full: 0.02,
  cuts: 0.015,
  lanes: 0.01,
  forget: 0.01,
  flips: 0.015,
  backoffs: 0.015,
  rules: 0.01,
  custody: 0.04,
  told: 0.02,
  swaps: 0.01,
  resends: 0.02,
  keys: 0.02,
  losses: 0.01,
} as const
export type Theme = keyof typeof shares

export function isTheme(name: string): name is Theme {
  return name in shares
}

const minuteMs = 60_000
const mebibyte = 1_048_576

export function themeOf(seed: number): Theme | null {
  let rest = createRandom(seed ^ 0x1f83d9ab).next()
  for (const theme of Object.keys(shares) as Theme[]) {
    rest -= shares[theme]
    if (rest < 0) return theme
  }
  return null
}

/** Of a service: one that tells its answers again would not say of what it forgot. */
export function providersOf(
  theme: Theme | null,
  providers: readonly ProviderPlan[],
  seed: number,
): ProviderPlan[] {
  const random = createRandom(seed ^ 0x2b0c1f77)
  if (theme === 'requeue') return providers.map((one) => ({ ...one, onRepeat: 'hold', refusesEvery: 0 }))
  if (theme === 'full') return providers.map((one) => ({ ...one, refusesEvery: 0 }))
  if (theme === 'told')
    return providers.map((one) => ({
      ...one,
      repeat: random.pick(['same', 'same', 'fresh']),
      onRepeat: 'hold',
      refusesEvery: 0,
    }))
  if (theme !== 'answers' && theme !== 'rules') return [...providers]
  return providers.map((provider) => {
    const repeat = random.pick(['conflict', 'fresh'] as const)
    const onRepeat = repeat === 'conflict' ? random.pick(['resend', 'hold'] as const) : 'hold'
    return { ...provider, repeat, onRepeat, refusesEvery: 0 }
  })
}

/** What ingest lets wait of a connection, and of all. */
export function ingestOf(theme: Theme | null, drawn: IngestPlan): IngestPlan {
  // Records that are open hold the acknowledgements of all messages behind them, and end while a device is away.
  if (theme === 'custody' || theme === 'resends') return { ...drawn, windowS: 5 }
  return theme === 'cuts' || theme === 'full' ? { ...drawn, inFlightMax: 1000, heldMax: 10_000 } : drawn
}

export function themed(plan: Plan, theme: Theme | null): Plan {
  return theme === null ? plan : { ...plan, ...planOf[theme](plan) }
}

/** A payload that failed twice in one way has no further step by `shortDelays`. */
const manySteps: RetryDelays = { Validation: [1000, 2000], default: [1000, 2000, 8000] }

const none = {
  ...({ kill: 0, powerCut: 0, stop: 0, network: 0, service: 0 } as const),
  ...({ disk: 0, operator: 0, away: 0, clock: 0, keys: 0 } as const),
} as const

const planOf: Readonly<Record<Theme, (plan: Plan) => Partial<Plan>>> = {
  flips: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({
      ...device,
      kind: 'plain',
      clockMs: 0,
      poison: 0.15,
      poisons: device.poisons.filter((poison) => poison !== 'a bad vehicle'),
      isDoomed: false,
      everyMs: Math.min(device.everyMs, 4000 * device.burst),
    })),
    delivery: { ...delivery, lingerS: Math.min(5, delivery.lingerS) },
    spoolBounds: { recentBytesMax: 1500 },
    everyMs: { ...everyMs, ...none, service: 8000, kill: 15_000, stop: 20_000, flip: 5000 },
  }),
  answers: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...device, everyMs: Math.min(device.everyMs, 6000) })),
    delivery: { ...delivery, payloadsMax: Math.max(5, delivery.payloadsMax), lingerS: 1 },
    everyMs: { ...everyMs, ...none, kill: everyMs.kill, service: 8000 },
  }),
  together: ({ devices, everyMs }) => ({
    safetyMs: 0.7 * minuteMs,
    devices: devices.map((device, index) => aheadOf(device, index, index % 2 === 0)),
    everyMs: {
      ...everyMs,
      ...none,
      powerCut: everyMs.powerCut,
      operator: 2500,
      disk: 6000,
      kill: 12_000,
      service: 10_000,
    },
  }),
  bounds: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...device, everyMs: Math.min(device.everyMs, 4000 * device.burst) })),
    delivery: { ...delivery, lingerS: Math.min(1, delivery.lingerS), maxInFlight: 4 },
    habit: 'reload',
    spoolBounds: {
      recentBytesMax: 1500,
      lateRecords: { recordsMax: 8, bytesMax: 1500 },
      forgetMs: 3000,
      buffers: { stepBytes: 512, freeBytesMax: 4096 },
    },
    everyMs: { ...everyMs, ...none, service: 8000, kill: 15_000, powerCut: 15_000, operator: 6000 },
  }),
  requeue: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device, index) => {
      const isDoomed = index % 2 === 0 && device.kind !== 'parts'
      return { ...device, isDoomed, clockMs: 0, everyMs: Math.min(device.everyMs, 3000 * device.burst) }
    }),
    delivery: {
      ...delivery,
      payloadsMax: 20,
      lingerS: 5,
      backfillAfterS: 60,
      retryDelays: { Validation: [], default: [] },
    },
    habit: 'requeue',
    turnMs: 1,
    everyMs: { ...everyMs, ...none, operator: 3000, disk: 6000 },
  }),
  holes: ({ devices, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device, index) => aheadOf(device, index, true)),
    habit: 'release devices',
    everyMs: { ...everyMs, ...none, operator: 4000, kill: 8000 },
  }),
  outage: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    lookEveryMs: 1000,
    devices: devices.map((device) => ({ ...device, burst: 1, everyMs: 4000 * devices.length })),
    delivery: { ...delivery, timeoutS: 5, lingerS: 1, maxInFlight: 2 },
    everyMs: { ...everyMs, ...none, service: 20_000, disk: 8000 },
  }),
  rules: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...inBursts(device), isDoomed: false })),
    delivery: { ...delivery, payloadsMax: 20, lingerS: 1, retryDelays: manySteps },
    rulesChange: { atMs: 0.5 * minuteMs, retryDelays: shortDelays },
    everyMs: { ...everyMs, ...none, service: 4000 },
  }),
  backoffs: ({ devices, delivery, everyMs }) => ({
    safetyMs: 2 * minuteMs,
    lookEveryMs: 1000,
    devices: devices.map((device) => ({ ...device, burst: 1, everyMs: 3000 * devices.length })),
    delivery: { ...delivery, timeoutS: 5, lingerS: 0, maxInFlight: 2 },
    everyMs: { ...everyMs, ...none, service: 10_000 },
  }),
  cuts: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.slice(0, 2).map(inBursts),
    delivery: { ...delivery, payloadsMax: 20, lingerS: 1, maxInFlight: 4 },
    habit: 'reload',
    spoolBounds: { recentBytesMax: 1500 },
    everyMs: { ...everyMs, ...none, kill: 20_000, operator: 4000 },
  }),
  lanes: ({ devices, delivery, everyMs }) => ({
    safetyMs: 2 * minuteMs,
    devices: devices.slice(0, 3).map((device) => ({ ...device, burst: 1, everyMs: 2000 })),
    delivery: { ...delivery, payloadsMax: 1, lingerS: 0, timeoutS: 5 },
    spoolBounds: { forgetMs: 2000 },
    everyMs: { ...everyMs, ...none, service: 6000, powerCut: 15_000 },
  }),
  forget: ({ devices, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => remembering(device)),
    habit: 'forget',
    everyMs: { ...everyMs, ...none, operator: 4000, kill: 6000 },
  }),
  told: ({ seed, devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    lookEveryMs: 1000,
    devices: devices.map((device) => ({
      ...device,
      clockMs: Math.min(0, device.clockMs),
      poison: 0,
      isDoomed: false,
      everyMs: Math.min(device.everyMs, 3000 * device.burst),
    })),
    delivery: {
      ...delivery,
      payloadsMax: 5,
      lingerS: Math.min(1, delivery.lingerS),
      maxInFlight: 2,
      timeoutS: 5,
      retryDelays: seed % 3 === 0 ? shortDelays : noDelays,
    },
    everyMs: { ...everyMs, ...none, service: 4000 },
  }),
  swaps: ({ devices, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...device, everyMs: Math.min(device.everyMs, 3000 * device.burst) })),
    everyMs: { ...everyMs, ...none, stop: 10_000, disk: 9000 },
  }),
  resends: ({ seed, devices, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device, index) => resending(device, seed + index)),
    everyMs: { ...everyMs, ...none, dropDevice: 3000, disk: 6000, kill: 8000, powerCut: everyMs.powerCut },
  }),
  losses: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...device, everyMs: Math.min(device.everyMs, 2000 * device.burst) })),
    delivery: { ...delivery, timeoutS: 30, lingerS: 0, maxInFlight: 4 },
    everyMs: { ...everyMs, ...none, disk: 5000, service: 3000 },
  }),
  keys: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({
      ...device,
      qos: [device.qos.includes(2) ? 2 : 1],
      fallsEvery: 3,
      poison: 0,
      clockMs: Math.min(0, device.clockMs),
      isDoomed: false,
      everyMs: Math.min(device.everyMs, 2000 * device.burst),
    })),
    delivery: { ...delivery, payloadsMax: 5, lingerS: 1, maxInFlight: 4, keysInFile: true },
    everyMs: { ...everyMs, ...none, service: 6000, keys: 8000 },
  }),
  full: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => {
      const { clockMs, burst } = device
      return {
        ...device,
        clockMs: Math.min(0, clockMs),
        poison: 0,
        isDoomed: false,
        window: 16,
        everyMs: 2000 * burst,
      }
    }),
    delivery: { ...delivery, timeoutS: 5, lingerS: Math.min(1, delivery.lingerS) },
    turnMs: 1,
    spoolBounds: {
      bytesMax: mebibyte + 24_000,
      reserveBytes: mebibyte,
      uncommittedBytesMax: 200,
      lateRecords: { recordsMax: 8, bytesMax: 1500 },
    },
    everyMs: { ...everyMs, ...none, service: 8000, disk: 6000 },
  }),
  custody: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map(throughEngine),
    delivery: { ...delivery, lingerS: Math.min(1, delivery.lingerS) },
    everyMs: { ...everyMs, clock: 0, service: 8000, dropDevice: 8000 },
  }),
}

export function hasSlowWrites(theme: Theme | null): boolean {
  return theme === 'requeue' || theme === 'full' || theme === 'resends'
}

/** What the service meets in place of what the seed draws; null: that. */
export function faultOf(theme: Theme | null, random: Random): Fault | null {
  if (theme === 'outage' || theme === 'full' || theme === 'lanes')
    return random.pick<() => Fault>([
      () => ({ kind: 'hang', processes: random.chance(0.5) }),
      () => ({ kind: 'status', status: random.pick([500, 503]), processes: random.chance(0.5) }),
      () => ({ kind: 'status', status: random.pick([500, 503]), processes: random.chance(0.5) }),
      () => ({ kind: 'reset', when: random.pick(['before', 'after']) }),
    ])()
  if (theme === 'flips' || theme === 'backoffs') return { kind: 'status', status: 503, processes: false }
  if (theme === 'told')
    return random.pick<() => Fault>([
      () => ({ kind: 'outage', errorType: 'Throttled', isLost: true }),
      () => ({ kind: 'outage', errorType: random.pick(['Throttled', 'Internal']), isLost: false }),
      () => ({ kind: 'some failed', share: 0.5, errorTypes: ['Throttled', 'Internal'] }),
    ])()
  if (theme === 'losses')
    return random.pick<() => Fault>([
      () => ({ kind: 'slow', ms: 500 + random.below(8000) }),
      () => ({ kind: 'hang', processes: random.chance(0.5) }),
    ])()
  if (theme === 'keys')
    return random.pick<() => Fault>([
      () => ({ kind: 'slow', ms: 500 + random.below(3000) }),
      () => ({
        kind: 'status',
        status: random.pick([429, 503]),
        retryAfterS: 10 + random.below(30),
        processes: false,
      }),
    ])()
  if (theme === 'rules')
    return { kind: 'some failed', share: 0.6, errorTypes: ['Throttled', 'Validation', 'Busy'] }
  if (theme !== 'answers') return null
  return random.pick<() => Fault>([
    () => ({
      kind: 'truncated',
      part: 0.3 + 0.6 * random.next(),
      times: random.pick([1, 2, 12]),
    }),
    () => ({ kind: 'unlisted', share: 0.5, processes: false, isSteady: true, times: 1 + random.below(2) }),
    () => ({ kind: 'some failed', share: 0.5, errorTypes: ['Throttled', 'Validation', 'Busy'] }),
    () => ({ kind: 'reset', when: 'after' }),
    () => ({ kind: 'status', status: 500, processes: true }),
    () => ({ kind: 'odd', how: 'short list' }),
  ])()
}

/** What the standard of MQTT forbids never comes to the engine. */
function throughEngine(device: DevicePlan): DevicePlan {
  const ofEngine = device.poisons.filter((poison) => !poisons[poison].endsConnection)
  const everyMs = Math.min(device.everyMs, 4000 * device.burst)
  return { ...device, qos: [1], poisons: ofEngine, clockMs: Math.min(0, device.clockMs), everyMs }
}

function inBursts(device: DevicePlan): DevicePlan {
  const { kind, burst } = device
  return { ...device, burst: kind === 'parts' ? burst : 12, window: 16, everyMs: 8000 }
}

/** By `number` one of those whose messages only an identifier tells apart, or of which the one before is remembered. */
function resending(device: DevicePlan, number: number): DevicePlan {
  const kind = (['parkedUntimed', 'untimed', 'differences', 'parts'] as const)[number % 4]!
  const isExact = kind === 'parkedUntimed'
  const isBurst = kind === 'differences'
  return {
    ...device,
    kind,
    qos: isExact ? [2] : [1],
    window: isBurst ? 4 : 1,
    burst: isBurst ? 3 : 1,
    everyMs: 2000,
    partMs: 0,
    clockMs: 0,
    poison: 0,
    isDoomed: false,
    cleanShare: kind === 'untimed' ? 1 : 0,
    expiriesS: [86_400],
    identifiers: isExact ? 'lowest' : 'counting',
    isEager: true,
  }
}

/** A device of which the gateway remembers what it sent last. */
function remembering(device: DevicePlan): DevicePlan {
  const qos = [device.qos.includes(2) ? 2 : 1] as const
  return { ...device, kind: 'differences', qos, burst: 1, clockMs: 0, poison: 0, everyMs: 6000 }
}

/** Of those that have the time of a message. */
function aheadOf(device: DevicePlan, index: number, isAhead: boolean): DevicePlan {
  const isTimed = device.kind === 'plain' || device.kind === 'parked'
  const everyMs = Math.min(device.everyMs, 3000 * device.burst)
  return { ...device, everyMs, clockMs: isTimed && isAhead ? 4_000_000 + index : device.clockMs }
}
