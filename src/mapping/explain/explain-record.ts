// explain-record.ts: all fields of one record: each by itself (explain-field.ts), then what the record as a whole
// does to them: no fix, another signal that came first, a clock that is wrong, a profile that withholds.

import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourceConfig } from '../config.ts'
import {
  explainFurther,
  explainMotion,
  explainPosition,
  explainSignal,
  explainTime,
  type ExplainedField,
  type Place,
} from './explain-field.ts'
import type { Trace } from './explain-trace.ts'
import { isRecord } from '../path/path-eval.ts'

export type RecordPlace = Place & {
  trace: Trace
  /** The device's family of models. */
  family: string | null
  /** Null where it is not known: then the payload has it. */
  arrivedAt: EpochMs | null
  /** What the record became; null where it was refused, or waits. */
  payload: MappedPayload | null
  /** The profile that withholds something of the asset. */
  profile: string | null
}

export type ExplainRecord = (place: RecordPlace) => ExplainedField[]

export function compileExplainer(config: SourceConfig, captureNames: readonly string[]): ExplainRecord {
  const { map } = config
  const time = explainTime(config)
  const position = explainPosition(map)
  const motion = explainMotion(map)
  const signals = map.signals.map((signal, index) => explainSignal(config, signal, index, captureNames))
  const further = Object.entries(map.fields).map(([name, field]) => explainFurther(config, name, field))
  return (place) => {
    const sent = sentIn(place.payload)
    const inGps = [...position, ...motion].map((explain) => explain(place))
    const others = further.map((explain) => explain(place))
    const fields = [
      atItsTime(time(place), place, sent),
      ...inGps.map((field) => inPosition(withMotion(field, config, place, sent), place)),
      ...oncePerKind(
        signals.map((explain) => explain(place, place.family)),
        config,
      ),
      ...others.map((field) => (isInGps(field) ? inPosition(field, place) : field)),
    ]
    return place.profile === null ? fields : fields.map((field) => unlessWithheld(field, place, sent))
  }
}

type Sent = Readonly<Record<string, unknown>> | null

function sentIn(payload: MappedPayload | null): Sent {
  if (payload === null) return null
  const sent: unknown = JSON.parse(payload.json)
  return isRecord(sent) ? sent : null
}

function atItsTime(
  field: ExplainedField,
  { trace, arrivedAt, payload }: RecordPlace,
  sent: Sent,
): ExplainedField {
  const stamp = sent?.['signalTimestamp']
  const { value = arrivedAt ?? stamp, note } = field
  const refused = field.value === undefined && /^[A-Z_]+:/.test(note ?? '')
  if (refused || value === undefined) return field
  if (stamp === undefined || stamp === value) return { ...field, value }
  if (payload?.deviceTime === null)
    return { ...field, value: stamp, note: 'the clock of the device is wrong: the arrival time is sent' }
  if (trace.takenAt === stamp)
    return { ...field, value: stamp, note: 'the position is older and is sent under its own time' }
  return { ...field, value }
}

function isInGps({ field }: ExplainedField): boolean {
  return field.startsWith('gps.')
}

/** What is sent with a position only. */
function inPosition(field: ExplainedField, place: RecordPlace): ExplainedField {
  const why = whyNoPosition(place.trace)
  if (why !== null) {
    const isPlace = field.field === 'latitude' || field.field === 'longitude'
    // Where the place itself cannot be used, its own field says why.
    if (isPlace && why === noPlace) return withoutValue(field, field.note ?? why)
    return withoutValue(field, why)
  }
  if (place.trace.lastKnown && field.field === 'heading')
    return withoutValue(field, 'the position is the last known one: its heading is not')
  return field
}

const noPlace = 'it is sent with a position only, and there is none'

function whyNoPosition(trace: Trace): string | null {
  const { gps, placeRefused, nowhere, valid, takenAt, signals } = trace
  if (placeRefused) return noPlace
  if (gps === '') return nowhere ? 'no fix: 0, 0 is what a receiver without a fix says' : noPlace
  if (gps !== null || signals === null) return null
  if (valid === false) return 'no fix: fix.valid does not hold'
  const taken = takenAt === null || Number.isNaN(takenAt) ? '' : `, taken ${new Date(takenAt).toISOString()}`
  return `no fix: the position is older than fix.max_age${taken}`
}

function withMotion(
  field: ExplainedField,
  { map: { in_motion: inMotion } }: SourceConfig,
  { payload }: RecordPlace,
  sent: Sent,
): ExplainedField {
  if (field.option !== 'in_motion' || field.value !== undefined || inMotion?.from === undefined) return field
  const gps = sent?.['gps']
  const derived = isRecord(gps) ? gps['inMotion'] : undefined
  const limits = inMotion.below === undefined ? '' : `, standing at or below ${inMotion.below}`
  const rule = `follows from the speed: moving above ${inMotion.above ?? 0}${limits}`
  if (derived !== undefined) return { ...field, value: derived, note: rule }
  return { ...field, note: payload === null ? rule : `${rule}; there is no speed, or it was in between` }
}

/** Of several signals of one type and part the first that has a value is sent. */
function oncePerKind(fields: readonly ExplainedField[], { map }: SourceConfig): ExplainedField[] {
  const before = new Map<string, string>()
  return fields.map((field, index) => {
    const signal = map.signals[index]
    if (field.value === undefined || !signal) return field
    const kind = JSON.stringify([signal.type, signal.part])
    const first = before.get(kind)
    if (first === undefined) before.set(kind, field.option)
    return first === undefined ? field : withoutValue(field, `${first} has a value and comes first`)
  })
}

function unlessWithheld(field: ExplainedField, { profile }: RecordPlace, sent: Sent): ExplainedField {
  if (field.value === undefined || sent === null) return field
  const found = valueIn(sent, field)
  if (found === field.value) return field
  const note = `the privacy profile ${profile ?? ''} withholds it`
  return found === undefined
    ? withoutValue(field, note)
    : { ...field, value: found, note: `the privacy profile ${profile ?? ''} makes it coarse` }
}

/** What a payload says of a field; undefined where it says nothing. */
export function valueIn(sent: Readonly<Record<string, unknown>>, field: ExplainedField): unknown {
  if (field.option === 'time') return sent['signalTimestamp']
  if (field.option.startsWith('signals[')) {
    const signals: unknown[] = Array.isArray(sent['signals']) ? sent['signals'] : []
    const own = signals.find((signal) => isRecord(signal) && aboutOf(signal) === field.field)
    return isRecord(own) ? own['value'] : undefined
  }
  const inner = field.option.startsWith('fields[') ? field.field : `gps.${field.field}`
  let value: unknown = sent
  for (const key of inner.split('.')) value = isRecord(value) ? value[key] : undefined
  return value
}

function aboutOf(signal: Readonly<Record<string, unknown>>): string {
  const { type, assetPart } = signal
  return typeof assetPart === 'string' ? `${String(type)} (${assetPart})` : String(type)
}

function withoutValue({ value: _value, ...field }: ExplainedField, note: string): ExplainedField {
  return { ...field, note }
}
