// compile-values.ts: the values of single fields of `map`: numbers, coordinates, true and false, texts.

import type { CoordinateConfig, ExtraFieldConfig, MapConfig, NumberField, SourceConfig } from '../config.ts'
import { ratioOf } from '../fields/decimal.ts'
import { compileFound, compileReading, whereHolds, type ReadOptions } from '../fields/fields.ts'
import { noteKey, noteOf, type Notable } from '../fields/field-notes.ts'
import { compileNumber, type Coordinate, type ReadNumber } from '../fields/gps.ts'
import { compileHemisphere, compileOnAxis, type Axis } from '../fields/hemispheres.ts'
import type { MemberField } from '../fields/member-fields.ts'
import {
  createConvert,
  degreesOfMinutes,
  speedUnits,
  unchanged,
  unitRatios,
  type Convert,
} from '../fields/units.ts'
import type { Read } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import { booleanFrom, numberFrom } from '../path/value.ts'
import { compileBounds } from '../plausibility/plausibility.ts'
import { quote } from '../../std/quote.ts'

/** Decimals of computed values: a tenth of a millimetre, and far more precise than any instrument. */
const coordinatePlaces = 9

const one = ratioOf('1')

const nothing: Read = () => undefined
const noCoordinate: Coordinate = { read: () => Number.NaN, raw: nothing, minusOne: Number.NaN }

/** A field that becomes a member of an object: its options, and what is the same for all of its place. */
export type MemberRow = Pick<MemberField, 'name' | 'keys' | 'kind'> &
  Partial<Pick<MemberField, 'neverNegative' | 'isExact' | 'isSpeed' | 'otherKind' | 'tail'>> & {
    field: MemberOptions
    /** Of a number without a unit, and the word for the one that is sent. */
    usual?: { unit: string; sent: string }
    places?: number
    /** What is sent for a number. */
    shown?: Convert
  }

type MemberOptions = ConstantField & {
  scale?: number
  offset?: number
  quantity?: ExtraFieldConfig['quantity']
}

/** Throws Malformed. */
export function memberOf(
  { name: source, plausibility }: SourceConfig,
  row: MemberRow,
  captures: readonly string[],
): Omit<MemberField, 'bit'> {
  const { name, keys, kind, field, usual, places = coordinatePlaces, shown = unchanged } = row
  const { unit = usual?.unit, scale = 1, offset = 0, quantity } = field
  if (kind === 'number') checkConstants(field, isNumeric, 'a number')
  if (kind === 'boolean') checkConstants(field, isBoolean, 'true or false')
  const convert = createConvert((unit && unitRatios[unit]) || one, scale, offset, places)
  const sent = usual?.sent ?? (unit && (unit in speedUnits ? 'KILOMETERS_PER_HOUR' : 'DEGREES'))
  const judged = { source, field: name, unit: sent, quantity }
  const { neverNegative = false, isExact = false, isSpeed = false, tail = '' } = row
  return {
    source,
    name,
    keys,
    kind,
    read: rawOf(field, captures),
    convert: shown === unchanged ? convert : (value) => shown(convert(value)),
    bounds: kind === 'number' ? compileBounds(judged, plausibility) : null,
    neverNegative,
    isExact,
    isSpeed,
    otherKind: row.otherKind ?? `not a ${kind}`,
    tail,
    ...noteOf(field),
  }
}

const kilometersPerHour = { unit: 'km/h', sent: 'KILOMETERS_PER_HOUR' }
const degrees = { unit: 'deg', sent: 'DEGREES' }

/** The members of `gps` that the interface names, in its order. */
export function membersOfGps({ speed, heading, in_motion: motion }: MapConfig): readonly MemberRow[] {
  const rows: MemberRow[] = []
  if (speed)
    rows.push({
      name: 'speed',
      keys: ['speed'],
      kind: 'number',
      field: speed,
      usual: kilometersPerHour,
      places: 6,
      neverNegative: true,
      isSpeed: motion?.from !== undefined,
      tail: `,"speedUnits":"${kilometersPerHour.sent}"`,
    })
  if (heading)
    rows.push({
      name: 'heading',
      keys: ['heading'],
      kind: 'number',
      field: heading,
      usual: degrees,
      places: 6,
      shown: (value) => (value === 360 ? 0 : value),
    })
  if (motion && !isOnlyDerived(motion))
    rows.push({
      name: 'in_motion',
      keys: ['inMotion'],
      kind: 'boolean',
      field: motion,
      otherKind: 'not true or false',
    })
  return rows
}

function isOnlyDerived({ from, path, expr }: NonNullable<MapConfig['in_motion']>): boolean {
  return from !== undefined && path === undefined && expr === undefined
}

export function coordinateOf(
  field: CoordinateConfig | undefined,
  captures: readonly string[],
  axis: Axis,
): Coordinate {
  if (!field) return noCoordinate
  const { unit, scale, hemisphere } = field
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
  const beside = { raw, minusOne, ...noteOf(field) }
  if (hemisphere === undefined) return { read, ...beside }
  return { ...beside, ...compileHemisphere(read, raw, compileReading(hemisphere), axis) }
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
  if (unit !== 'ddmm') return createConvert(unitRatios[unit ?? 'deg'] ?? one, scale, offset, coordinatePlaces)
  if (offset !== 0) throw new Malformed('has an offset, which the unit ddmm cannot have')
  const toDdmm = createConvert(one, scale, 0, coordinatePlaces)
  return (value) => degreesOfMinutes(toDdmm(value))
}

/** `field`: one that is set. */
function numberOf(field: NumberField, convert: Convert, captures: readonly string[]): ReadNumber {
  checkConstants(field, isNumeric, 'a number')
  return compileNumber(rawOf(field, captures), convert)
}

type ConstantField = ReadOptions & { value?: unknown; when?: string | undefined }

/** Throws Malformed for a value of the config that is not one of the field: it would never be sent. */
export function checkConstants(
  field: ConstantField,
  isSent: (value: unknown) => boolean,
  kind: string,
): void {
  const { value, values = {} } = field
  const ofTable = Object.entries(values).map(([word, one]) => [`value for ${quote(word, 40)}`, one] as const)
  for (const [name, constant] of [['value', value], ...ofTable] as const)
    if (constant !== undefined && !isSent(constant)) throw new Malformed(`has a ${name} that is not ${kind}`)
}

/** Also an empty text, with which a table says "no value". */
const isNumeric = (value: unknown) => numberFrom(value) !== Number.POSITIVE_INFINITY
const isBoolean = (value: unknown) => booleanFrom(value) !== null

/** A path, an expression or a constant, where the condition of the field holds. Throws Malformed. */
export function rawOf(field: ConstantField, captures: readonly string[]): Read {
  return where(field, anyRawOf(field, captures), captures)
}

function anyRawOf(field: ConstantField, captures: readonly string[]): Read {
  const { path, expr, value, ...how } = field
  if (path === undefined && expr === undefined) {
    if (value === undefined) throw new Malformed('needs a path, an expression or a value')
    for (const key of ['values', 'absent'] as const)
      if (field[key] !== undefined)
        throw new Malformed(`has "${key}" beside a constant; it is for what a path finds`)
    return constantOf(value, how)
  }
  if (value !== undefined) throw new Malformed('must have a path, an expression or a value, not both')
  return compileReading({ path, expr, ...how }, captures)
}

function constantOf(value: unknown, { [noteKey]: note }: Notable): Read {
  if (note === undefined) return () => value
  note.read = () => {
    note.note({ path: null, raw: value, note: 'a constant' })
    return value
  }
  return note.read
}

/** Where the condition of the field is false, it has no value. Throws Malformed. */
export function where(
  { when, [noteKey]: note }: Notable & { when?: string | undefined },
  read: Read,
  captures: readonly string[],
): Read {
  if (when === undefined) return read
  if (note === undefined) return whereHolds(read, when, captures)
  note.read = whereHolds(read, when, captures, (place) => {
    read(place)
    note.amend(`when is false: ${when}`)
  })
  return note.read
}
