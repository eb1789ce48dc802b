// compile-fields.ts: the `map` of a source as closures: time, position, signals.

import type { Compile, Report } from './compile.ts'
import type { FieldConfig, SignalConfig, SourceConfig } from './config.ts'
import { Malformed } from './cursor.ts'
import { createScale, product, ratioOf, type Ratio } from './decimal.ts'
import {
  compileBoolean,
  compileGps,
  compileNumber,
  type Coordinate,
  type InMotion,
  type ReadNumber,
  type WriteGps,
} from './gps.ts'
import { compilePath, parsePath, type Read } from './path.ts'
import { compileSignals, type SignalField } from './signals.ts'
import type { CompiledSource } from './source.ts'
import { compileTime } from './time.ts'
import { angleUnits, createConvert, signalUnits, speedUnits, valueUnitOf } from './units.ts'
import { decimalFrom } from './value.ts'

type Keys = (string | number)[]

type Map = SourceConfig['map']

/** Digits behind the point of what is computed: a tenth of a millimetre, and far below any instrument. */
const coordinatePlaces = 9
const measurePlaces = 6

/** What the interface's known types count, and in what (ingestion-api.md 2.5). */
const knownTypes = new Map([
  ['OBD_LIFETIME_ODOMETER', 'KILOMETERS'],
  ['OBD_TOTAL_ENGINE_TIME', 'HOURS'],
])

const nothing: Read = () => undefined
const noNumber: ReadNumber = () => Number.NaN

/** Undefined where a problem was reported. */
export function compileFields(
  { name, map }: SourceConfig,
  path: Keys,
  compile: Compile,
  report: Report,
): Pick<CompiledSource, 'time' | 'gps' | 'signals'> | undefined {
  if (!map.latitude && !map.longitude && map.signals.length === 0)
    report(path, 'must have latitude and longitude, or signals: without either there is nothing to send.')
  const gps = compilePosition(name, map, path, compile, report)
  const time = compile([...path, 'time'], () => timeOf(map.time))
  const signals = map.signals.map((signal, index) =>
    compile([...path, 'signals', index], () => signalOf(name, signal)),
  )
  const sound = signals.filter((signal) => signal !== undefined)
  if (!gps || time === undefined || sound.length < signals.length) return undefined
  return { time, gps, signals: compileSignals(sound) }
}

function compilePosition(
  source: string,
  map: Map,
  path: Keys,
  compile: Compile,
  report: Report,
): WriteGps | undefined {
  for (const [one, other] of [
    ['latitude', 'longitude'],
    ['longitude', 'latitude'],
  ] as const)
    if (map[one] && !map[other]) report([...path, one], `needs ${other} beside it.`)
  if (!map.latitude)
    for (const key of ['speed', 'heading', 'in_motion'] as const)
      if (map[key]) report([...path, key], 'needs latitude and longitude: it is sent with a position only.')
  if (map.speed?.unit !== undefined && map.speed_units !== 'KILOMETERS_PER_HOUR')
    report(
      [...path, 'speed', 'unit'],
      `converts to km/h, but speed_units is ${map.speed_units}; leave one away.`,
    )
  const at = (key: string) => [...path, key]
  const latitude = compile(at('latitude'), () => coordinateOf(map.latitude))
  const longitude = compile(at('longitude'), () => coordinateOf(map.longitude))
  const speed = compile(at('speed'), () => numberOf(map.speed, speedUnits, 'km/h', measurePlaces))
  const heading = compile(at('heading'), () => numberOf(map.heading, angleUnits, 'deg', measurePlaces))
  const inMotion = compile(at('in_motion'), () => inMotionOf(map))
  if (!latitude || !longitude || speed === undefined || heading === undefined || inMotion === undefined)
    return undefined
  return compileGps({ source, latitude, longitude, speed, heading, inMotion, speedUnits: map.speed_units })
}

function coordinateOf(field: FieldConfig | undefined): Coordinate {
  if (!field) return { read: noNumber, raw: nothing }
  return { read: numberOf(field, angleUnits, 'deg', coordinatePlaces) ?? noNumber, raw: rawOf(field) }
}

function numberOf(
  field: FieldConfig | undefined,
  units: Readonly<Record<string, Ratio>>,
  usual: string,
  places: number,
): ReadNumber | null {
  if (!field) return null
  const unit = units[field.unit ?? usual] ?? ratioOf('1')
  return compileNumber(rawOf(field), createConvert(unit, field.scale, field.offset, places), field.default)
}

/** A path or a constant, of which there must be one. */
function rawOf({ path, value }: { path?: string | undefined; value?: unknown }): Read {
  if (path === undefined && value === undefined) throw new Malformed('needs a path or a value')
  if (path === undefined) return () => value
  if (value !== undefined) throw new Malformed('must have a path or a value, not both')
  return compilePath(parsePath(path))
}

function inMotionOf({ in_motion: field, speed }: Map): InMotion | null {
  if (!field) return null
  if (field.from === undefined) {
    if (field.above !== undefined) throw new Malformed('has "above" without "from: speed"')
    return { kind: 'read', read: compileBoolean(rawOf(field), field.default) }
  }
  if (field.path !== undefined || field.value !== undefined || field.default !== undefined)
    throw new Malformed('must be read from the message or derived from the speed, not both')
  if (!speed) throw new Malformed('is derived from the speed, so it needs speed beside it')
  if (field.above === undefined) throw new Malformed('needs "above": the speed beyond which it moves')
  return { kind: 'speed', above: field.above }
}

function timeOf(field: Map['time']): CompiledSource['time'] {
  if (!field) return null
  const { path, format, zone, missing } = field
  if (zone !== undefined && format !== 'iso')
    throw new Malformed('has a zone, which only the format iso needs')
  if (format === 'arrival') {
    if (path !== undefined) throw new Malformed('has a path, but the format arrival reads nothing')
    return null
  }
  if (path === undefined) throw new Malformed('needs a path')
  const raw = compilePath(parsePath(path))
  return { read: compileTime(format, raw, zone === 'utc'), raw, orArrival: missing === 'arrival', format }
}

function signalOf(source: string, field: SignalConfig): SignalField {
  const { type, unit, part, value_unit: named, default: otherwise } = field
  const read = rawOf(field)
  for (const [key, constant] of [
    ['value', field.value],
    ['default', otherwise],
  ] as const)
    if (constant !== undefined && decimalFrom(constant) === undefined)
      throw new Malformed(`has a ${key} that is no decimal number`)
  const known = knownTypes.get(type)
  const converted = unit === undefined ? undefined : valueUnitOf(unit)
  if (known !== undefined && converted !== undefined && known !== converted)
    throw new Malformed(`has the unit ${unit}, but ${type} is in ${known}`)
  if (named !== undefined && converted !== undefined && named !== converted)
    throw new Malformed(`has the unit ${unit}, which becomes ${converted}, but value_unit is ${named}`)
  const ratio = unit === undefined ? ratioOf('1') : signalUnits[unit]
  return {
    source,
    type,
    valueUnit: named ?? converted ?? known,
    part,
    read,
    scale: createScale(product(ratio, ratioOf(String(field.scale))), field.offset),
    otherwise,
    neverNegative: known !== undefined,
  }
}
