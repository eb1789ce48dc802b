// unit-by-field.ts: a unit that another value of the message names, such as
//
//   unit: { path: speedUnit, values: { MPH: mph, KPH: km/h } }
//
// The value is converted to the unit that is sent, as an exact decimal. A name that the table does not have
// makes the value wrong: in a guessed unit it would be a wrong value that looks right.

import { createScale, type Scale } from '../fields/decimal.ts'
import { unitRatios } from '../fields/units.ts'
import { compilePaths } from '../path/path.ts'
import { decimalFrom } from '../path/value.ts'
import { Malformed } from '../path/text-cursor.ts'
import { faultOf } from './arithmetic.ts'
import { unusable } from './unusable.ts'
import { compileTable } from './value-table.ts'
import type { Stage } from './stage.ts'

export type UnitByField = {
  path: string | readonly string[]
  /** From the names in the message to units. */
  values: Readonly<Record<string, string>>
  /** For messages that name none. */
  default?: string | undefined
}

/** Its units, of which each must be of one kind. */
export function unitsNamedBy({ values, default: usual }: UnitByField): readonly string[] {
  return [...Object.values(values), ...(usual === undefined ? [] : [usual])]
}

/**
 * What all units of a field become, such as the unit that is sent; undefined without a unit. Throws Malformed
 * for units of different kinds.
 */
export function oneOf<Result>(
  unit: string | UnitByField | undefined,
  resultOf: (unit: string) => Result,
): Result | undefined {
  if (unit === undefined) return undefined
  if (typeof unit === 'string') return resultOf(unit)
  const [first, ...others] = new Set(unitsNamedBy(unit).map(resultOf))
  if (others.length > 0)
    throw new Malformed(`has units of different kinds: ${[...new Set(unitsNamedBy(unit))].join(', ')}`)
  return first
}

export function compileUnits({ path, values, default: usual }: UnitByField): Stage {
  const read = compilePaths(path)
  const unitNamed = compileTable(values)
  const scales = new Map<unknown, Scale>()
  for (const unit of unitsNamedBy({ path, values, default: usual })) {
    const ratio = unitRatios[unit]
    if (ratio === undefined || unit === 'duration')
      throw new Malformed(`has the unit ${unit}, which this field cannot have`)
    scales.set(unit, createScale(ratio, 0))
  }
  return {
    text: `unit by ${[path].flat().join(' or ')}`,
    apply(value, ...place) {
      const name = read(...place) ?? ''
      const scale = scales.get(name === '' ? usual : unitNamed(name))
      const text = decimalFrom(value)
      if (text === undefined) return faultOf(value)
      return scale?.(text) ?? unusable
    },
  }
}
