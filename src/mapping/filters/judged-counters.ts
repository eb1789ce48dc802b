// judged-counters.ts: which signals of a source are counters of the vehicle. Decided once, when the source is
// compiled.

import { signalFrame } from '../fields/signals.ts'
import type { PlausibilityConfig } from '../plausibility/plausibility-config.ts'
import { inUnit, measures, quantityOf, unitOf, type Quantity } from '../plausibility/quantities.ts'
import type { Finding } from '../types.ts'
import type { CounterRule, CounterVerdict } from '../memory/counter-memory.ts'

export type JudgedCounter = {
  /** `TYPE PART`. */
  name: string
  /** What is written before and after its value. */
  head: string
  tail: string
  rule: CounterRule
  /** By what is wrong with a reading. */
  findings: Readonly<Record<Exclude<CounterVerdict['kind'], 'plausible'>, Finding>>
}

export type CounterField = {
  source: string
  type: string
  part: string | undefined
  valueUnit: string | undefined
  /** By the config; undefined where name and unit decide. */
  quantity: Quantity | 'none' | undefined
  /** What one step of the value in the message is in the unit that is sent. */
  ratio: number
}

/**
 * In km, hours and litres an hour; the slack in the same. Factors of miles and metres, minutes and seconds,
 * gallons and millilitres.
 */
const limits = {
  odometer: { unit: 'KILOMETERS', perHour: 250, slack: 1, factors: [1.609344, 10, 1000, 1609.344] },
  engine_hours: { unit: 'HOURS', perHour: 1, slack: 1, factors: [60, 3600] },
  fuel_used: { unit: 'LITERS', perHour: 500, slack: 10, factors: [3.785411784, 4.54609, 1000] },
} as const

/** Null for a signal that is no such counter, or is not judged. */
export function judgedCounter(field: CounterField, config: PlausibilityConfig): JudgedCounter | null {
  const { source, type, part, valueUnit, ratio } = field
  const unit = unitOf(valueUnit)
  const quantity = field.quantity ?? quantityOf(type, unit)
  if (quantity !== 'odometer' && quantity !== 'engine_hours' && quantity !== 'fuel_used') return null
  if (unit === undefined || !measures(quantity, unit)) return null
  const action = config[quantity]?.jumps ?? 'drop'
  if (action === 'off') return null
  const limit = limits[quantity]
  const finding = (reason: string): Finding => ({
    key: `${source}|${type}|${reason}`,
    isSent: action === 'flag',
    rule: `\`plausibility.${quantity}.jumps\` is ${action}`,
  })
  return {
    name: [type, part ?? '', unit === limit.unit ? '' : unit].join(' ').trimEnd(),
    ...signalFrame(field),
    rule: {
      perHour: inUnit(limit.perHour, limit.unit, unit),
      slack: inUnit(limit.slack, limit.unit, unit),
      step: ratio === 1 ? 0 : ratio,
      factors: limit.factors,
    },
    findings: {
      jump: finding('jump'),
      fall: finding('fall'),
      placeholder: finding('a placeholder'),
      'other unit': finding('another unit'),
    },
  }
}
