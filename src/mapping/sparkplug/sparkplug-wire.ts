// sparkplug-wire.ts: the bytes of a Sparkplug B payload (specification 3.0, chapter 6), by protobufjs.
//
// The schema has only the fields that are read. Others (properties, data sets, templates) are skipped and
// never allocated. Edition proto2, since a value of zero is not a missing one.

import { gunzipSync, inflateSync } from 'node:zlib'
import protobuf from 'protobufjs/light.js'
import { bounded } from '../../std/quote.ts'
import { messageOf } from '../../std/gateway-error.ts'
import { refused } from '../reasons.ts'

/** An unsigned integer of 64 bits. */
export type Long = { readonly low: number; readonly high: number }

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

type Refused = ReturnType<typeof refused>

const root = protobuf.Root.fromJSON({
  nested: {
    Metric: {
      edition: 'proto2',
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
      edition: 'proto2',
      fields: {
        timestamp: { type: 'uint64', id: 1 },
        metrics: { rule: 'repeated', type: 'Metric', id: 2 },
        seq: { type: 'uint64', id: 3 },
        uuid: { type: 'string', id: 4 },
        body: { type: 'bytes', id: 5 },
      },
    },
  },
})

const payloadType = root.lookupType('Payload')

/** Bound against attacks: an empty metric is two bytes on the wire and many in memory. */
const metricsMax = 50_000

/** The size of a payload after it was unpacked. */
const inflatedBytesMax = 8 * 1024 * 1024

/** Field 2, length-delimited. */
const metricsTag = 2 * 8 + 2

const compressed = 'SPBV1.0_COMPRESSED'

/** Total: no bytes make it throw. */
export function readPayload(bytes: Buffer): WirePayload | Refused {
  try {
    return decodePayload(bytes, false)
  } catch (error) {
    // protobufjs throws RangeError for a field beyond the end, and Error for anything else.
    if (error instanceof RangeError) return tooShort
    return refused(
      'BAD_FRAME',
      `The message is not a Sparkplug B payload: ${bounded(messageOf(error), 200)}.`,
    )
  }
}

const tooShort: Refused = refused(
  'TRUNCATED',
  'A field goes beyond the end of the message: it was cut short, or is not a Sparkplug B payload.',
)

function decodePayload(bytes: Buffer, inflated: boolean): WirePayload | Refused {
  if (bytes.length > 2 * metricsMax && countMetrics(bytes) > metricsMax) {
    const detail = `The message has more than ${metricsMax} metrics.`
    return refused('TOO_MANY', detail)
  }
  const decoded: unknown = payloadType.decode(bytes)
  const payload = decoded as WirePayload & { uuid: string; body: Buffer }
  if (payload.uuid !== compressed || inflated) return payload
  const unpacked = inflatedOf(payload)
  return Buffer.isBuffer(unpacked) ? decodePayload(unpacked, true) : unpacked
}

function inflatedOf({ metrics, body }: { metrics: readonly WireMetric[]; body: Buffer }): Buffer | Refused {
  const algorithm = metrics.find(({ name }) => name.toLowerCase() === 'algorithm')?.stringValue
  const inflate = algorithm?.toUpperCase() === 'GZIP' ? gunzipSync : inflateSync
  try {
    return inflate(body, { maxOutputLength: inflatedBytesMax })
  } catch (error) {
    return refused(
      'BAD_FRAME',
      `The compressed payload cannot be unpacked: ${bounded(messageOf(error), 200)}.`,
    )
  }
}

function countMetrics(bytes: Buffer): number {
  const reader = protobuf.Reader.create(bytes)
  let count = 0
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    if (tag === metricsTag) count += 1
    reader.skipType(tag & 7)
  }
  return count
}

/** The command that asks a node to publish its births again (specification 3.0, 6.4.25). */
export function encodeRebirth(atMs: number): Buffer {
  const metric = { name: 'Node Control/Rebirth', timestamp: atMs, datatype: 11, booleanValue: true }
  return Buffer.from(payloadType.encode({ timestamp: atMs, metrics: [metric] }).finish())
}

/** A number, or decimal text where a number would be rounded. */
export function unsignedOf({ low, high }: Long): number | string {
  const upper = high >>> 0
  if (upper < 0x20_0000) return upper * 0x1_0000_0000 + (low >>> 0)
  return String((BigInt(upper) << 32n) | BigInt(low >>> 0))
}

/** The same for an integer in two's complement. */
export function signedOf({ low, high }: Long): number | string {
  const upper = high | 0
  if (upper < 0x20_0000 && upper >= -0x20_0000) {
    const number = upper * 0x1_0000_0000 + (low >>> 0)
    if (Number.isSafeInteger(number)) return number
  }
  return String((BigInt(upper) << 32n) | BigInt(low >>> 0))
}
