// explain-effects.ts: what a record does to its fields: no fix, another signal with a value before it, a
// wrong clock, a privacy profile.

import type { EpochMs } from '../../std/clock.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourceConfig } from '../config.ts'
import { propertyReadBy } from '../path/packet-properties.ts'
import { isRecord, valueAt } from '../path/path-eval.ts'
import type { Reading } from '../read/reading.ts'
import type { Zone } from '../times/zones.ts'

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

export type RecordToExplain = {
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
export function withProperty(field: ExplainedField): ExplainedField {
  const { path, value, note } = field
  const property = path === null || value === undefined || note !== null ? null : propertyReadBy(path)
  return property === null ? field : { ...field, note: `from ${property}` }
}

export type Sent = Readonly<Record<string, unknown>> | null

export function sentIn({ json }: MappedPayload): Sent {
  const sent: unknown = JSON.parse(json)
  return isRecord(sent) ? sent : null
}

export function atItsTime(
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

export const noPosition = 'it is sent only with a position, and there is none'

/** A field that is sent only with a position. */
export function inPosition(field: ExplainedField, { reading }: RecordToExplain): ExplainedField {
  const why = whyNoPosition(reading)
  const isCoordinate = field.field === 'latitude' || field.field === 'longitude'
  // For a position that cannot be used, the note of the coordinate says why.
  if (why !== null) return withoutValue(field, isCoordinate && why === noPosition ? (field.note ?? why) : why)
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

export function withMotion(
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
export function oncePerKind(fields: readonly ExplainedField[], { map }: SourceConfig): ExplainedField[] {
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
export function asSent(field: ExplainedField, { profile }: RecordToExplain, sent: Sent): ExplainedField {
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

export function withoutValue({ value: _value, ...field }: ExplainedField, note: string): ExplainedField {
  return { ...field, note }
}
