// explain-fields.ts: explains the fields of one record: which path found a value, and what is sent of it, as
// its reading noted it (fields/field-notes.ts). What a rejected record did not come to is read here, by the
// same plan. Then come the effects of the record (explain-effects.ts).

import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { limitText, withinLimit } from '../expression/expression.ts'
import { FieldNote, SourceNotes, type Found } from '../fields/field-notes.ts'
import { shown } from '../path/value.ts'
import { Reading } from '../read/reading.ts'
import {
  asSent,
  atItsTime,
  inPosition,
  noPosition,
  oncePerKind,
  sentIn,
  withMotion,
  withoutValue,
  withProperty,
  type ExplainedField,
  type RecordToExplain,
} from './explain-effects.ts'
import { explainTime } from './explain-time.ts'

export function explainFields(
  config: SourceConfig,
  plan: SourcePlan,
  place: RecordToExplain,
): ExplainedField[] {
  const { map } = config
  const sent = place.payload === null ? null : sentIn(place.payload)
  const record = new RecordFields(plan, place)
  const inGps = [...coordinatesOf(map, record), ...membersOf(map, record)]
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

function coordinatesOf({ latitude, longitude }: SourceConfig['map'], record: RecordFields): ExplainedField[] {
  if (!latitude || !longitude) return []
  return Object.entries({ latitude, longitude }).map(([option, { unit }]) =>
    record.coordinate({ option, field: option, unit, sentUnit: 'deg' }),
  )
}

function membersOf(
  { speed, heading, in_motion: motion }: SourceConfig['map'],
  record: RecordFields,
): ExplainedField[] {
  const rows: Row[] = []
  if (speed) rows.push({ option: 'speed', field: 'speed', unit: speed.unit, sentUnit: 'KILOMETERS_PER_HOUR' })
  if (heading) rows.push({ option: 'heading', field: 'heading', unit: heading.unit, sentUnit: 'deg' })
  if (motion) rows.push({ option: 'in_motion', field: 'inMotion', unit: undefined, sentUnit: null })
  return rows.map((row) => record.member(row.option, row, true))
}

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
