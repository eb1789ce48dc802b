// protobuf.ts: reads binary messages of Protocol Buffers by protobufjs, for the formats that are written in
// them: Sparkplug B and Kura. The entry file of the folder.
//
// Total: no bytes make it throw. Fields that a schema does not name are skipped and never allocated. A field
// is few bytes on the wire and takes time, and an element of a list takes memory, so both are counted before
// a long message is decoded. Unpacked bytes have a bound, whatever their header says (../body/body.ts).
//
// A field that is missing reads as zero, false or '', and is no own property. So schemas are of edition
// proto2, where a value of zero is written.

import protobuf from 'protobufjs/light.js'
import { bounded } from '../../std/quote.ts'
import { messageOf } from '../../std/gateway-error.ts'
import { refused } from '../reasons.ts'

/** An integer of 64 bits. */
export type Long = { readonly low: number; readonly high: number }

export type Refused = ReturnType<typeof refused>

export type MessageSchema = {
  type: protobuf.Type
  /** As in `a Sparkplug B payload`. */
  name: string
  /** The list with elements to count: the number of its field. */
  listField: number
  listMax: number
  /** As in `more than 50000 metrics`. */
  listName: string
}

const lengthDelimited = 2

/** Known or not. A birth of Sparkplug has six for each metric. */
const fieldsMax = 100_000

/** The values of fields on the wire, by their types. */
type WireValues = {
  string: string
  bytes: Buffer
  bool: boolean
  float: number
  double: number
  int32: number
  uint32: number
  int64: Long
  uint64: Long
}

type Field = readonly [type: string, id: number, rule?: 'repeated']

/** A message with these fields, of which none is a message itself. */
export type MessageOf<Fields extends Readonly<Record<string, readonly [keyof WireValues, number]>>> = {
  readonly [Name in keyof Fields]: WireValues[Fields[Name][0]]
}

/** The message type `Payload` of a schema: by name of each message, the types and numbers of its fields. */
export function payloadTypeOf(messages: Readonly<Record<string, Readonly<Record<string, Field>>>>) {
  const nested = Object.entries(messages).map(([name, fields]) => {
    const named = Object.entries(fields).map(([key, [type, id, rule]]) => [key, { type, id, rule }])
    return [name, { edition: 'proto2', fields: Object.fromEntries(named) as protobuf.IType['fields'] }]
  })
  return protobuf.Root.fromJSON({ nested: Object.fromEntries(nested) }).lookupType('Payload')
}

export function readMessage(schema: MessageSchema, bytes: Buffer): object | Refused {
  try {
    return decoded(schema, bytes)
  } catch (error) {
    // protobufjs throws RangeError for a field beyond the end, and Error for anything else.
    if (error instanceof RangeError)
      return refused(
        'TRUNCATED',
        `A field goes beyond the end of the message: it was cut short, or is not ${schema.name}.`,
      )
    return refused('BAD_FRAME', `The message is not ${schema.name}: ${bounded(messageOf(error), 200)}.`)
  }
}

export function isRefused(message: object): message is Refused {
  return 'kind' in message && message.kind === 'refused'
}

function decoded({ type, listField, listMax, listName }: MessageSchema, bytes: Buffer): object | Refused {
  // An element and a field have two bytes at least.
  if (bytes.length > 2 * listMax) {
    const { elements, fields } = count(bytes, listField * 8 + lengthDelimited)
    if (elements > listMax) return refused('TOO_MANY', `The message has more than ${listMax} ${listName}.`)
    if (fields > fieldsMax) return refused('TOO_MANY', `The message has more than ${fieldsMax} fields.`)
  }
  return type.decode(bytes)
}

/** The elements of a list, and all fields with those of the elements, as far as `fieldsMax`. */
function count(bytes: Buffer, tag: number): { elements: number; fields: number } {
  const reader = protobuf.Reader.create(bytes)
  const found = { elements: 0, fields: 0 }
  while (reader.pos < reader.len && found.fields <= fieldsMax) {
    const next = reader.uint32()
    found.fields += 1
    if (next !== tag) {
      reader.skipType(next & 7)
      continue
    }
    found.elements += 1
    const end = reader.uint32() + reader.pos
    while (reader.pos < end && found.fields <= fieldsMax) {
      found.fields += 1
      reader.skipType(reader.uint32() & 7)
    }
  }
  return found
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

/** Undefined for NaN and the infinities. */
export function finiteOf(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined
}

/** The shortest decimal of a float: 12.3, where a double shows 12.300000190734863. */
export function shortestOf(float: number): number | undefined {
  if (Number.isInteger(float) || !Number.isFinite(float)) return finiteOf(float)
  for (let digits = 6; digits < 9; digits += 1) {
    const candidate = Number(float.toPrecision(digits))
    if (Math.fround(candidate) === float) return candidate
  }
  return Number(float.toPrecision(9))
}
