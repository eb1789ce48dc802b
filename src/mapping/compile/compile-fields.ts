// compile-fields.ts: the `map` of a source as closures: time, position, extra fields. Signals:
// compile-signals.ts.

import { parseDuration } from '../../std/quantity.ts'
import type { MapConfig, SourceConfig } from '../config.ts'
import type { WriteExtraFields } from '../fields/extra-fields.ts'
import { compileGps, type GpsBits, type GpsFields, type InMotion } from '../fields/gps.ts'
import { position, type FieldBits } from '../lost-fields/watched-fields.ts'
import type { SourcePlan, Fix } from './source-plan.ts'
import { compileCondition } from '../expression/expression.ts'
import type { Read } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import { compileBounds } from '../plausibility/plausibility.ts'
import type { MotionOptions } from '../filters/motion.ts'
import { compileFixTime, compileTimeReading } from '../times/fix-time.ts'
import { compileTime, compileZone, isLocalFormat, type ReadTime } from '../times/times.ts'
import { extraFieldsOf } from './compile-extra-fields.ts'
import type { Scope } from './compile-scope.ts'
import { booleanOf, coordinateOf, headingOf, speedOf, where } from './compile-values.ts'

/** Devices whose motion each source stores. */
const devicesMax = 65_536

type Fields = Pick<
  SourcePlan,
  'time' | 'timeBit' | 'fix' | 'gps' | 'gpsLastKnown' | 'extraFields' | 'motion'
> & {
  laterFields: WriteExtraFields | null
}

/** Undefined where a problem was reported. */
export function compileFields(config: SourceConfig, scope: Scope, bits: FieldBits): Fields | undefined {
  const { map } = config
  const inMap = scope.at('map')
  const gpsBits = gpsBitsOf(map, bits)
  if (!map.latitude && !map.longitude && map.signals.length === 0)
    inMap.report([], 'must have latitude and longitude, or signals. Otherwise there is nothing to send.')
  const extraFields = extraFieldsOf(config, inMap, bits)
  const gps = compilePosition(config, { extraFields: extraFields.inGps, bits: gpsBits }, inMap)
  const time = inMap.compile(['time'], () => timeOf(config, scope.captures))
  const fix = config.fix === undefined ? null : scope.compile(['fix'], () => fixOf(config, scope.captures))
  const motion = inMap.compile(['in_motion'], () => motionOf(map))
  if (!gps || time === undefined || fix === undefined || motion === undefined) return undefined
  const timeBit =
    time?.orArrival === true && map.time ? bits.of({ name: 'time', role: 'beside', config: map.time }) : 0
  return {
    time,
    timeBit,
    fix,
    ...gps,
    extraFields: extraFields.onTop,
    laterFields: extraFields.later,
    motion,
  }
}

function compilePosition(
  config: SourceConfig,
  inGps: Pick<GpsFields, 'extraFields' | 'bits'>,
  { captures, compile, report }: Scope,
): Pick<Fields, 'gps' | 'gpsLastKnown'> | undefined {
  const { name: source, map } = config
  if (map.latitude && !map.longitude) report(['latitude'], 'needs longitude too.')
  if (map.longitude && !map.latitude) report(['longitude'], 'needs latitude too.')
  if (!map.latitude)
    for (const key of ['speed', 'heading', 'in_motion'] as const)
      if (map[key]) report([key], 'needs latitude and longitude: it is sent with a position only.')
  if (map.speed?.unit !== undefined && map.speed_units !== 'KILOMETERS_PER_HOUR')
    report(['speed', 'unit'], `converts to km/h, but speed_units is ${map.speed_units}; remove one of them.`)
  const latitude = compile(['latitude'], () => coordinateOf(map.latitude, captures, 'latitude'))
  const longitude = compile(['longitude'], () => coordinateOf(map.longitude, captures, 'longitude'))
  const speed = compile(['speed'], () => speedOf(map, captures))
  const heading = compile(['heading'], () => headingOf(map, captures))
  const inMotion = compile(['in_motion'], () => inMotionOf(map, captures))
  if (!latitude || !longitude || speed === undefined || heading === undefined || inMotion === undefined)
    return undefined
  const fields = {
    source,
    latitude,
    longitude,
    speed,
    speedBounds: compileBounds({ source, field: 'speed', unit: map.speed_units }, config.plausibility),
    speedUnits: map.speed_units,
    heading,
    headingBounds: compileBounds({ source, field: 'heading', unit: 'DEGREES' }, config.plausibility),
    inMotion,
    ...inGps,
  }
  return { gps: compileGps(fields), gpsLastKnown: compileGps({ ...fields, heading: null }) }
}

function gpsBitsOf(map: MapConfig, bits: FieldBits): GpsBits {
  const { latitude, longitude, speed, heading, in_motion: inMotion } = map
  const partOf = (name: string, config: unknown) =>
    config === undefined ? 0 : bits.of({ name, role: 'part', config })
  return {
    position:
      latitude === undefined ? 0 : bits.of({ name: position, role: 'alone', config: [latitude, longitude] }),
    speed: partOf('speed', speed),
    heading: partOf('heading', heading),
    inMotion: partOf('in_motion', inMotion),
  }
}

function inMotionOf({ in_motion: field, speed }: MapConfig, captures: readonly string[]): InMotion | null {
  if (!field) return null
  const { path, expr, value, from } = field
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
  if (fromSpeed && path === undefined && expr === undefined) return { read: null, fromSpeed }
  return { read: booleanOf(field, captures), fromSpeed }
}

function motionOf({ in_motion: field }: MapConfig): MotionOptions | null {
  if (field?.from === undefined || field.above === undefined) return null
  const { above, below = above } = field
  if (below > above) throw new Malformed('must have "below" less than or equal to "above"')
  return { above, below, devicesMax }
}

/** `shift`: a duration with a sign. */
function shifted(read: ReadTime, shift: string | undefined): ReadTime {
  if (shift === undefined) return read
  const sizeMs = parseDuration(shift.replace('-', '')) ?? 0
  const byMs = shift.startsWith('-') ? -sizeMs : sizeMs
  return (...place) => read(...place) + byMs
}

function timeOf(
  { map: { time: field }, coalesce }: SourceConfig,
  captures: readonly string[],
): SourcePlan['time'] {
  if (!field) {
    if (coalesce === undefined) return null
    // The newest of the own times of the collected values (state/open-record.ts).
    const raw: Read = (record) => (record as Record<string, unknown>)['$time']
    return { read: compileTime('ms', raw), raw, orArrival: true, format: 'ms', zone: null }
  }
  const { path, expr, format, zone, missing, date, shift } = field
  const formats = typeof format === 'string' ? [format] : format
  if (zone !== undefined && !formats.some(isLocalFormat))
    throw new Malformed(`has a zone, which the format ${formats.join(', ')} does not read`)
  if (formats.length > 1 && formats.includes('arrival'))
    throw new Malformed('has arrival beside other formats; use `missing: arrival` instead')
  if (format === 'arrival') {
    if (path !== undefined || expr !== undefined || date !== undefined || shift !== undefined)
      throw new Malformed('has a path, an expression or a shift, which the format arrival does not read')
    return null
  }
  if (path === undefined && expr === undefined) throw new Malformed('needs a path or an expression')
  const raw = where<unknown>(field, compileTimeReading(field, captures), undefined, captures)
  return {
    read: shifted(compileTime(format, raw), shift),
    raw,
    orArrival: missing === 'arrival',
    format: formats.join(', '),
    zone: compileZone(format, zone),
  }
}

function fixOf({ fix, no_fix: noFix }: SourceConfig, captures: readonly string[]): Fix | null {
  if (!fix) return null
  const times = [fix.time ?? []].flat()
  const own = times.filter((one) => 'path' in one)
  return {
    valid: fix.valid === undefined ? null : compileCondition(fix.valid, captures),
    time: times.length === 0 ? null : compileFixTime(times),
    ownTime: own.length === 0 ? null : compileFixTime(own),
    maxAgeMs: fix.max_age,
    keep: noFix === 'keep',
    keepOld: fix.old === undefined ? noFix === 'keep' : fix.old === 'keep',
    oldTime: fix.old_time === 'message' || fix.old === 'keep' ? fix.old_time : 'fix of a position alone',
  }
}
