// usual-options.ts: which options of a source the fast path knows. The tables name every option of the
// config: one that is added later does not compile without an entry, so the fast path cannot pass it over.
//
//   usual    read by compile-plan.ts, or it decides nothing about a record
//   parsed   the messages of a source that sets it are parsed

import type {
  CoordinateConfig,
  ExtraFieldConfig,
  FieldConfig,
  MapConfig,
  SignalConfig,
  SourceConfig,
} from '../config.ts'

type Use = 'usual' | 'parsed'
type Options = Readonly<Record<string, unknown>>

const sourceOptions: Record<keyof SourceConfig, Use> = {
  name: 'usual',
  description: 'usual',
  preset: 'usual',
  from: 'usual',
  topic: 'usual',
  exclude: 'usual',
  retained: 'usual',
  wills: 'usual',
  identity: 'usual',
  provider: 'usual',
  defaults: 'usual',
  unused: 'usual',
  // Of the device.
  device: 'usual',
  model: 'usual',
  models: 'usual',
  families: 'usual',
  warn_without_model: 'usual',
  origins: 'usual',
  // Of what `extract` opens.
  keys: 'usual',
  // Read by the plan, or decided by it.
  encoding: 'usual',
  map: 'usual',
  when: 'usual',
  fix: 'usual',
  no_fix: 'usual',
  plausibility: 'usual',
  // Of lists, which are parsed.
  max_records: 'usual',
  extract: 'parsed',
  each: 'parsed',
  refuse: 'parsed',
  jsonata: 'parsed',
  coalesce: 'parsed',
  remember: 'parsed',
  // Its source is parsed where a path reads previous values.
  previous: 'parsed',
  thin: 'parsed',
  merge: 'parsed',
}

const fixOptions: Record<keyof NonNullable<SourceConfig['fix']>, Use> = {
  valid: 'usual',
  time: 'parsed',
  // What is done with the time of a fix.
  max_age: 'usual',
  old: 'usual',
  old_time: 'usual',
}

const mapOptions: Record<keyof MapConfig, Use> = {
  time: 'usual',
  latitude: 'usual',
  longitude: 'usual',
  speed: 'usual',
  speed_units: 'usual',
  heading: 'usual',
  in_motion: 'usual',
  signals: 'usual',
  fields: 'usual',
}

export type FieldOption =
  | keyof CoordinateConfig
  | keyof ExtraFieldConfig
  | keyof FieldConfig
  | keyof NonNullable<MapConfig['in_motion']>
  | keyof NonNullable<MapConfig['time']>
  | keyof SignalConfig

/** Of all fields of `map` together. */
const fieldOptions: Record<FieldOption, Use> = {
  path: 'usual',
  // Conversions, which the plan takes from the other way of mapping.
  unit: 'usual',
  scale: 'usual',
  offset: 'usual',
  type: 'usual',
  quantity: 'usual',
  // Of a time.
  format: 'usual',
  zone: 'usual',
  date: 'parsed',
  missing: 'usual',
  // Of motion.
  from: 'usual',
  above: 'usual',
  below: 'usual',
  // Of a signal.
  value_unit: 'usual',
  part: 'usual',
  families: 'usual',
  origin: 'usual',
  when: 'parsed',
  bit: 'parsed',
  values: 'parsed',
  negative: 'parsed',
  plus: 'parsed',
  minus: 'parsed',
  over: 'parsed',
  value: 'parsed',
  default: 'parsed',
  absent: 'parsed',
  decimal_comma: 'parsed',
  hemisphere: 'parsed',
}

export function hasUsualOptions(config: SourceConfig): boolean {
  const { fix, map } = config
  return (
    isUsual(config, sourceOptions) &&
    (fix === undefined || isUsual(fix, fixOptions)) &&
    isUsual(map, mapOptions) &&
    config.encoding === 'json'
  )
}

export function isUsualField(field: Options): boolean {
  // A unit that the message names depends on another value.
  return typeof field['unit'] !== 'object' && isUsual(field, fieldOptions)
}

function isUsual(options: Options, uses: Readonly<Record<string, Use>>): boolean {
  return Object.entries(options).every(([name, value]) => uses[name] === 'usual' || !isSet(value))
}

/** A list without an entry is the default of an option. */
function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined
}
