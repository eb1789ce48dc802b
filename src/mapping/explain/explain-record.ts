// explain-record.ts: explains all fields of one record: each alone (explain-field.ts), then the effects of
// the record on them: no fix, another signal with a value before it, a wrong clock, a privacy profile.

import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourceConfig } from '../config.ts'
import { explainExtraField, explainMotion, explainPosition } from './explain-field.ts'
import { explainSignal } from './explain-signal.ts'
import { explainTime } from './explain-time.ts'
import type { Zone } from '../times/zones.ts'
import type { ExplainedField } from './explained-field.ts'
import type { Trace } from './explain-trace.ts'
import type { PlacedRecord } from './path-finder.ts'
import { propertyReadBy } from '../path/packet-properties.ts'
import { isRecord } from '../path/path-eval.ts'

export type RecordToExplain = PlacedRecord & {
  trace: Trace
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

export type ExplainRecord = (place: RecordToExplain) => ExplainedField[]

export function compileExplainer(config: SourceConfig, captureNames: readonly string[]): ExplainRecord {
  const { map } = config
  const time = explainTime(config, captureNames)
  const position = explainPosition(map, captureNames)
  const motion = explainMotion(config, captureNames)
  const signals = map.signals.map((signal, index) => explainSignal(config, signal, index, captureNames))
  const extraFields = Object.entries(map.fields).map(([name, field]) =>
    explainExtraField(config, name, field, captureNames),
  )
  return (place) => {
    const sent = sentIn(place.payload)
    const inGps = [...position, ...motion].map((explain) => explain(place))
    const others = extraFields.map((explain) => explain(place))
    const fields = [
      atItsTime(time(place, place.zone), place, sent),
      ...inGps.map((field) => inPosition(withMotion(field, config, place, sent), place)),
      ...oncePerKind(
        signals.map((explain) => explain(place, place.family)),
        config,
      ),
      ...others.map((field) => (isInGps(field) ? inPosition(field, place) : field)),
    ]
    return fields
      .map((field) =>
        place.profile === null ? unlessRemembered(field, sent) : unlessWithheld(field, place, sent),
      )
      .map(withProperty)
  }
}

/** Says where a value came from that is not in the message itself. */
function withProperty(field: ExplainedField): ExplainedField {
  const { path, value, note } = field
  const property = path === null || value === undefined || note !== null ? null : propertyReadBy(path)
  return property === null ? field : { ...field, note: `from ${property}` }
}

type Sent = Readonly<Record<string, unknown>> | null

function sentIn(payload: MappedPayload | null): Sent {
  if (payload === null) return null
  const sent: unknown = JSON.parse(payload.json)
  return isRecord(sent) ? sent : null
}

function atItsTime(
  field: ExplainedField,
  { trace, arrivedAt, payload }: RecordToExplain,
  sent: Sent,
): ExplainedField {
  const stamp = sent?.['signalTimestamp']
  const { value = arrivedAt ?? stamp, note } = field
  const refused = field.value === undefined && /^[A-Z_]+:/.test(note ?? '')
  if (refused || value === undefined) return field
  if (stamp === undefined || stamp === value) return { ...field, value }
  if (payload?.deviceTime === null)
    return { ...field, value: stamp, note: 'the device clock is wrong: the arrival time is sent' }
  if (trace.takenAt === stamp)
    return { ...field, value: stamp, note: 'the position is older and is sent with its own time' }
  return { ...field, value }
}

function isInGps({ field }: ExplainedField): boolean {
  return field.startsWith('gps.')
}

/** A field that is sent only with a position. */
function inPosition(field: ExplainedField, place: RecordToExplain): ExplainedField {
  const why = whyNoPosition(place.trace)
  if (why !== null) {
    const isCoordinate = field.field === 'latitude' || field.field === 'longitude'
    // For a position that cannot be used, the note of the coordinate says why.
    if (isCoordinate && why === noPosition) return withoutValue(field, field.note ?? why)
    return withoutValue(field, why)
  }
  if (place.trace.lastKnown && field.field === 'heading')
    return withoutValue(field, 'the position is a last known one, so its heading is not sent')
  return field
}

const noPosition = 'it is sent only with a position, and there is none'

function whyNoPosition(trace: Trace): string | null {
  const { gps, positionRefused, zeroPosition, valid, takenAt, signals } = trace
  if (positionRefused) return noPosition
  if (gps === '')
    return zeroPosition ? 'no fix: a receiver without a fix sends 0, 0, or -1, -1, or a pole' : noPosition
  if (gps !== null || signals === null) return null
  if (valid === false) return 'no fix: fix.valid is false'
  const taken = takenAt === null || Number.isNaN(takenAt) ? '' : `, taken ${new Date(takenAt).toISOString()}`
  return `no fix: the position is older than fix.max_age${taken}`
}

function withMotion(
  field: ExplainedField,
  { map: { in_motion: inMotion } }: SourceConfig,
  { payload }: RecordToExplain,
  sent: Sent,
): ExplainedField {
  if (field.option !== 'in_motion' || field.value !== undefined || inMotion?.from === undefined) return field
  const gps = sent?.['gps']
  const derived = isRecord(gps) ? gps['inMotion'] : undefined
  const limits = inMotion.below === undefined ? '' : `, standing at or below ${inMotion.below}`
  const rule = `derived from the speed: moving above ${inMotion.above ?? 0}${limits}`
  if (derived !== undefined) return { ...field, value: derived, note: rule }
  return {
    ...field,
    note: payload === null ? rule : `${rule}; there is no speed, or it is between the two limits`,
  }
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

/** A field that is named and not sent. */
function unlessRemembered(field: ExplainedField, sent: Sent): ExplainedField {
  if (field.value === undefined || sent === null || valueIn(sent, field) !== undefined) return field
  return withoutValue(field, 'withheld by what is remembered of the device')
}

function unlessWithheld(field: ExplainedField, { profile }: RecordToExplain, sent: Sent): ExplainedField {
  if (field.value === undefined || sent === null) return field
  const found = valueIn(sent, field)
  if (found === field.value) return field
  const note = `the privacy profile ${profile ?? ''} withholds it`
  return found === undefined
    ? withoutValue(field, note)
    : { ...field, value: found, note: `the privacy profile ${profile ?? ''} rounds it` }
}

/** The value of a field in a payload; undefined where it has none. */
export function valueIn(sent: Readonly<Record<string, unknown>>, field: ExplainedField): unknown {
  if (field.option === 'time') return sent['signalTimestamp']
  if (field.option.startsWith('signals[')) {
    const signals: unknown[] = Array.isArray(sent['signals']) ? sent['signals'] : []
    const own = signals.find((signal) => isRecord(signal) && signalName(signal) === field.field)
    return isRecord(own) ? own['value'] : undefined
  }
  const inner = field.option.startsWith('fields[') ? field.field : `gps.${field.field}`
  let value: unknown = sent
  for (const key of inner.split('.')) value = isRecord(value) ? value[key] : undefined
  return value
}

function signalName(signal: Readonly<Record<string, unknown>>): string {
  const { type, assetPart } = signal
  return typeof assetPart === 'string' ? `${String(type)} (${assetPart})` : String(type)
}

function withoutValue({ value: _value, ...field }: ExplainedField, note: string): ExplainedField {
  return { ...field, note }
}
