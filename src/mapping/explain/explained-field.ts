// explained-field.ts: what an explanation says of a field, and what all explanations of fields need.

import { createRecordContext } from '../mapper/record-context.ts'
import type { PlacedRecord } from './path-finder.ts'

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

/** A context of its own, so that omitted values are not counted. */
export function newAttempt(captures: readonly string[]) {
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

/** Why it is not sent, then what `values` made of the value. */
export function both(why: string | null, note: string | null): string | null {
  return why === null || note === null ? (why ?? note) : `${why} (${note})`
}

export function head(option: string, field: string, paths: readonly string[]) {
  return { option, field, paths }
}

type Base = Omit<ExplainedField, 'raw' | 'value' | 'note'>

export function withRaw<Fields extends Base>(base: Fields, raw: unknown): Fields & { raw?: unknown } {
  return raw === undefined ? base : { ...base, raw }
}

export function withValue(
  base: Base & { raw?: unknown },
  value: unknown,
  note: string | null,
): ExplainedField {
  return value === undefined ? { ...base, note: note ?? 'absent' } : { ...base, value, note }
}
