// sparkplug-wire.ts: the bytes of a Sparkplug B payload (specification 3.0, chapter 6).
//
// The schema has only the fields that are read. Others (properties, data sets, templates) are skipped and
// never allocated (protobuf/).

import { unpacked } from '../body/body.ts'
import { tooManyBytes, usualLimits } from '../body/body-limits.ts'
import {
  isRefused,
  readMessage,
  payloadTypeOf,
  finiteOf,
  shortestOf,
  signedOf,
  unsignedOf,
  type Long,
  type MessageOf,
  type Refused,
} from '../protobuf/protobuf.ts'
import { assertNever } from '../../std/assert.ts'
import { hexOf } from '../encodings/text-bytes.ts'

const metricFields = {
  name: ['string', 1],
  alias: ['uint64', 2],
  timestamp: ['uint64', 3],
  datatype: ['uint32', 4],
  isHistorical: ['bool', 5],
  isNull: ['bool', 7],
  intValue: ['uint32', 10],
  longValue: ['uint64', 11],
  floatValue: ['float', 12],
  doubleValue: ['double', 13],
  booleanValue: ['bool', 14],
  stringValue: ['string', 15],
  bytesValue: ['bytes', 16],
} as const

/** A missing field reads as zero, false or '', and is no own property. */
export type WireMetric = MessageOf<typeof metricFields>

export type WirePayload = { timestamp: Long; metrics: readonly WireMetric[]; seq: Long }

const payloadType = payloadTypeOf({
  Metric: metricFields,
  Payload: {
    timestamp: ['uint64', 1],
    metrics: ['Metric', 2, 'repeated'],
    seq: ['uint64', 3],
    uuid: ['string', 4],
    body: ['bytes', 5],
  },
})

const schema = {
  type: payloadType,
  name: 'a Sparkplug B payload',
  listField: 2,
  listMax: 20_000,
  listName: 'metrics',
}

const compressed = 'SPBV1.0_COMPRESSED'

/** Total: no bytes make it throw. */
export function readPayload(bytes: Buffer, limits = usualLimits): WirePayload | Refused {
  if (bytes.length > limits.bytesMax) return tooManyBytes(limits)
  const outer = readMessage(schema, bytes)
  if (isRefused(outer)) return outer
  const payload = outer as WirePayload & { uuid: string; body: Buffer }
  if (payload.uuid !== compressed) return payload
  const algorithm = payload.metrics.find(({ name }) => name.toLowerCase() === 'algorithm')?.stringValue
  const compression = algorithm?.toUpperCase() === 'GZIP' ? 'gzip' : 'zlib'
  const inner = unpacked(payload.body, compression, limits)
  return Buffer.isBuffer(inner) ? (readMessage(schema, inner) as WirePayload | Refused) : inner
}

/** The command that asks a node to publish its births again (specification 3.0, 6.4.25). */
export function encodeRebirth(atMs: number): Buffer {
  const metric = { name: 'Node Control/Rebirth', timestamp: atMs, datatype: 11, booleanValue: true }
  return Buffer.from(payloadType.encode({ timestamp: atMs, metrics: [metric] }).finish())
}

// The value of a metric by its data type (specification 3.0, 6.4.16).
//
// Integers beyond 2^53 are decimal text; NaN and the infinities are absent; bytes, files and arrays are
// hexadecimal (0x0a). Data sets and templates have no value.

export type MetricValue = number | string | boolean | null

/** The kind of a value on the wire, whatever its data type. */
type WireKind = 'whole' | 'real' | 'truth' | 'text' | 'bytes' | 'null' | 'none'

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
