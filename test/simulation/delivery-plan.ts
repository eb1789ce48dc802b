// delivery-plan.ts: what a seed draws of delivery: the limits of a batch, the rules of the service, and the config of both.

import type { Random } from '../support/random.ts'
import { keysPath } from './acts/key-acts.ts'
import type { RepeatBehaviour } from './world/service.ts'

export type ProviderPlan = {
  name: string
  host: string
  port: number
  repeat: RepeatBehaviour
  /** The operator may say `delivered` only of a service in which nothing fails. */
  onRepeat: 'delivered' | 'resend' | 'hold'
  /** The service answers 400 to a request with one of this many payloads of the time with faults; 0: to none. */
  refusesEvery: number
  /** An answer takes so long at most. */
  answerMs: number
}

export type DeliveryPlan = {
  payloadsMax: number
  lingerS: number
  maxInFlight: number
  timeoutS: number
  backfillAfterS: number
  backfillOrder: 'oldest-first' | 'newest-first'
  onRefusedRepeat: 'hold' | 'split'
  retryDelays: RetryDelays
  /** Else in the environment. */
  keysInFile: boolean
}

/** `delivery.errors`, in ms: the wait before each further attempt. */
export type RetryDelays = Readonly<Record<string, readonly number[]>>

/** A reload puts them in force. */
export type RulesChange = { atMs: number; retryDelays: RetryDelays }

const usualDelays: RetryDelays = { Validation: [5000, 20_000], default: [1000, 5000, 20_000] }
/** One failure more is the last one. */
export const shortDelays: RetryDelays = { Validation: [5000], default: [1000] }
/** The first failure is. */
export const noDelays: RetryDelays = { Validation: [], default: [] }

export function drawProviders(random: Random): ProviderPlan[] {
  const names = random.chance(0.3) ? ['own', 'partner'] : ['own']
  return names.map((name) => {
    const repeat = random.pick<RepeatBehaviour>(['same', 'same', 'fresh', 'conflict', 'conflict'])
    return {
      name,
      host: `${name}.service.test`,
      port: 8000,
      repeat,
      onRepeat:
        repeat === 'conflict' ? random.pick(['delivered', 'resend', 'resend', 'hold'] as const) : 'hold',
      refusesEvery: random.chance(0.3) ? 4 + random.below(30) : 0,
      answerMs: random.pick([50, 50, 50, 2500]),
    }
  })
}

/**
 * A service that answers 409 for a batch that it knows does not say what failed in it. `on_repeat: delivered` then says
 * that nothing did, and the operator may set it only where that is so.
 */
export function mayFail({ repeat, onRepeat }: Pick<ProviderPlan, 'repeat' | 'onRepeat'>): boolean {
  return repeat !== 'conflict' || onRepeat !== 'delivered'
}

export function drawDelivery(random: Random): DeliveryPlan {
  return {
    payloadsMax: random.pick([1, 2, 5, 20, 500]),
    lingerS: random.pick([0, 1, 5, 10]),
    maxInFlight: random.pick([1, 2, 4]),
    timeoutS: random.pick([5, 5, 30]),
    backfillAfterS: random.pick([15, 15, 60, 900]),
    backfillOrder: random.pick(['oldest-first', 'newest-first']),
    onRefusedRepeat: random.pick(['hold', 'split', 'split']),
    retryDelays: random.pick([usualDelays, usualDelays, shortDelays, noDelays]),
    keysInFile: random.chance(0.3),
  }
}

export function deliveryText(providers: readonly ProviderPlan[], plan: DeliveryPlan): string {
  const list = providers.map(
    ({ name, host, port, onRepeat }) =>
      `    - { name: ${name}, provider_key: ${name.toUpperCase()}, base_url: "http://${host}:${port}", on_repeat: ${onRepeat} }`,
  )
  const rules = Object.entries(plan.retryDelays).map(([type, delays]) => {
    return `${type}: [${delays.map((ms) => `${ms / 1000}s`).join(', ')}]`
  })
  return `delivery:
  base_url: "http://${providers[0]!.host}:${providers[0]!.port}"
  credentials: ${plan.keysInFile ? `{ source: file, path: ${keysPath} }` : '{ source: environment }'}
  batch: { max_payloads: ${plan.payloadsMax}, linger: ${plan.lingerS}s }
  max_in_flight: ${plan.maxInFlight}
  timeout: ${plan.timeoutS}s
  on_refused_repeat: ${plan.onRefusedRepeat}
  backfill: { after: ${plan.backfillAfterS}s, rotate_every: ${plan.backfillAfterS === 900 ? '1h' : '1m'}, order: ${plan.backfillOrder} }
  errors: { ${rules.join(', ')} }
  providers:
${list.join('\n')}`
}
