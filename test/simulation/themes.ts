// themes.ts: what some seeds have more of than chance gives: several rare things at once. A theme is drawn apart, so that
// the other seeds stay as they are.
//
//   answers    half answers, answers that leave out, and answers that are lost, of a service that fails a part
//   together   two people work on kept messages and dead letters at once, on a slow disk, and the process ends then

import { createRandom, type Random } from '../support/random.ts'
import type { ProviderPlan } from './delivery-plan.ts'
import type { DevicePlan } from './world/fleet.ts'
import type { Plan } from './plan.ts'
import type { Fault } from './world/service-faults.ts'

export type Theme = 'answers' | 'together'

/** Of all seeds; of each theme alike many. */
const share = 0.1
const themes: readonly Theme[] = ['answers', 'together']
const minuteMs = 60_000

export function themeOf(seed: number): Theme | null {
  const random = createRandom(seed ^ 0x1f83d9ab)
  return random.chance(share) ? random.pick(themes) : null
}

/** Of a service: one that tells its answers again would not say of what it forgot. */
export function providersOf(
  theme: Theme | null,
  providers: readonly ProviderPlan[],
  seed: number,
): ProviderPlan[] {
  const random = createRandom(seed ^ 0x2b0c1f77)
  if (theme !== 'answers') return [...providers]
  return providers.map((provider) => {
    const repeat = random.pick(['conflict', 'fresh'] as const)
    const onRepeat = repeat === 'conflict' ? random.pick(['resend', 'hold'] as const) : 'hold'
    return { ...provider, repeat, onRepeat, refusesEvery: 0 }
  })
}

export function themed(plan: Plan, theme: Theme | null): Plan {
  return theme === null ? plan : { ...plan, ...planOf[theme](plan) }
}

const none = { stop: 0, network: 0, disk: 0, away: 0, clock: 0, keys: 0 } as const

const planOf: Readonly<Record<Theme, (plan: Plan) => Partial<Plan>>> = {
  answers: ({ devices, delivery, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map((device) => ({ ...device, everyMs: Math.min(device.everyMs, 6000) })),
    delivery: { ...delivery, payloadsMax: Math.max(5, delivery.payloadsMax), lingerS: 1 },
    everyMs: { ...everyMs, ...none, service: 8000, operator: 0, powerCut: 0 },
  }),
  together: ({ devices, everyMs }) => ({
    safetyMs: minuteMs,
    devices: devices.map(aheadOf),
    everyMs: { ...everyMs, ...none, operator: 2500, disk: 6000, kill: 12_000, service: 10_000 },
  }),
}

/** What the service meets in place of what the seed draws; null: that. */
export function faultOf(theme: Theme | null, random: Random): Fault | null {
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

/** Every second one of those that have the time of a message. */
function aheadOf(device: DevicePlan, index: number): DevicePlan {
  const isTimed = device.kind === 'plain' || device.kind === 'parked'
  const everyMs = Math.min(device.everyMs, 3000)
  return { ...device, everyMs, clockMs: isTimed && index % 2 === 0 ? 4_000_000 + index : device.clockMs }
}
