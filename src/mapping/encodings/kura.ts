// kura.ts: the encoding `kura`: payloads of Eclipse Kura gateways, which Eclipse Kapua reads: a message of
// Protocol Buffers, often packed by gzip.
//
//   timestamp   ms, when the payload was made
//   position    latitude and longitude in degrees, altitude, precision (dilution), heading in degrees, speed
//               in m/s, timestamp in ms, satellites, status (1 and 2: none, 4: valid)
//   metric      name, type and value: double, float, 64 and 32 bits, bool, text, bytes
//   body        bytes of the application
//
// The value is { timestamp, position: { latitude, ... }, metrics: { "odometer": 512340 }, body }. Integers
// beyond 2^53 are decimal text; NaN and the infinities are absent; bytes are hexadecimal (0x0a). Of metrics
// with one name the last counts. `body` is { text } where it is UTF-8, else { hex }.
//
// What can go wrong: bytes that are no payload are refused as a whole (TRUNCATED, BAD_FRAME, TOO_MANY), JSON
// too, which gateways write with another setting. Unpacked, a message has a bound (body/).

import { isUtf8 } from 'node:buffer'
import { setOwn } from '../path/path-eval.ts'
import {
  finiteOf,
  isRefused,
  readMessage,
  shortestOf,
  signedOf,
  payloadTypeOf,
  type Long,
  type MessageOf,
} from '../protobuf/protobuf.ts'
import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'
import { unpacked } from '../body/body.ts'
import { usualLimits } from '../body/body-limits.ts'
import { hexOf } from './text-bytes.ts'
import { isGzip } from '../body/body-kinds.ts'

const metricFields = {
  name: ['string', 1],
  type: ['int32', 2],
  doubleValue: ['double', 3],
  floatValue: ['float', 4],
  longValue: ['int64', 5],
  intValue: ['int32', 6],
  boolValue: ['bool', 7],
  stringValue: ['string', 8],
  bytesValue: ['bytes', 9],
} as const

const positionFields = {
  latitude: ['double', 1],
  longitude: ['double', 2],
  altitude: ['double', 3],
  precision: ['double', 4],
  heading: ['double', 5],
  speed: ['double', 6],
  timestamp: ['int64', 7],
  satellites: ['int32', 8],
  status: ['int32', 9],
} as const

type WireMetric = MessageOf<typeof metricFields>

type WirePayload = {
  timestamp: Long
  position: MessageOf<typeof positionFields>
  metric: readonly WireMetric[]
  body: Buffer
}

const schema = {
  type: payloadTypeOf({
    Metric: metricFields,
    Position: positionFields,
    Payload: {
      timestamp: ['int64', 1],
      position: ['Position', 2],
      metric: ['Metric', 5000, 'repeated'],
      body: ['bytes', 5001],
    },
  }),
  name: 'a Kura payload',
  listField: 5000,
  listMax: 10_000,
  listName: 'metrics',
}

/** Total: no bytes make it throw. */
export function decodeKura(bytes: Buffer, limits = usualLimits): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  const plain = isGzip(bytes) ? unpacked(bytes, 'gzip', limits) : bytes
  if (!Buffer.isBuffer(plain)) return plain
  if (plain[0] === 0x7b) return inJson
  const message = readMessage(schema, plain)
  if (isRefused(message)) return message
  const value = valueOf(message as WirePayload)
  // Bytes of another format may be read as fields that are not known.
  return Object.keys(value).length === 0 ? otherFields : { kind: 'value', value }
}

const inJson: Decoded = refused(
  'BAD_FRAME',
  'The message is JSON, not a Kura payload. Set the payload encoding of the gateway to Kura Protobuf, or read it with `encoding: json`.',
)

const otherFields: Decoded = refused(
  'BAD_FRAME',
  'The message is not a Kura payload: it has neither a time, a position, metrics nor a body.',
)

function valueOf(message: WirePayload): Record<string, unknown> {
  const { timestamp, position, metric, body } = message
  const value: Record<string, unknown> = {}
  if (Object.hasOwn(message, 'timestamp')) value['timestamp'] = signedOf(timestamp)
  if (Object.hasOwn(message, 'position')) value['position'] = positionOf(position)
  if (metric.length > 0) value['metrics'] = metricsOf(metric)
  if (Object.hasOwn(message, 'body'))
    value['body'] = isUtf8(body) ? { text: body.toString() } : { hex: hexOf(body) }
  return value
}

function positionOf(position: WirePayload['position']): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const [name, found] of Object.entries(position))
    value[name] = typeof found === 'number' ? finiteOf(found) : signedOf(found)
  return value
}

function metricsOf(metrics: readonly WireMetric[]): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const metric of metrics) {
    const value = metricValueOf(metric)
    if (value !== undefined) setOwn(values, metric.name, value)
  }
  return values
}

/** By the type of a metric: the field with its value. */
const valueFields: readonly (readonly [keyof WireMetric, (metric: WireMetric) => unknown])[] = [
  ['doubleValue', (metric) => finiteOf(metric.doubleValue)],
  ['floatValue', (metric) => shortestOf(metric.floatValue)],
  ['longValue', (metric) => signedOf(metric.longValue)],
  ['intValue', (metric) => metric.intValue],
  ['boolValue', (metric) => metric.boolValue],
  ['stringValue', (metric) => metric.stringValue],
  ['bytesValue', (metric) => hexOf(metric.bytesValue)],
]

/** Undefined where the field that its type names is missing. */
function metricValueOf(metric: WireMetric): unknown {
  const [field, read] = valueFields[metric.type] ?? []
  return field !== undefined && Object.hasOwn(metric, field) ? read?.(metric) : undefined
}
