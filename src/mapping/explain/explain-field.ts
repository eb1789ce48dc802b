// explain-field.ts: explains one field of `map` alone: which path found a value, and what is sent of it.
//
// Each field is compiled a second time, alone, by the functions that compile the mapping (compile-fields.ts,
// compile-signals.ts), so it follows the same rules.

import { createRecordContext } from '../mapper/record-context.ts'
import {
  coordinateOf,
  extraFieldOf,
  headingBoundsOf,
  headingOf,
  inMotionOf,
  speedBoundsOf,
  speedOf,
  timeOf,
} from '../compile/compile-fields.ts'
import { signalOf } from '../compile/compile-signals.ts'
import type { ExtraFieldConfig, MapConfig, SignalConfig, SourceConfig } from '../config.ts'
import { compileExtraFields } from '../fields/extra-fields.ts'
import { compileGps, type Coordinate, type GpsFields } from '../fields/gps.ts'
import { compileSignals } from '../fields/signals.ts'
import { isRecord } from '../path/path-eval.ts'
import { compileCondition } from '../path/condition.ts'
import { compileFinder, type PlacedRecord, type Readable } from './path-finder.ts'

export type ExplainedField = {
  /** As in `map`: `speed`, `signals[0]`, `fields["gps.altitude"]`. */
  option: string
  /** What it becomes: `speed`, `OBD_LIFETIME_ODOMETER`, `gps.altitude`. */
  field: string
  /** The path that found `raw`; null where none did. */
  path: string | null
  /** All paths of the field, in order. */
  paths: readonly string[]
  /** The value in the message; absent where there is none. */
  raw?: unknown
  unit: string | null
  /** The value in the payload; absent where it is not sent. */
  value?: unknown
  sentUnit: string | null
  /** Why it is not sent, or another remark. */
  note: string | null
}

export type ExplainField = (place: PlacedRecord) => ExplainedField

const anyCoordinate: Coordinate = { read: () => 1, raw: () => 1 }

const bareGps: GpsFields = {
  source: '',
  latitude: anyCoordinate,
  longitude: anyCoordinate,
  speed: null,
  speedBounds: null,
  speedUnits: '',
  heading: null,
  headingBounds: null,
  inMotion: null,
  extraFields: null,
}

/** A field of `gps` alone, with a valid position. */
function compileInGps(fields: Partial<GpsFields>) {
  const write = compileGps({ ...bareGps, ...fields })
  return ({ record, root, up, captures }: PlacedRecord): { gps: unknown; why: string | null } => {
    const { context, why } = newAttempt(captures)
    const text = write(record, root, up, context)
    if (text === null) return { gps: undefined, why: why() }
    return { gps: text === '' ? undefined : memberOf(text, 'gps'), why: why() }
  }
}

/** A context of its own, so that omitted values are not counted. */
function newAttempt(captures: readonly string[]) {
  const reasons: string[] = []
  const context = createRecordContext({
    omit: (_device, key) => reasons.push(reasonIn(key)),
    implausible: (_device, { key, isSent, rule }, value) =>
      reasons.push(`${value} is ${reasonIn(key)}: ${rule}${isSent ? '; sent and counted' : ''}`),
  })
  context.captures = captures
  const why = () => {
    const { rejection: ending } = context
    return reasons[0] ?? (ending.kind === 'refused' ? `${ending.reason}: ${ending.detail}` : null)
  }
  return { context, why }
}

function reasonIn(key: string): string {
  return key.slice(key.lastIndexOf('|') + 1)
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
    if (time === null) return { ...base, note: 'the source has no time: the arrival time is sent' }
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
      const left = why ?? note ?? 'a receiver without a fix sends 0, 0: no position'
      return withValue(withRaw(base, raw), value, value === undefined ? left : note)
    }
  })
}

/** Speed, heading, and the motion in the message. */
export function explainMotion(config: SourceConfig): ExplainField[] {
  const { map } = config
  const { speed, heading, in_motion: inMotion } = map
  const explainers: ExplainField[] = []
  if (speed)
    explainers.push(
      inGps(speed, {
        option: 'speed',
        name: 'speed',
        unit: speed.unit ?? null,
        sentUnit: map.speed_units,
        fields: { speed: speedOf(map), speedBounds: speedBoundsOf(config), speedUnits: map.speed_units },
      }),
    )
  if (heading)
    explainers.push(
      inGps(heading, {
        option: 'heading',
        name: 'heading',
        unit: heading.unit ?? null,
        sentUnit: 'deg',
        fields: { heading: headingOf(map), headingBounds: headingBoundsOf(config) },
      }),
    )
  const own = inMotionOf(map)
  if (inMotion && own) {
    const fields = own.read ? { inMotion: { read: own.read, fromSpeed: false } } : {}
    explainers.push(
      inGps(inMotion, { option: 'in_motion', name: 'inMotion', unit: null, sentUnit: null, fields }),
    )
  }
  return explainers
}

type GpsField = {
  option: string
  /** Of the member of `gps`. */
  name: string
  unit: string | null
  sentUnit: string | null
  fields: Partial<GpsFields>
}

function inGps(field: Readable, { option, name, unit, sentUnit, fields }: GpsField): ExplainField {
  const finder = compileFinder(field)
  const read = compileInGps(fields)
  return (place) => {
    const { path, raw, note } = finder.find(place)
    const { gps, why } = read(place)
    const value = isRecord(gps) ? gps[name] : undefined
    const base = { ...head(option, name, finder.paths), path, unit, sentUnit }
    return withValue(withRaw(base, raw), value, why ?? note)
  }
}

/** `family` is that of the device's model, null where it belongs to none. */
export function explainSignal(
  source: SourceConfig,
  config: SignalConfig,
  index: number,
  captureNames: readonly string[],
): (place: PlacedRecord, family: string | null) => ExplainedField {
  const { origins } = source
  const { type, part, families, origin, when: condition } = config
  const field = signalOf(source, config, captureNames)
  const finder = compileFinder(config)
  const write = compileSignals([field])
  const holds = condition === undefined ? null : compileCondition(condition, captureNames)
  return (place, family) => {
    const { record, root, up, captures } = place
    const { path, raw, note } = finder.find(place)
    const signalName = part === undefined ? type : `${type} (${part})`
    const base = withRaw(
      {
        ...head(`signals[${index}]`, signalName, finder.paths),
        path,
        unit: config.unit ?? null,
        sentUnit: field.valueUnit ?? null,
      },
      raw,
    )
    if (origin !== undefined && !origins.includes(origin))
      return { ...base, note: `its origin ${origin} is not in \`origins\` of the source` }
    if (families !== undefined && (family === null || !families.includes(family))) {
      const own =
        family === null
          ? 'the model of the device is in no family'
          : `the model of the device is in the family ${family}`
      return { ...base, note: `only for ${families.join(', ')}; ${own}` }
    }
    if (holds && !holds(record, root, captures, up))
      return { ...base, note: `when is false: ${condition ?? ''}` }
    const { context, why } = newAttempt(captures)
    const [text] = write(record, root, up, context)
    const value = text === undefined ? undefined : signalIn(text)
    return withValue(base, value, why() ?? note)
  }
}

function signalIn(text: string): unknown {
  const signal: unknown = JSON.parse(`{"id":"${text}`)
  return isRecord(signal) ? signal['value'] : undefined
}

export function explainExtraField(
  source: SourceConfig,
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
    return withValue(withRaw({ ...base, sentUnit: null }, raw), value, why() ?? note)
  }
}

function head(option: string, field: string, paths: readonly string[]) {
  return { option, field, paths }
}

type Base = Omit<ExplainedField, 'raw' | 'value' | 'note'>

function withRaw<Fields extends Base>(base: Fields, raw: unknown): Fields & { raw?: unknown } {
  return raw === undefined ? base : { ...base, raw }
}

function withValue(base: Base & { raw?: unknown }, value: unknown, note: string | null): ExplainedField {
  return value === undefined ? { ...base, note: note ?? 'absent' } : { ...base, value, note }
}
