// compile-values.ts: the values of single fields of `map` as closures: numbers, coordinates, true and false.

import type { CoordinateConfig, MapConfig, NumberField } from '../config.ts'
import { ratioOf, type Ratio } from '../fields/decimal.ts'
import { compileFound, compileReading, type Reading } from '../fields/fields.ts'
import {
  compileBoolean,
  compileNumber,
  type Coordinate,
  type ReadBoolean,
  type ReadNumber,
} from '../fields/gps.ts'
import { compileHemisphere, compileOnAxis, type Axis } from '../fields/hemispheres.ts'
import {
  angleUnits,
  createConvert,
  degreesOfMinutes,
  speedUnits as speedRatios,
  type Convert,
} from '../fields/units.ts'
import { compileCondition } from '../expression/expression.ts'
import { compilePaths, type Read } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import { booleanFrom, numberFrom } from '../path/value.ts'
import type { Up } from '../types.ts'
import { quote } from '../../std/quote.ts'

/** Decimals of computed values: a tenth of a millimetre, and far more precise than any instrument. */
export const coordinatePlaces = 9
const measurePlaces = 6

const nothing: Read = () => undefined
const noCoordinate: Coordinate = { read: () => Number.NaN, raw: nothing, minusOne: Number.NaN }

export function speedOf({ speed }: MapConfig, captures: readonly string[]): ReadNumber | null {
  return speed === undefined
    ? null
    : numberOf(speed, convertOf(speed, speedRatios, 'km/h', measurePlaces), captures)
}

export function headingOf({ heading }: MapConfig, captures: readonly string[]): ReadNumber | null {
  return heading === undefined
    ? null
    : numberOf(heading, convertOf(heading, angleUnits, 'deg', measurePlaces), captures)
}

export function coordinateOf(
  field: CoordinateConfig | undefined,
  captures: readonly string[],
  axis: Axis,
): Coordinate {
  if (!field) return noCoordinate
  const { unit, scale, hemisphere } = field
  if (field.default !== undefined)
    throw new Malformed(
      'has a default: messages without a position would be sent with a position that nobody measured. Remove it; ' +
        '`value` is for an asset that does not move',
    )
  if (unit === 'deg' && Math.abs(scale) === 0.01)
    throw new Malformed(
      'has the scale 0.01, which reads degrees and minutes (ddmm.mmmm) as degrees: 4851.396 is 48.8566 degrees, ' +
        'not 48.51396. Use `unit: ddmm` without a scale, or `unit: 0.01deg` for hundredths of a degree',
    )
  const raw = shownOf(field, captures)
  const convert = convertCoordinateOf(field)
  const minusOne = convert(-1)
  const number = numberOf(field, convert, captures)
  const read = unit === 'ddmm' || unit === 'dms' ? compileOnAxis(number, raw, axis) : number
  if (hemisphere === undefined) return { read, raw, minusOne }
  return { raw, minusOne, ...compileHemisphere(read, raw, compilePaths(hemisphere.path), axis) }
}

/** What the message has, for the sentence of a refusal. */
function shownOf(field: CoordinateConfig, captures: readonly string[]): Read {
  const { path, expr, absent } = field
  if (path === undefined && expr === undefined) return rawOf(field, captures)
  return compileFound({ path, expr, absent }, captures)
}

function convertCoordinateOf(field: CoordinateConfig): Convert {
  const { unit, scale, offset } = field
  // `dms` is read as degrees.
  if (unit !== 'ddmm') return convertOf(field, angleUnits, 'deg', coordinatePlaces)
  if (offset !== 0) throw new Malformed('has an offset, which the unit ddmm cannot have')
  const toDdmm = createConvert(ratioOf('1'), scale, 0, coordinatePlaces)
  return (value) => degreesOfMinutes(toDdmm(value))
}

/** `field`: one that is set. Where its condition is false, it has no value and no default. */
function numberOf(field: NumberField, convert: Convert, captures: readonly string[]): ReadNumber {
  checkNumbers(field)
  return where(field, compileNumber(rawOf(field, captures), convert, field.default), Number.NaN, captures)
}

function convertOf(
  { unit, scale, offset }: NumberField,
  units: Readonly<Record<string, Ratio>>,
  usual: string,
  places: number,
): Convert {
  return createConvert(units[unit ?? usual] ?? ratioOf('1'), scale, offset, places)
}

type ConstantField = Reading & { value?: unknown; default?: unknown }

/** Throws Malformed for a value of the config that is not one of the field: it would never be sent. */
export function checkConstants(
  field: ConstantField,
  isSent: (value: unknown) => boolean,
  kind: string,
): void {
  const { value, default: otherwise, values = {} } = field
  const ofTable = Object.entries(values).map(([word, one]) => [`value for ${quote(word, 40)}`, one] as const)
  for (const [name, constant] of [['value', value], ['default', otherwise], ...ofTable] as const)
    if (constant !== undefined && !isSent(constant)) throw new Malformed(`has a ${name} that is not ${kind}`)
}

/** Also an empty text, with which a table says "no value". */
const isNumeric = (value: unknown) => numberFrom(value) !== Number.POSITIVE_INFINITY
const isBoolean = (value: unknown) => booleanFrom(value) !== null

export const checkNumbers = (field: ConstantField) => checkConstants(field, isNumeric, 'a number')
export const checkBooleans = (field: ConstantField) => checkConstants(field, isBoolean, 'true or false')

/** A path, an expression or a constant. Throws Malformed. */
export function rawOf(field: ConstantField, captures: readonly string[]): Read {
  const { path, expr, value, default: _otherwise, ...how } = field
  if (path === undefined && expr === undefined) {
    if (value === undefined) throw new Malformed('needs a path, an expression or a value')
    for (const key of ['values', 'absent', 'default'] as const)
      if (field[key] !== undefined)
        throw new Malformed(`has "${key}" beside a constant; it is for what a path finds`)
    return () => value
  }
  if (value !== undefined) throw new Malformed('must have a path, an expression or a value, not both')
  return compileReading({ path, expr, ...how }, captures)
}

/** Where its condition is false, it has no value and no default. Throws Malformed. */
export function booleanOf(
  field: NonNullable<MapConfig['in_motion']>,
  captures: readonly string[],
): ReadBoolean {
  const { from: _from, above: _above, below: _below, default: otherwise, ...reading } = field
  checkBooleans(field)
  return where<boolean | null | undefined>(
    field,
    compileBoolean(rawOf(reading, captures), otherwise),
    undefined,
    captures,
  )
}

type ReadOf<Value> = (record: unknown, root: unknown, up?: Up, captures?: readonly string[]) => Value

/** `none` where the condition of the field is false. Throws Malformed. */
export function where<Value>(
  { when }: { when?: string | undefined },
  read: ReadOf<Value>,
  none: Value,
  captures: readonly string[],
): ReadOf<Value> {
  if (when === undefined) return read
  const holds = compileCondition(when, captures)
  return (record, root, up, found = []) =>
    holds(record, root, found, up) ? read(record, root, up, found) : none
}
