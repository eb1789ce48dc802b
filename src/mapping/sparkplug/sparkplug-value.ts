// sparkplug-value.ts: the value of a metric by its data type (specification 3.0, 6.4.16).
//
// Integers beyond 2^53 are decimal text; NaN and the infinities are absent; bytes, files and arrays are
// hexadecimal (0x0a). Data sets and templates have no value.

import { assertNever } from '../../std/assert.ts'
import { hexOf } from '../encodings/text-bytes.ts'
import { finiteOf, shortestOf, signedOf, unsignedOf } from '../protobuf/protobuf.ts'
import type { WireMetric } from './sparkplug-wire.ts'

export type MetricValue = number | string | boolean | null

/** The kind of a value on the wire, whatever its data type. */
export type WireKind = 'whole' | 'real' | 'truth' | 'text' | 'bytes' | 'null' | 'none'

const type = { int8: 1, int16: 2, int32: 3, int64: 4, dateTime: 13, boolean: 11 } as const

export function wireKindOf(metric: WireMetric): WireKind {
  if (metric.isNull) return 'null'
  if (Object.hasOwn(metric, 'doubleValue') || Object.hasOwn(metric, 'floatValue')) return 'real'
  if (Object.hasOwn(metric, 'longValue') || Object.hasOwn(metric, 'intValue')) return 'whole'
  if (Object.hasOwn(metric, 'booleanValue')) return 'truth'
  if (Object.hasOwn(metric, 'stringValue')) return 'text'
  return Object.hasOwn(metric, 'bytesValue') ? 'bytes' : 'none'
}

/** Whether a value of this kind can have this data type; any kind fits an unknown type. */
export function fits(kind: WireKind, datatype: number): boolean {
  if (kind === 'null' || kind === 'none') return true
  if ((datatype >= 1 && datatype <= 8) || datatype === type.dateTime) return kind === 'whole'
  if (datatype === 9 || datatype === 10) return kind === 'real'
  if (datatype === type.boolean) return kind === 'truth' || kind === 'whole'
  if (datatype === 12 || datatype === 14 || datatype === 15) return kind === 'text'
  if (datatype === 17 || datatype === 18 || (datatype >= 22 && datatype <= 34)) return kind === 'bytes'
  return true
}

/** Undefined where the metric has no value. */
export function valueOf(metric: WireMetric, kind: WireKind, datatype: number): MetricValue | undefined {
  switch (kind) {
    case 'real':
      return Object.hasOwn(metric, 'doubleValue')
        ? finiteOf(metric.doubleValue)
        : shortestOf(metric.floatValue)
    case 'whole':
      return wholeOf(metric, datatype)
    case 'truth':
      return metric.booleanValue
    case 'text':
      return metric.stringValue
    case 'bytes':
      return hexOf(metric.bytesValue)
    case 'null':
      return null
    case 'none':
      return undefined
    default:
      return assertNever(kind)
  }
}

function wholeOf(metric: WireMetric, datatype: number): MetricValue {
  const isLong = Object.hasOwn(metric, 'longValue')
  const low = isLong ? metric.longValue.low : metric.intValue
  switch (datatype) {
    // Some nodes extend the sign to the width of the field, some do not; the type's own bits are right in
    // both.
    case type.int8:
      return (low << 24) >> 24
    case type.int16:
      return (low << 16) >> 16
    case type.int32:
      return low | 0
    case type.int64:
      return isLong ? signedOf(metric.longValue) : low
    case type.boolean:
      return low !== 0
    default:
      return isLong ? unsignedOf(metric.longValue) : low
  }
}
