// plausibility.ts: leaves out values that no vehicle can have: 999,999 km/h, an odometer of 526,385,151 km.
// The entry file of the folder.
//
// Each field that is sent belongs to a quantity with bounds, or to none (quantities.ts). The config sets the
// bounds at its top level and for each source (plausibility-config.ts); what it does not set has the
// defaults. The bounds are converted to the unit of the field once, when the source is compiled.
//
// The converted value is judged where the field is written (fields/). A value outside is
//
//   drop   left out and counted; the rest of the payload is sent
//   flag   sent and counted
//   off    not judged
//
// It is counted by source, field and reason, and by device (withheld-counts.ts). Devices with many such
// values are shown to the operator (suspect-devices.ts). A plausible value costs two comparisons, without a
// call.
//
// No memory takes part in this: the same message gives the same payload and payloadId.

import type { MappingConfig, SourceConfig } from '../config.ts'
import { Malformed } from '../path/text-cursor.ts'
import type { Finding, RecordContext } from '../types.ts'
import type { PlausibilityConfig } from './plausibility-config.ts'
import { isLargeUnsetNumber } from './unset-numbers.ts'
import { inUnit, measures, quantities, quantityOf, unitOf, type Quantity } from './quantities.ts'

/** The bounds of one field, in its unit, both included. */
export type Bounds = {
  readonly quantity: Quantity
  readonly min: number
  readonly max: number
  readonly below: Finding
  readonly above: Finding
  /** Not null for trips and the like, which no memory judges (../filters/counters.ts). */
  readonly unset: Finding | null
}

export type JudgedField = {
  source: string
  field: string
  /** The word for the unit in the payload. */
  unit: string | undefined
  /** Of the config; undefined where name and unit decide. */
  quantity?: Quantity | 'none' | undefined
}

/** Null where the field has no bounds, or nothing is to be done. Throws Malformed. */
export function compileBounds(judged: JudgedField, config: PlausibilityConfig): Bounds | null {
  const { source, field, unit: named } = judged
  const unit = unitOf(named)
  const quantity = judged.quantity ?? quantityOf(field, unit)
  if (quantity === null || quantity === 'none') return null
  if (unit !== undefined && !measures(quantity, unit))
    throw new Malformed(`has the quantity ${quantity}, whose values are not in ${named ?? unit}`)
  // A word that is no known unit: the value may be anything, unless the config says what it is.
  if (unit === undefined && named !== undefined && judged.quantity === undefined) return null
  const usual = quantities[quantity]
  const { min = usual.min, max = usual.max, action = 'drop' } = config[quantity] ?? {}
  if (action === 'off') return null
  const own = unit ?? usual.unit
  const isSent = action === 'flag'
  const rule = `\`plausibility.${quantity}\` is ${min} to ${max}`
  const finding = (why: string): Finding => ({ key: `${source}|${field}|${why}`, isSent, rule })
  return {
    quantity,
    min: inUnit(min, usual.unit, own),
    max: inUnit(max, usual.unit, own),
    below: finding('below minimum'),
    above: finding('above maximum'),
    unset: quantity === 'distance' || quantity === 'duration' ? finding('a placeholder') : null,
  }
}

/** Counts a number outside of the bounds. Whether it is left out. */
export function rejects(bounds: Bounds, value: number, context: RecordContext): boolean {
  const finding = value < bounds.min ? bounds.below : bounds.above
  context.implausible(finding, value)
  return !finding.isSent
}

/** Counts a number that means "no value", as it is sent or as it was written. Whether it is left out. */
export function isWithoutValue(
  { unset }: Bounds,
  value: number,
  written: number,
  context: RecordContext,
): boolean {
  if (unset === null || !(isLargeUnsetNumber(value) || isLargeUnsetNumber(written))) return false
  context.implausible(unset, value)
  return !unset.isSent
}

/** The sources with what the top level says about plausibility; a rule of a source overrides it by option. */
export function withPlausibility({
  sources,
  plausibility,
}: Pick<MappingConfig, 'sources' | 'plausibility'>): SourceConfig[] {
  return sources.map((source) => ({ ...source, plausibility: merged(plausibility, source.plausibility) }))
}

function merged(general: PlausibilityConfig, own: PlausibilityConfig): PlausibilityConfig {
  const all: Record<string, unknown> = { ...general }
  for (const [quantity, rule] of Object.entries(own))
    all[quantity] = { ...general[quantity as Quantity], ...rule }
  return all
}

/** Quantities whose bounds exclude every value. */
export function emptyBounds(config: PlausibilityConfig): Quantity[] {
  return (Object.keys(quantities) as Quantity[]).filter((quantity) => {
    const { min = quantities[quantity].min, max = quantities[quantity].max } = config[quantity] ?? {}
    return min > max
  })
}
