// explain-field.ts: one field of `map` by itself: which path found what, and what is sent of it.
//
// Each field is compiled a second time by the functions that the mapping itself is compiled with (compile-fields.ts,
// compile-signals.ts), alone. So it can be asked by itself and follows the same rules; that the answers are what
// the payload says is tested over the cases of all presets.

import { createRecordContext } from '../mapper/record-context.ts'
import {
  coordinateOf,
  extraFieldOf,
  headingOf,
  inMotionOf,
  speedOf,
  timeOf,
} from '../compile/compile-fields.ts'
import { signalOf } from '../compile/compile-signals.ts'
import type { ExtraFieldConfig, MapConfig, SignalConfig, SourceConfig } from '../config.ts'
import { compileExtraFields } from '../fields/extra-fields.ts'
import { compileGps, shown, type Coordinate, type GpsFields } from '../fields/gps.ts'
import { compilePath, parsePath } from '../path/path.ts'
import { compileReading } from '../fields/fields.ts'
import { compileSignals } from '../fields/signals.ts'
import { isRecord } from '../path/path-eval.ts'
import { compileCondition } from '../path/condition.ts'
import type { Up } from '../types.ts'

export type ExplainedField = {
  /** As in `map`: `speed`, `signals[0]`, `fields["gps.altitude"]`. */
  option: string
  /** What it becomes: `speed`, `OBD_LIFETIME_ODOMETER`, `gps.altitude`. */
  field: string
  /** The path that found `raw`; null where none did. */
  path: string | null
  /** All that were asked, in order. */
  paths: readonly string[]
  /** As the message has it; absent where it has nothing. */
  raw?: unknown
  unit: string | null
  /** As it is sent; absent where it is not. */
  value?: unknown
  sentUnit: string | null
  /** Why it is not sent, or what else there is to know. */
  note: string | null
}

/** Where a record stands in its message, and what its topic says. */
export type Place = { record: unknown; root: unknown; up: Up; captures: readonly string[] }

export type ExplainField = (place: Place) => ExplainedField

type Found = { path: string | null; raw: unknown; note: string | null }

type Asked = {
  path?: string | readonly string[] | undefined
  value?: unknown
  default?: unknown
  absent?: readonly (number | string)[] | undefined
  decimal_comma?: boolean | undefined
  unit?: string | undefined
}

/** Says which path has a value, by the reading of each path alone. */
function compileFinder(asked: Asked): { paths: readonly string[]; find(place: Place): Found } {
  const { path, value, absent, decimal_comma, unit } = asked
  const paths = path === undefined ? [] : typeof path === 'string' ? [path] : path
  const reads = paths.map((text) => ({
    text,
    raw: compilePath(parsePath(text)),
    read: compileReading({ path: text, absent, decimal_comma, unit }),
  }))
  const instead = asked.default === undefined ? 'absent' : `absent: ${shown(asked.default)} stands in`
  return {
    paths,
    find({ record, root, up }) {
      if (value !== undefined) return { path: null, raw: value, note: 'a constant' }
      let left: Found = { path: null, raw: undefined, note: instead }
      for (const { text, raw, read } of reads) {
        const found = raw(record, root, up)
        if (isThere(read(record, root, up))) return { path: text, raw: found, note: null }
        const note = isThere(found) ? `${shown(found)} means that there is none (\`absent\`)` : instead
        if (found !== undefined && left.raw === undefined) left = { path: text, raw: found, note }
      }
      return left
    },
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

const somewhere: Coordinate = { read: () => 1, raw: () => 1 }

const bareGps: GpsFields = {
  source: '',
  latitude: somewhere,
  longitude: somewhere,
  speed: null,
  speedUnits: '',
  heading: null,
  inMotion: null,
  extraFields: null,
}

/** A field of `gps` by itself, beside a position that is one. */
function compileInGps(fields: Partial<GpsFields>) {
  const write = compileGps({ ...bareGps, ...fields })
  return ({ record, root, up, captures }: Place): { gps: unknown; why: string | null } => {
    const { context, why } = newAttempt(captures)
    const text = write(record, root, up, context)
    if (text === null) return { gps: undefined, why: why() }
    return { gps: text === '' ? undefined : memberOf(text, 'gps'), why: why() }
  }
}

/** An context of our own: what it counts as left out is counted nowhere. */
function newAttempt(captures: readonly string[]) {
  const omitted = new Map<string, number>()
  const context = createRecordContext(omitted)
  context.captures = captures
  const why = () => {
    for (const key of omitted.keys()) return key.slice(key.lastIndexOf('|') + 1)
    const { rejection: ending } = context
    return ending.kind === 'refused' ? `${ending.reason}: ${ending.detail}` : null
  }
  return { context, why }
}

/** `,"name":value` as the mapping writes it. */
function memberOf(text: string, name: string): unknown {
  const members: unknown = JSON.parse(`{${text.slice(1)}}`)
  return isRecord(members) ? members[name] : undefined
}

export function explainTime(config: SourceConfig): ExplainField {
  const { time: field } = config.map
  const time = timeOf(config)
  const paths = field?.path ?? (time ? '$time' : undefined)
  const finder = compileFinder({ path: paths, absent: field?.absent })
  const unit = time?.format ?? 'arrival'
  return (place) => {
    const { record, root, up } = place
    const { path, raw } = finder.find(place)
    const base = { ...head('time', 'signalTimestamp', finder.paths), path, unit, sentUnit: 'ms' }
    if (time === null) return { ...base, note: 'the source reads no time: the arrival time is sent' }
    const moment = time.read(record, root, up)
    if (Number.isNaN(moment))
      return {
        ...withRaw(base, raw),
        note: time.orArrival ? 'absent: the arrival time is sent' : 'NO_TIME: the message has no time',
      }
    if (!Number.isFinite(moment))
      return { ...withRaw(base, raw), note: `BAD_TIME: it is not in the format ${time.format}` }
    return { ...withRaw(base, raw), value: moment, note: null }
  }
}

export function explainPosition(map: MapConfig): ExplainField[] {
  const { latitude, longitude } = map
  if (!latitude || !longitude) return []
  const read = compileInGps({ latitude: coordinateOf(latitude), longitude: coordinateOf(longitude) })
  return (['latitude', 'longitude'] as const).map((name) => {
    const config = name === 'latitude' ? latitude : longitude
    const finder = compileFinder(config)
    return (place) => {
      const { path, raw, note } = finder.find(place)
      const { gps, why } = read(place)
      const value = isRecord(gps) ? gps[name] : undefined
      const base = { ...head(name, name, finder.paths), path, unit: config.unit ?? null, sentUnit: 'deg' }
      const left = why ?? note ?? '0, 0 is what a receiver without a fix says: no position'
      return withValue(withRaw(base, raw), value, note, left)
    }
  })
}

/** Speed, heading and what the message says of motion. */
export function explainMotion(map: MapConfig): ExplainField[] {
  const { speed, heading, in_motion: inMotion } = map
  const explainers: ExplainField[] = []
  if (speed)
    explainers.push(
      inGps('speed', 'speed', speed, speed.unit ?? null, map.speed_units, {
        speed: speedOf(map),
        speedUnits: map.speed_units,
      }),
    )
  if (heading)
    explainers.push(
      inGps('heading', 'heading', heading, heading.unit ?? null, 'deg', { heading: headingOf(map) }),
    )
  const own = inMotionOf(map)
  if (inMotion && own) {
    const fields = own.read ? { inMotion: { read: own.read, fromSpeed: false } } : {}
    explainers.push(inGps('in_motion', 'inMotion', inMotion, null, null, fields))
  }
  return explainers
}

function inGps(
  option: string,
  name: string,
  asked: Asked,
  unit: string | null,
  sentUnit: string | null,
  fields: Partial<GpsFields>,
): ExplainField {
  const finder = compileFinder(asked)
  const read = compileInGps(fields)
  return (place) => {
    const { path, raw, note } = finder.find(place)
    const { gps, why } = read(place)
    const value = isRecord(gps) ? gps[name] : undefined
    const base = { ...head(option, name, finder.paths), path, unit, sentUnit }
    return withValue(withRaw(base, raw), value, note, why ?? note)
  }
}

/** `familyOf` names the device's family of models, null where it belongs to none. */
export function explainSignal(
  { name, origins }: SourceConfig,
  config: SignalConfig,
  index: number,
  captureNames: readonly string[],
): (place: Place, family: string | null) => ExplainedField {
  const { type, part, families, origin, when: condition } = config
  const field = signalOf(name, config, captureNames)
  const finder = compileFinder(config)
  const write = compileSignals([field])
  const holds = condition === undefined ? null : compileCondition(condition, captureNames)
  return (place, family) => {
    const { record, root, up, captures } = place
    const { path, raw, note } = finder.find(place)
    const about = part === undefined ? type : `${type} (${part})`
    const base = withRaw(
      {
        ...head(`signals[${index}]`, about, finder.paths),
        path,
        unit: config.unit ?? null,
        sentUnit: field.valueUnit ?? null,
      },
      raw,
    )
    if (origin !== undefined && !origins.includes(origin))
      return { ...base, note: `its origin ${origin} is none of the \`origins\` of the source` }
    if (families !== undefined && (family === null || !families.includes(family))) {
      const own = family === null ? 'its model belongs to no family' : `it is of the family ${family}`
      return { ...base, note: `only for ${families.join(', ')}; ${own}` }
    }
    if (holds && !holds(record, root, captures, up))
      return { ...base, note: `when does not hold: ${condition ?? ''}` }
    const { context, why } = newAttempt(captures)
    const [text] = write(record, root, up, context)
    const value = text === undefined ? undefined : signalIn(text)
    return withValue(base, value, note, why() ?? note)
  }
}

function signalIn(text: string): unknown {
  const signal: unknown = JSON.parse(`{"id":"${text}`)
  return isRecord(signal) ? signal['value'] : undefined
}

export function explainFurther(
  { name: source }: SourceConfig,
  name: string,
  config: ExtraFieldConfig,
): ExplainField {
  const keys = name.split('.')
  const own = keys[0] === 'gps' ? keys.slice(1) : keys
  const write = compileExtraFields([extraFieldOf(source, name, own, config)])
  const finder = compileFinder(config)
  return (place) => {
    const { record, root, up, captures } = place
    const { path, raw, note } = finder.find(place)
    const { context, why } = newAttempt(captures)
    const text = write ? write(record, root, up, context) : ''
    let value: unknown = text === '' ? undefined : JSON.parse(`{${text.slice(1)}}`)
    for (const key of own) value = isRecord(value) ? value[key] : undefined
    const base = { ...head(`fields["${name}"]`, name, finder.paths), path, unit: config.unit ?? null }
    return withValue(withRaw({ ...base, sentUnit: null }, raw), value, note, why() ?? note)
  }
}

/** What a list of paths finds, such as those that name the device. */
export function findBy(paths: string | readonly string[], place: Place): Found {
  return compileFinder({ path: paths }).find(place)
}

function head(option: string, field: string, paths: readonly string[]) {
  return { option, field, paths }
}

type Base = Omit<ExplainedField, 'raw' | 'value' | 'note'>

function withRaw<Fields extends Base>(base: Fields, raw: unknown): Fields & { raw?: unknown } {
  return raw === undefined ? base : { ...base, raw }
}

function withValue(
  base: Base & { raw?: unknown },
  value: unknown,
  note: string | null,
  why: string | null,
): ExplainedField {
  return value === undefined ? { ...base, note: why ?? 'absent' } : { ...base, value, note }
}
