// compile-fields.ts: the `map` of a source as closures: time, position, extra fields. Signals:
// compile-signals.ts.

import type { CoordinateConfig, FieldConfig, ExtraFieldConfig, MapConfig, SourceConfig } from '../config.ts'
import { Malformed } from '../path/text-cursor.ts'
import { ratioOf, type Ratio } from '../fields/decimal.ts'
import { compileExtraFields, type ExtraField, type WriteExtraFields } from '../fields/extra-fields.ts'
import {
  compileBoolean,
  compileGps,
  compileHemisphere,
  compileNumber,
  type Coordinate,
  type InMotion,
  type ReadNumber,
} from '../fields/gps.ts'
import { compilePaths, type Read } from '../path/path.ts'
import { compileReading, type Reading } from '../fields/fields.ts'
import type { MotionOptions } from '../state/motion.ts'
import { compileFixTime } from '../times/fix-time.ts'
import { compileTime } from '../times/times.ts'
import {
  angleUnits,
  createConvert,
  degreesOfMinutes,
  speedUnits as speedRatios,
  type Convert,
} from '../fields/units.ts'
import { compileBounds, type Bounds } from '../plausibility/plausibility.ts'
import { compileCondition } from '../path/condition.ts'
import type { Scope } from './compile-scope.ts'
import type { CompiledSource, Fix } from '../mapper/compiled-source.ts'

/** Decimals of computed values: a tenth of a millimetre, and far more precise than any instrument. */
const coordinatePlaces = 9
const measurePlaces = 6

const nothing: Read = () => undefined
const noNumber: ReadNumber = () => Number.NaN

/** Devices whose motion each source stores. */
const devicesMax = 65_536

type Fields = Pick<CompiledSource, 'time' | 'fix' | 'gps' | 'gpsLastKnown' | 'extraFields' | 'motion'>

/** Undefined where a problem was reported. */
export function compileFields(config: SourceConfig, scope: Scope): Fields | undefined {
  const { map } = config
  const inMap = scope.at('map')
  if (!map.latitude && !map.longitude && map.signals.length === 0)
    inMap.report([], 'must have latitude and longitude, or signals. Otherwise there is nothing to send.')
  const extraFields = extraFieldsOf(config, inMap)
  const gps = compilePosition(config, extraFields.inGps, inMap)
  const time = inMap.compile(['time'], () => timeOf(config))
  const fix = config.fix === undefined ? null : scope.compile(['fix'], () => fixOf(config, scope.captures))
  const motion = inMap.compile(['in_motion'], () => motionOf(map))
  if (!gps || time === undefined || fix === undefined || motion === undefined) return undefined
  return { time, fix, ...gps, extraFields: extraFields.onTop, motion }
}

function compilePosition(
  config: SourceConfig,
  extraFields: WriteExtraFields | null,
  { compile, report }: Scope,
): Pick<Fields, 'gps' | 'gpsLastKnown'> | undefined {
  const { name: source, map } = config
  if (map.latitude && !map.longitude) report(['latitude'], 'needs longitude too.')
  if (map.longitude && !map.latitude) report(['longitude'], 'needs latitude too.')
  if (!map.latitude)
    for (const key of ['speed', 'heading', 'in_motion'] as const)
      if (map[key]) report([key], 'needs latitude and longitude: it is sent with a position only.')
  if (map.speed?.unit !== undefined && map.speed_units !== 'KILOMETERS_PER_HOUR')
    report(['speed', 'unit'], `converts to km/h, but speed_units is ${map.speed_units}; remove one of them.`)
  const latitude = compile(['latitude'], () => coordinateOf(map.latitude))
  const longitude = compile(['longitude'], () => coordinateOf(map.longitude))
  const speed = compile(['speed'], () => speedOf(map))
  const heading = compile(['heading'], () => headingOf(map))
  const inMotion = compile(['in_motion'], () => inMotionOf(map))
  if (!latitude || !longitude || speed === undefined || heading === undefined || inMotion === undefined)
    return undefined
  const fields = {
    source,
    latitude,
    longitude,
    speed,
    speedBounds: speedBoundsOf(config),
    speedUnits: map.speed_units,
    heading,
    headingBounds: headingBoundsOf(config),
    inMotion,
    extraFields,
  }
  return { gps: compileGps(fields), gpsLastKnown: compileGps({ ...fields, heading: null }) }
}

export function speedOf({ speed }: MapConfig): ReadNumber | null {
  return numberOf(speed, speedRatios, 'km/h', measurePlaces)
}

export function speedBoundsOf({ name: source, map, plausibility }: SourceConfig): Bounds | null {
  return compileBounds({ source, field: 'speed', unit: map.speed_units }, plausibility)
}

export function headingBoundsOf({ name: source, plausibility }: SourceConfig): Bounds | null {
  return compileBounds({ source, field: 'heading', unit: 'DEGREES' }, plausibility)
}

export function headingOf({ heading }: MapConfig): ReadNumber | null {
  return numberOf(heading, angleUnits, 'deg', measurePlaces)
}

export function coordinateOf(field: CoordinateConfig | undefined): Coordinate {
  if (!field) return { read: noNumber, raw: nothing }
  const { unit, scale, hemisphere, ...rest } = field
  if (unit === 'deg' && Math.abs(scale) === 0.01)
    throw new Malformed(
      'has the scale 0.01, which reads degrees and minutes (ddmm.mmmm) as degrees: 4851.396 is 48.8566 degrees, ' +
        'not 48.51396. Use `unit: ddmm` without a scale, or `unit: 0.01deg` for hundredths of a degree',
    )
  const read = unit === 'ddmm' ? minutesOf(field) : numberOf(field, angleUnits, 'deg', coordinatePlaces)
  if (read === null) return { read: noNumber, raw: nothing }
  const raw = rawOf(rest)
  if (hemisphere === undefined) return { read, raw }
  return { read: compileHemisphere(read, compilePaths(hemisphere.path)), raw }
}

function minutesOf(field: CoordinateConfig): ReadNumber {
  if (field.offset !== 0) throw new Malformed('has an offset, which the unit ddmm cannot have')
  const toDdmm = createConvert(ratioOf('1'), field.scale, 0, coordinatePlaces)
  return compileNumber(rawOf(field), (value) => degreesOfMinutes(toDdmm(value)), field.default)
}

function numberOf(
  field: FieldConfig | undefined,
  units: Readonly<Record<string, Ratio>>,
  usual: string,
  places: number,
): ReadNumber | null {
  if (!field) return null
  return compileNumber(rawOf(field), convertOf(field, units, usual, places), field.default)
}

function convertOf(
  { unit, scale, offset }: FieldConfig,
  units: Readonly<Record<string, Ratio>>,
  usual: string,
  places: number,
): Convert {
  return createConvert(units[unit ?? usual] ?? ratioOf('1'), scale, offset, places)
}

/** Of a coordinate in another unit than ddmm. */
export function coordinateConvertOf(field: FieldConfig): Convert {
  return convertOf(field, angleUnits, 'deg', coordinatePlaces)
}

export function speedConvertOf(field: FieldConfig): Convert {
  return convertOf(field, speedRatios, 'km/h', measurePlaces)
}

export function headingConvertOf(field: FieldConfig): Convert {
  return convertOf(field, angleUnits, 'deg', measurePlaces)
}

/** Either a path or a constant. */
export function rawOf({
  path,
  value,
  ...how
}: Omit<Reading, 'path'> & {
  path?: string | readonly string[] | undefined
  value?: unknown
}): Read {
  if (path === undefined && value === undefined) throw new Malformed('needs a path or a value')
  if (path === undefined) return () => value
  if (value !== undefined) throw new Malformed('must have a path or a value, not both')
  const { absent, decimal_comma, unit } = how
  return compileReading({ path, absent, decimal_comma, unit })
}

export function inMotionOf({ in_motion: field, speed }: MapConfig): InMotion | null {
  if (!field) return null
  const { path, value, absent, from } = field
  const fromSpeed = from !== undefined
  if (!fromSpeed && (field.above !== undefined || field.below !== undefined))
    throw new Malformed('has "above" or "below" without "from: speed"')
  if (fromSpeed && (value !== undefined || field.default !== undefined))
    throw new Malformed(
      'is derived from the speed where its path has no value, so it cannot have another value',
    )
  if (fromSpeed && !speed) throw new Malformed('is derived from the speed, so `map` needs speed too')
  if (fromSpeed && field.above === undefined)
    throw new Malformed('needs "above", the speed above which the asset moves')
  if (fromSpeed && path === undefined) return { read: null, fromSpeed }
  return { read: compileBoolean(rawOf({ path, value, absent }), field.default), fromSpeed }
}

function motionOf({ in_motion: field }: MapConfig): MotionOptions | null {
  if (field?.from === undefined || field.above === undefined) return null
  const { above, below = above } = field
  if (below > above) throw new Malformed('must have "below" less than or equal to "above"')
  return { above, below, devicesMax }
}

export function timeOf({ map: { time: field }, coalesce }: SourceConfig): CompiledSource['time'] {
  if (!field) {
    if (coalesce === undefined) return null
    // The newest of the own times of the collected values (state/open-record.ts).
    const raw: Read = (record) => (record as Record<string, unknown>)['$time']
    return { read: compileTime('ms', raw, false), raw, orArrival: true, format: 'ms' }
  }
  const { path, format, zone, missing, absent } = field
  const formats = typeof format === 'string' ? [format] : format
  if (zone !== undefined && !formats.some((one) => one === 'iso' || one === 'words'))
    throw new Malformed('has a zone, which only the formats iso and words need')
  if (formats.length > 1 && formats.includes('arrival'))
    throw new Malformed('has arrival beside other formats; use `missing: arrival` instead')
  if (format === 'arrival') {
    if (path !== undefined) throw new Malformed('has a path, which the format arrival does not read')
    return null
  }
  if (path === undefined) throw new Malformed('needs a path')
  const raw = compileReading({ path, absent })
  return {
    read: compileTime(format, raw, zone === 'utc'),
    raw,
    orArrival: missing === 'arrival',
    format: formats.join(', '),
  }
}

function fixOf({ fix, no_fix: noFix }: SourceConfig, captures: readonly string[]): Fix | null {
  if (!fix) return null
  const times = [fix.time ?? []].flat()
  const own = times.filter((one) => 'path' in one)
  return {
    valid: fix.valid === undefined ? null : compileCondition(fix.valid, captures),
    validWithMemory: fix.valid === undefined ? null : compileCondition(fix.valid, captures),
    time: times.length === 0 ? null : compileFixTime(times),
    ownTime: own.length === 0 ? null : compileFixTime(own),
    maxAgeMs: fix.max_age,
    keep: noFix === 'keep',
    keepOld: fix.old === undefined ? noFix === 'keep' : fix.old === 'keep',
    oldTime: fix.old_time === 'message' || fix.old === 'keep' ? fix.old_time : 'fix of a position alone',
  }
}

type ExtraFields = { inGps: WriteExtraFields | null; onTop: WriteExtraFields | null }

/** Keys of the interface itself; an extra field of that name would write the key twice. */
const taken = {
  payload: ['payloadId', 'carrier', 'signalTimestamp', 'assetIdentifier', 'deviceIdentifier', 'signals'],
  gps: ['latitude', 'longitude', 'speed', 'speedUnits', 'heading', 'inMotion'],
}

function extraFieldsOf(config: SourceConfig, { compile, report }: Scope): ExtraFields {
  const { map } = config
  const inGps: ExtraField[] = []
  const onTop: ExtraField[] = []
  let sound = true
  for (const [key, field] of Object.entries(map.fields)) {
    const at = ['fields', key]
    const keys = key.split('.')
    const inside = keys[0] === 'gps'
    const own = inside ? keys.slice(1) : keys
    const [first] = own
    const reserved = inside ? taken.gps : taken.payload
    const isTaken = first === undefined || reserved.includes(first)
    if (isTaken) report(at, 'is reserved: `map` has an option for it, or the gateway sets it.')
    const longer = Object.keys(map.fields).find((other) => other.startsWith(`${key}.`))
    if (longer !== undefined) report(at, `cannot be a value: ${longer} makes it an object.`)
    sound &&= !isTaken && longer === undefined
    if (inside && !map.latitude) report(at, 'needs latitude and longitude: it is sent with a position only.')
    const compiled = compile(at, () => extraFieldOf(config, key, own, field))
    if (compiled) (inside ? inGps : onTop).push(compiled)
  }
  // Names that exclude each other cannot be nested.
  if (!sound) return { inGps: null, onTop: null }
  return { inGps: compileExtraFields(inGps), onTop: compileExtraFields(onTop) }
}

export function extraFieldOf(
  { name: source, plausibility }: SourceConfig,
  name: string,
  keys: readonly string[],
  field: ExtraFieldConfig,
): ExtraField {
  const { type: kind, unit, scale, offset, quantity } = field
  if (kind !== 'number' && (unit !== undefined || scale !== 1 || offset !== 0 || quantity !== undefined))
    throw new Malformed(`has a unit, scale, offset or quantity, which need the type number, not ${kind}`)
  const units: Readonly<Record<string, Ratio>> = { ...speedRatios, ...angleUnits }
  const ratio = units[unit ?? ''] ?? ratioOf('1')
  const convert = createConvert(ratio, scale, offset, coordinatePlaces)
  const sentUnit = unit === undefined ? undefined : unit in speedRatios ? 'KILOMETERS_PER_HOUR' : 'DEGREES'
  const bounds =
    kind === 'number' ? compileBounds({ source, field: name, unit: sentUnit, quantity }, plausibility) : null
  return { source, name, keys, kind, read: rawOf(field), convert, bounds }
}
