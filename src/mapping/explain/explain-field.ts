// explain-field.ts: explains one field of `map` alone: which path found a value, and what is sent of it.
//
// Each field is compiled a second time, alone, by the functions that compile the mapping (compile-fields.ts,
// compile-signals.ts), so it follows the same rules.

import { extraFieldOf } from '../compile/compile-extra-fields.ts'
import { headingBoundsOf, inMotionOf, speedBoundsOf } from '../compile/compile-fields.ts'
import { coordinateOf, headingOf, speedOf } from '../compile/compile-values.ts'
import type { ExtraFieldConfig, MapConfig, SourceConfig } from '../config.ts'
import { compileExtraFields } from '../fields/extra-fields.ts'
import { compileGps, shown, type Coordinate, type GpsFields } from '../fields/gps.ts'
import { isRecord } from '../path/path-eval.ts'
import { both, head, newAttempt, withRaw, withValue, type ExplainField } from './explained-field.ts'
import { compileFinder, type Found, type PlacedRecord, type Readable } from './path-finder.ts'

const anyCoordinate: Coordinate = { read: () => 1, raw: () => 1, minusOne: Number.NaN }

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
  bits: { position: 0, speed: 0, heading: 0, inMotion: 0 },
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

/** `,"name":value` as the mapping writes it. */
function memberOf(text: string, name: string): unknown {
  const members: unknown = JSON.parse(`{${text.slice(1)}}`)
  return isRecord(members) ? members[name] : undefined
}

export function explainPosition(map: MapConfig, captureNames: readonly string[]): ExplainField[] {
  const { latitude, longitude } = map
  if (!latitude || !longitude) return []
  const read = compileInGps({
    latitude: coordinateOf(latitude, captureNames, 'latitude'),
    longitude: coordinateOf(longitude, captureNames, 'longitude'),
  })
  return (['latitude', 'longitude'] as const).map((name) => {
    const config = name === 'latitude' ? latitude : longitude
    const finder = compileFinder(config, captureNames)
    const hemisphere = config.hemisphere && compileFinder(config.hemisphere, captureNames)
    return (place) => {
      const { path, raw, note: own } = finder.find(place)
      const note =
        hemisphere === undefined || raw === undefined ? own : withHemisphere(own, hemisphere.find(place))
      const { gps, why } = read(place)
      const value = isRecord(gps) ? gps[name] : undefined
      const base = { ...head(name, name, finder.paths), path, unit: config.unit ?? null, sentUnit: 'deg' }
      const left = both(why, note) ?? 'a receiver without a fix sends 0, 0: no position'
      return withValue(withRaw(base, raw), value, value === undefined ? left : note)
    }
  })
}

function withHemisphere(note: string | null, { path, raw }: Found): string {
  const text = `hemisphere${path === null ? '' : ` ${path}`}: ${raw === undefined ? 'absent' : shown(raw)}`
  return note === null ? text : `${note}; ${text}`
}

/** Speed, heading, and the motion in the message. */
export function explainMotion(config: SourceConfig, captureNames: readonly string[]): ExplainField[] {
  const { map } = config
  const { speed, heading, in_motion: inMotion } = map
  const explainers: ExplainField[] = []
  if (speed)
    explainers.push(
      inGps(speed, captureNames, {
        option: 'speed',
        name: 'speed',
        unit: speed.unit ?? null,
        sentUnit: map.speed_units,
        fields: {
          speed: speedOf(map, captureNames),
          speedBounds: speedBoundsOf(config),
          speedUnits: map.speed_units,
        },
      }),
    )
  if (heading)
    explainers.push(
      inGps(heading, captureNames, {
        option: 'heading',
        name: 'heading',
        unit: heading.unit ?? null,
        sentUnit: 'deg',
        fields: { heading: headingOf(map, captureNames), headingBounds: headingBoundsOf(config) },
      }),
    )
  const own = inMotionOf(map, captureNames)
  if (inMotion && own) {
    const fields = own.read ? { inMotion: { read: own.read, fromSpeed: false } } : {}
    explainers.push(
      inGps(ownOf(inMotion), captureNames, {
        option: 'in_motion',
        name: 'inMotion',
        unit: null,
        sentUnit: null,
        fields,
      }),
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

/** Without what derives the motion from the speed. */
function ownOf({ from: _from, above: _above, below: _below, ...own }: NonNullable<MapConfig['in_motion']>) {
  return own
}

function inGps(
  field: Readable,
  captureNames: readonly string[],
  { option, name, unit, sentUnit, fields }: GpsField,
): ExplainField {
  const finder = compileFinder(field, captureNames)
  const read = compileInGps(fields)
  return (place) => {
    const { path, raw, note } = finder.find(place)
    const { gps, why } = read(place)
    const value = isRecord(gps) ? gps[name] : undefined
    const base = { ...head(option, name, finder.paths), path, unit, sentUnit }
    return withValue(withRaw(base, raw), value, both(why, note))
  }
}

export function explainExtraField(
  source: SourceConfig,
  name: string,
  config: ExtraFieldConfig,
  captureNames: readonly string[],
): ExplainField {
  const keys = name.split('.')
  const own = keys[0] === 'gps' ? keys.slice(1) : keys
  const write = compileExtraFields([extraFieldOf(source, { name, keys: own, field: config }, captureNames)])
  const finder = compileFinder(config, captureNames)
  return (place) => {
    const { record, root, up, captures } = place
    const { path, raw, note } = finder.find(place)
    const { context, why } = newAttempt(captures)
    const text = write ? write(record, root, up, context) : ''
    let value: unknown = text === '' ? undefined : JSON.parse(`{${text.slice(1)}}`)
    for (const key of own) value = isRecord(value) ? value[key] : undefined
    const base = { ...head(`fields["${name}"]`, name, finder.paths), path, unit: config.unit ?? null }
    return withValue(withRaw({ ...base, sentUnit: null }, raw), value, both(why(), note))
  }
}
