// sparkplug-wire.ts: the bytes of a Sparkplug B payload (specification 3.0, chapter 6).
//
// The schema has only the fields that are read. Others (properties, data sets, templates) are skipped and
// never allocated (protobuf/).

import { unpacked } from '../body/body.ts'
import { tooManyBytes, usualLimits } from '../body/body-limits.ts'
import { isRefused, readMessage, typesOf, type Long, type Refused } from '../protobuf/protobuf.ts'

/** A missing field reads as zero, false or '', and is no own property. */
export type WireMetric = {
  name: string
  alias: Long
  timestamp: Long
  datatype: number
  isHistorical: boolean
  isNull: boolean
  intValue: number
  longValue: Long
  floatValue: number
  doubleValue: number
  booleanValue: boolean
  stringValue: string
  bytesValue: Buffer
}

export type WirePayload = { timestamp: Long; metrics: readonly WireMetric[]; seq: Long }

const payloadType = typesOf({
  Metric: {
    fields: {
      name: { type: 'string', id: 1 },
      alias: { type: 'uint64', id: 2 },
      timestamp: { type: 'uint64', id: 3 },
      datatype: { type: 'uint32', id: 4 },
      isHistorical: { type: 'bool', id: 5 },
      isNull: { type: 'bool', id: 7 },
      intValue: { type: 'uint32', id: 10 },
      longValue: { type: 'uint64', id: 11 },
      floatValue: { type: 'float', id: 12 },
      doubleValue: { type: 'double', id: 13 },
      booleanValue: { type: 'bool', id: 14 },
      stringValue: { type: 'string', id: 15 },
      bytesValue: { type: 'bytes', id: 16 },
    },
  },
  Payload: {
    fields: {
      timestamp: { type: 'uint64', id: 1 },
      metrics: { rule: 'repeated', type: 'Metric', id: 2 },
      seq: { type: 'uint64', id: 3 },
      uuid: { type: 'string', id: 4 },
      body: { type: 'bytes', id: 5 },
    },
  },
}).lookupType('Payload')

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
