// explain-fields.ts: explains the fields of one record: which path found a value, and what is sent of it, as
// its reading noted it (fields/field-notes.ts). What a rejected record did not come to is read here, by the
// same plan. Then come the effects of the record.

import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { limitText, withinLimit } from '../expression/expression.ts'
import { FieldNote, SourceNotes, type Found } from '../fields/field-notes.ts'
import { shown } from '../path/value.ts'
import { Reading } from '../read/reading.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { propertyReadBy } from '../path/packet-properties.ts'
import { isRecord, valueAt } from '../path/path-eval.ts'
import type { ClockChange, Zone } from '../times/zones.ts'
import { isArrivalSent, timeFault } from '../filters/record-time.ts'
import { zoneFor, type ZoneRule } from '../times/times.ts'

export function explainFields(
  config: SourceConfig,
  plan: SourcePlan,
  place: RecordToExplain,
): ExplainedField[] {
  const { map } = config
  const sent = place.payload === null ? null : sentIn(place.payload)
  const record = new RecordFields(plan, place)
  const inGps = positionOf(map, record)
  const signals = map.signals.map((_signal, index) => signalOf(config, index, record))
  const others = Object.entries(map.fields).map(([name, { unit }]) => {
    const isInGps = name.startsWith('gps.')
    const row = { option: `fields["${name}"]`, field: name, unit, sentUnit: null }
    const field = record.member(`fields.${name}`, row, isInGps)
    return isInGps ? inPosition(field, place) : field
  })
  const fields = [
    atItsTime(explainTime(config, plan, place), place, sent),
    ...inGps.map((field) => inPosition(withMotion(field, config, place, sent), place)),
    ...oncePerKind(signals, config),
    ...others,
  ]
  return fields.map((field) => withProperty(asSent(field, place, sent)))
}

/** What a field is called, and what is sent of it. */
type Row = Pick<ExplainedField, 'option' | 'field' | 'sentUnit'> & { unit: string | undefined }

/** The units in which the members of a position are sent. */
const sentUnits = {
  latitude: 'deg',
  longitude: 'deg',
  speed: 'KILOMETERS_PER_HOUR',
  heading: 'deg',
  in_motion: null,
} as const

function positionOf(map: SourceConfig['map'], record: RecordFields): ExplainedField[] {
  return Object.entries(sentUnits).flatMap(([option, sentUnit]) => {
    const own = map[option as keyof typeof sentUnits]
    if (!own) return []
    const unit = 'unit' in own ? own.unit : undefined
    const row = { option, field: option === 'in_motion' ? 'inMotion' : option, unit, sentUnit }
    return [isCoordinate(option) ? record.coordinate(row) : record.member(option, row, true)]
  })
}

const isCoordinate = (name: string) => name === 'latitude' || name === 'longitude'

function signalOf({ map, origins }: SourceConfig, index: number, record: RecordFields): ExplainedField {
  const { type, part, families, origin, unit } = map.signals[index]!
  const { family } = record.place
  const row = { option: `signals[${index}]`, field: part === undefined ? type : `${type} (${part})`, unit }
  const field = record.signal(`signals.${index}`, row)
  if (origin !== undefined && !origins.includes(origin))
    return withoutValue(field, `its origin ${origin} is not in \`origins\` of the source`)
  if (families === undefined || (family !== null && families.includes(family))) return field
  const of = family === null ? 'no family' : `the family ${family}`
  return withoutValue(field, `only for ${families.join(', ')}; the model of the device is in ${of}`)
}

/** What the reading of a record noted. */
class RecordFields {
  readonly place: RecordToExplain
  readonly #notes: SourceNotes
  /** Reads what the reading did not come to. */
  readonly #rest: Reading
  /** Null without a position. */
  readonly #position: Readonly<Record<string, unknown>> | null
  /** Why it cannot be used. */
  readonly #fault: string | null

  constructor({ notes }: SourcePlan, place: RecordToExplain) {
    const { reading } = place
    this.place = place
    this.#notes = notes ?? new SourceNotes()
    this.#rest = scratch(reading)
    const { written } = this.#found('latitude')
    this.#position = written === undefined ? null : (JSON.parse(`{${written.slice(1)}}`) as Gps).gps
    const fault = reading.positionFault ?? this.#rest.rejection
    this.#fault = fault.kind === 'refused' ? `${fault.reason}: ${fault.detail}` : null
  }

  coordinate(row: Row): ExplainedField {
    const { option } = row
    const found = this.#found(option)
    const note = this.#withHemisphere(option, found)
    const field = this.#field(option, row, found)
    if (this.#position !== null) return { ...field, value: this.#position[option], note }
    const why = both(this.#fault, note)
    return { ...field, note: why ?? 'near 0, 0 there is only sea: no position' }
  }

  /** `key`: of its notes. */
  member(key: string, row: Row, isInGps: boolean): ExplainedField {
    const isUnplaced = isInGps && this.#position === null
    const found = this.#found(key)
    const { written, raw } = found
    const field = this.#field(key, row, found)
    if (isUnplaced) return { ...field, note: field.note ?? (raw === undefined ? 'absent' : noPosition) }
    const [value] = written === undefined ? [] : Object.values(JSON.parse(`{${written.slice(1)}}`) as object)
    return withValue(field, value)
  }

  signal(key: string, row: Omit<Row, 'sentUnit'>): ExplainedField {
    const found = this.#found(key)
    const { written } = found
    const field = this.#field(key, { ...row, sentUnit: this.#noteOf(key).sentUnit }, found)
    return withValue(field, written && (JSON.parse(`{"id":"${written}`) as { value: string }).value)
  }

  #noteOf(key: string): FieldNote {
    return this.#notes.fields.get(key) ?? new FieldNote(this.#notes)
  }

  /** Where the record did not come to the field, it is read now. */
  #found(key: string): Found {
    const note = this.#noteOf(key)
    const { found, read, write } = note
    if (found !== undefined) return found
    const isRead = withinLimit(() => {
      if (write !== null) write(this.#rest)
      else read(this.#rest)
      return true
    })
    const without = isRead === true ? 'absent' : `no value: ${limitText}`
    return note.found ?? { path: null, raw: undefined, note: without }
  }

  #field(key: string, { option, field, unit, sentUnit }: Row, found: Found): ExplainedField {
    const { paths } = this.#noteOf(key)
    const { path, raw, why = null, note } = found
    return {
      option,
      field,
      path,
      paths,
      ...(raw !== undefined && { raw }),
      unit: unit ?? null,
      sentUnit,
      note: both(why, note),
    }
  }

  #withHemisphere(option: string, { raw, note }: Found): string | null {
    const key = `${option}.hemisphere`
    if (!this.#notes.fields.has(key) || raw === undefined) return note
    const { path, raw: letter } = this.#found(key)
    const text = `hemisphere${path === null ? '' : ` ${path}`}: ${letter === undefined ? 'absent' : shown(letter)}`
    return note === null ? text : `${note}; ${text}`
  }
}

type Gps = { gps: Record<string, unknown> }

/** A reading of its own, so that nothing is counted. */
export function scratch({ at, record, up, notes }: Reading): Reading {
  const withheld = { omit: () => undefined, implausible: () => undefined }
  const own = new Reading({ withheld, watched: null }, at, record, up)
  own.counters = { values: [], reads: [] }
  own.notes = notes
  return own
}

/** Why it is not sent, then what `values` made of the value. */
function both(why: string | null, note: string | null): string | null {
  return why === null || note === null ? (why ?? note) : `${why} (${note})`
}

function withValue(field: ExplainedField, value: unknown): ExplainedField {
  return value === undefined ? { ...field, note: field.note ?? 'absent' } : { ...field, value }
}

// What a record does to its fields: no fix, another signal with a value before it, a
// wrong clock, a privacy profile.

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

type RecordToExplain = {
  reading: Reading
  /** The family of the device's model. */
  family: string | null
  /** Null where it is unknown: then that of the payload applies. */
  arrivedAt: EpochMs | null
  /** Null for a record that was refused, or waits. */
  payload: MappedPayload | null
  /** The time zone of the device. */
  zone: Zone | null
  /** The privacy profile of the asset. */
  profile: string | null
}

/** Says where a value came from that is not in the message itself. */
function withProperty(field: ExplainedField): ExplainedField {
  const { path, value, note } = field
  const property = path === null || value === undefined || note !== null ? null : propertyReadBy(path)
  return property === null ? field : { ...field, note: `from ${property}` }
}

type Sent = Readonly<Record<string, unknown>> | null

function sentIn({ json }: MappedPayload): Sent {
  const sent: unknown = JSON.parse(json)
  return isRecord(sent) ? sent : null
}

function atItsTime(
  field: ExplainedField,
  { reading, arrivedAt, payload }: RecordToExplain,
  sent: Sent,
): ExplainedField {
  const stamp = sent?.['signalTimestamp']
  const { value = arrivedAt ?? stamp, note } = field
  const refused = field.value === undefined && /^[A-Z_]+:/.test(note ?? '')
  if (refused || value === undefined) return field
  if (stamp === undefined || stamp === value) return { ...field, value }
  if (payload?.deviceTime === null)
    return { ...field, value: stamp, note: 'the device clock is wrong: the arrival time is sent' }
  if (reading.fixTime === stamp)
    return { ...field, value: stamp, note: 'the position is older and is sent with its own time' }
  return { ...field, value }
}

const noPosition = 'it is sent only with a position, and there is none'

/** A field that is sent only with a position. */
function inPosition(field: ExplainedField, { reading }: RecordToExplain): ExplainedField {
  const why = whyNoPosition(reading)
  // For a position that cannot be used, the note of the coordinate says why.
  if (why !== null)
    return withoutValue(field, isCoordinate(field.field) && why === noPosition ? (field.note ?? why) : why)
  if (reading.isLastKnown && field.field === 'heading')
    return withoutValue(field, 'the position is a last known one, so its heading is not sent')
  return field
}

function whyNoPosition({
  gps,
  positionFault,
  zeroPosition,
  isValid,
  fixTime,
  judged,
}: Reading): string | null {
  if (positionFault !== null) return noPosition
  if (gps === '')
    return zeroPosition
      ? 'no fix: near 0, 0, at -1, -1 or at a pole. The receiver has no fix, or the unit is another one'
      : noPosition
  if (gps !== null || judged === 0) return null
  if (isValid === false) return 'no fix: fix.valid is false'
  const taken = fixTime === null || Number.isNaN(fixTime) ? '' : `, taken ${new Date(fixTime).toISOString()}`
  return `no fix: the position is older than fix.max_age${taken}`
}

function withMotion(
  field: ExplainedField,
  { map: { in_motion: inMotion } }: SourceConfig,
  { payload }: RecordToExplain,
  sent: Sent,
): ExplainedField {
  if (field.option !== 'in_motion' || field.value !== undefined || inMotion?.from === undefined) return field
  const derived = sent === null ? undefined : valueAt(sent, ['gps', 'inMotion'])
  const limits = inMotion.below === undefined ? '' : `, standing at or below ${inMotion.below}`
  const rule = `derived from the speed: moving above ${inMotion.above ?? 0}${limits}`
  if (derived !== undefined) return { ...field, value: derived, note: rule }
  const more = payload === null ? '' : '; there is no speed, or it is between the two limits'
  return { ...field, note: rule + more }
}

/** Of several signals with one type and part, the first one with a value is sent. */
function oncePerKind(fields: readonly ExplainedField[], { map }: SourceConfig): ExplainedField[] {
  const before = new Map<string, string>()
  return fields.map((field, index) => {
    const signal = map.signals[index]
    if (field.value === undefined || !signal) return field
    const kind = JSON.stringify([signal.type, signal.part])
    const first = before.get(kind)
    if (first === undefined) before.set(kind, field.option)
    return first === undefined ? field : withoutValue(field, `${first} has a value and is sent instead`)
  })
}

/** A field may be named and not sent: by the privacy profile of the asset, or by what is remembered. */
function asSent(field: ExplainedField, { profile }: RecordToExplain, sent: Sent): ExplainedField {
  if (field.value === undefined || sent === null) return field
  const found = valueIn(sent, field)
  if (profile === null)
    return found === undefined ? withoutValue(field, 'withheld by what is remembered of the device') : field
  if (found === field.value) return field
  const note = `the privacy profile ${profile}`
  return found === undefined
    ? withoutValue(field, `${note} withholds it`)
    : { ...field, value: found, note: `${note} rounds it` }
}

/** The value of a field in a payload; undefined where it has none. */
export function valueIn(sent: Readonly<Record<string, unknown>>, field: ExplainedField): unknown {
  if (field.option === 'time') return sent['signalTimestamp']
  if (field.option.startsWith('signals[')) {
    const signals: unknown[] = Array.isArray(sent['signals']) ? sent['signals'] : []
    const own = signals.find((signal) => isRecord(signal) && signalName(signal) === field.field)
    return isRecord(own) ? own['value'] : undefined
  }
  return valueAt(sent, (field.option.startsWith('fields[') ? field.field : `gps.${field.field}`).split('.'))
}

function signalName({ type, assetPart }: Readonly<Record<string, unknown>>): string {
  return typeof assetPart === 'string' ? `${String(type)} (${assetPart})` : String(type)
}

function withoutValue({ value: _value, ...field }: ExplainedField, note: string): ExplainedField {
  return { ...field, note }
}

// Explains the time of a record: its path, its format, its zone, and the rule for a local
// time that a change of the clock skips or repeats.

/** What is read of the time is read once more, to see by which rule of its zone. */
function explainTime(
  { map: { time: field } }: SourceConfig,
  { time, notes }: SourcePlan,
  { reading, zone: ofDevice }: RecordToExplain,
): ExplainedField {
  const base = { option: 'time', field: 'signalTimestamp', sentUnit: 'ms' }
  if (time === null)
    return {
      ...base,
      path: null,
      paths: [],
      unit: 'arrival',
      note: 'the source has no time: the arrival time is sent',
    }
  const observed = observe(zoneFor(time.zone, ofDevice))
  const read = () => time.read(reading, observed.zone)
  const moment = withinLimit(read) ?? Number.NaN
  const written = withinLimit(() => time.raw(reading))
  const [date, clock] = ['time.date', 'time'].map((option) => notes?.fields.get(option))
  const own = field === undefined ? '$time' : (clock?.found?.path ?? null)
  const raw = clock?.found === undefined || date !== undefined ? written : clock.found.raw
  const place = {
    ...base,
    path: date?.found?.path && own !== null ? `${date.found.path} and ${own}` : own,
    paths: field === undefined ? ['$time'] : [...(date?.paths ?? []), ...(clock?.paths ?? [])],
    unit: formatText(time.format, time.zone, ofDevice),
    ...(raw !== undefined && { raw }),
  }
  const fault = timeFault(time, moment, reading)
  if (fault === null) return { ...place, value: moment, note: ruleText(observed.change()) }
  const { reason, detail } = fault
  const isSent = isArrivalSent(time, fault)
  return { ...place, note: isSent ? `${detail} The arrival time is sent.` : `${reason}: ${detail}` }
}

function formatText(format: string, rule: ZoneRule, ofDevice: Zone | null): string {
  if (rule === null) return format
  if (rule !== 'device') return `${format} in ${rule.name}`
  return ofDevice === null ? `${format}, no zone` : `${format} in ${ofDevice.name}, zone of the device`
}

/** The same zone, which notes the last local time that was read in it. */
function observe(zone: Zone | null) {
  let local = Number.NaN
  const change = (): ClockChange | null =>
    zone === null || Number.isNaN(local) ? null : zone.changeAt(local)
  const observed = zone && {
    ...zone,
    momentAt(time: number) {
      local = time
      return zone.momentAt(time)
    },
  }
  return { zone: observed, change }
}

const rules = {
  repeated: 'the clock goes back and repeats this time: the first of the two moments',
  skipped: 'the clock goes forward and skips this time: moved forward by what is skipped',
} as const satisfies Record<ClockChange, string>

function ruleText(change: ClockChange | null): string | null {
  return change === null ? null : rules[change]
}
