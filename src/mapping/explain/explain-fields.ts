// explain-fields.ts: explains the fields of one record: which path found a value, and what is sent of it. The
// parts of the plan are run once more on the record, with a list for what they leave out. Then come the
// effects of the record (explain-effects.ts).

import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { withinLimit } from '../expression/expression.ts'
import { shown } from '../fields/gps.ts'
import { compileSignals } from '../fields/signals.ts'
import { Reading } from '../read/reading.ts'
import type { Finding } from '../types.ts'
import {
  asSent,
  atItsTime,
  inPosition,
  noPosition,
  oncePerKind,
  sentIn,
  valueAt,
  withMotion,
  withProperty,
  type ExplainedField,
  type RecordToExplain,
} from './explain-effects.ts'
import { explainTime } from './explain-time.ts'
import { compileFinder, type Found, type PlacedRecord, type Readable } from './path-finder.ts'

export type ExplainRecord = (place: RecordToExplain) => ExplainedField[]

/** What the parts of the plan make of a record, and what they leave out. */
type Attempt = {
  values: Readonly<Record<string, unknown>>
  /** Why a field was left out, as the counters call it. */
  why: ReadonlyMap<string, string>
  hasPosition: boolean
}

type Row = Readonly<Record<'option' | 'field', string>> & {
  config: Readable
  unit?: string | undefined
  sentUnit?: string | null
  /** As it is counted. */
  counted?: string
  hemisphere?: Readable | undefined
}

export function compileExplainRecord(config: SourceConfig, plan: SourcePlan): ExplainRecord {
  const { captures } = plan
  const time = explainTime(config, plan.time, captures)
  const inGps = gpsRows(config).map((row) => compileRow(row, captures))
  const signals = config.map.signals.map((_signal, index) => compileSignalRow(config, plan, index))
  const others = Object.entries(config.map.fields).map(([name, field]) =>
    compileRow({ option: `fields["${name}"]`, field: name, config: field, unit: field.unit }, captures),
  )
  return (place) => {
    const sent = place.payload === null ? null : sentIn(place.payload)
    const attempt = attemptOf(plan, place)
    const fields = [
      atItsTime(time(place, place.zone), place, sent),
      ...inGps.map((explain) => inPosition(withMotion(explain(place, attempt), config, place, sent), place)),
      ...oncePerKind(
        signals.map((explain) => explain(place)),
        config,
      ),
      ...others
        .map((explain) => explain(place, attempt))
        .map((field) => (field.field.startsWith('gps.') ? inPosition(field, place) : field)),
    ]
    return fields.map((field) => withProperty(asSent(field, place, sent)))
  }
}

function gpsRows({ map }: SourceConfig): Row[] {
  const { latitude, longitude, speed, heading, in_motion: motion } = map
  const rows: Row[] = []
  if (latitude && longitude)
    for (const [option, config] of Object.entries({ latitude, longitude }))
      rows.push({
        option,
        field: option,
        config,
        unit: config.unit,
        sentUnit: 'deg',
        counted: 'position',
        hemisphere: config.hemisphere,
      })
  if (speed)
    rows.push({
      option: 'speed',
      field: 'speed',
      config: speed,
      unit: speed.unit,
      sentUnit: 'KILOMETERS_PER_HOUR',
    })
  if (heading)
    rows.push({ option: 'heading', field: 'heading', config: heading, unit: heading.unit, sentUnit: 'deg' })
  if (motion) rows.push({ option: 'in_motion', field: 'inMotion', config: motion, counted: 'in_motion' })
  return rows
}

function compileRow(row: Row, captures: readonly string[]) {
  const { option, field, unit = null, sentUnit = null, counted = field } = row
  const isPosition = counted === 'position'
  const finder = compileFinder(row.config, captures)
  const hemisphere = row.hemisphere && compileFinder(row.hemisphere, captures)
  const isOnTop = option.startsWith('fields[') && !field.startsWith('gps.')
  const keys = isOnTop || field.startsWith('gps.') ? field.split('.') : ['gps', field]
  return (place: PlacedRecord, { values, why, hasPosition }: Attempt): ExplainedField => {
    const { path, raw, note: own } = finder.find(place)
    const note =
      hemisphere === undefined || raw === undefined ? own : withHemisphere(own, hemisphere.find(place))
    const base = {
      option,
      field,
      path,
      paths: finder.paths,
      ...(raw !== undefined && { raw }),
      unit,
      sentUnit,
    }
    const value = valueAt(values, keys)
    const left = both(why.get(counted) ?? null, note)
    const isUnplaced = keys[0] === 'gps' && raw !== undefined && !hasPosition
    if (!isPosition) return withValue(base, value, left ?? (isUnplaced ? noPosition : null))
    const missing = left ?? 'near 0, 0 there is only sea: no position'
    return withValue(base, value, value === undefined ? missing : note)
  }
}

function withHemisphere(note: string | null, { path, raw }: Found): string {
  const text = `hemisphere${path === null ? '' : ` ${path}`}: ${raw === undefined ? 'absent' : shown(raw)}`
  return note === null ? text : `${note}; ${text}`
}

function compileSignalRow(
  { map, origins }: SourceConfig,
  { captures, signalFields }: SourcePlan,
  index: number,
) {
  const config = map.signals[index]!
  const own = signalFields[index]!
  const { type, part, families, origin, unit = null } = config
  const finder = compileFinder(config, captures)
  const write = compileSignals([own])
  const option = `signals[${index}]`
  const field = part === undefined ? type : `${type} (${part})`
  const sentUnit = own.valueUnit ?? null
  return (place: RecordToExplain): ExplainedField => {
    const { family } = place
    const { path, raw, note } = finder.find(place)
    const base = {
      option,
      field,
      path,
      paths: finder.paths,
      ...(raw !== undefined && { raw }),
      unit,
      sentUnit,
    }
    if (origin !== undefined && !origins.includes(origin))
      return { ...base, note: `its origin ${origin} is not in \`origins\` of the source` }
    if (families !== undefined && (family === null || !families.includes(family))) {
      const of = family === null ? 'no family' : `the family ${family}`
      return { ...base, note: `only for ${families.join(', ')}; the model of the device is in ${of}` }
    }
    const { reading, why } = scratch(place.reading)
    const [text] = withinLimit(() => write(reading)) ?? []
    const value = text === undefined ? undefined : valueAt(JSON.parse(`{"id":"${text}`), ['value'])
    return withValue(base, value, both(why.get(type) ?? null, note))
  }
}

/** A reading of its own, so that nothing is counted. */
export function scratch(reading: Reading) {
  const why = new Map<string, string>()
  const note = (key: string, text: (why: string) => string) => {
    const [field = '', reason = ''] = key.split('|').slice(-2)
    if (!why.has(field)) why.set(field, text(reason))
  }
  const withheld = {
    omit: (_device: string, key: string) => note(key, (reason) => reason),
    implausible: (_device: string, { key, isSent, rule }: Finding, value: number) =>
      note(key, (reason) => `${value} is ${reason}: ${rule}${isSent ? '; sent and counted' : ''}`),
  }
  const { at, record, up } = reading
  const own = new Reading({ withheld, watched: null }, at, record, up)
  own.counters = { values: [], reads: [] }
  return { reading: own, why }
}

function attemptOf(plan: SourcePlan, place: RecordToExplain): Attempt {
  const { reading, why } = scratch(place.reading)
  const gps = withinLimit(() => plan.gps(reading)) ?? null
  const { rejection } = reading
  if (gps === null && rejection.kind === 'refused')
    why.set('position', `${rejection.reason}: ${rejection.detail}`)
  const fields = [plan.extraFields, plan.previous?.fields].map(
    (write) => withinLimit(() => write?.(reading)) ?? '',
  )
  return {
    values: JSON.parse(`{"":0${gps ?? ''}${fields.join('')}}`) as Attempt['values'],
    why,
    hasPosition: gps !== null && gps !== '',
  }
}

/** Why it is not sent, then what `values` made of the value. */
function both(why: string | null, note: string | null): string | null {
  return why === null || note === null ? (why ?? note) : `${why} (${note})`
}

function withValue(
  base: Omit<ExplainedField, 'value' | 'note'>,
  value: unknown,
  note: string | null,
): ExplainedField {
  return value === undefined ? { ...base, note: note ?? 'absent' } : { ...base, value, note }
}
