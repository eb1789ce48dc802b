// mqtt3-packets.ts: writes and reads the bytes of MQTT 3.1.1: packets of a client as they are told, right or
// wrong, and those of a server strictly: the reader throws at anything that a server may not send.

import {
  connectPacket,
  packetOf,
  publishPacket,
  text,
  uint16,
  type ConnectFields,
  type PublishFields,
} from './mqtt5-packets.ts'
import type { ServerPacket } from './mqtt5-reader.ts'

export const connectPacket3 = (fields: ConnectFields = {}) => connectPacket({ level: 4, ...fields }, false)

export const publishPacket3 = (fields: PublishFields = {}) => publishPacket(fields, false)

export function subscribePacket3(
  messageId: number,
  filters: readonly (readonly [filter: string | readonly number[], qos: number])[],
): Buffer {
  return packetOf(0x82, uint16(messageId), ...filters.flatMap(([filter, qos]) => [text(filter), qos]))
}

export function unsubscribePacket3(
  messageId: number,
  filters: readonly (string | readonly number[])[],
): Buffer {
  return packetOf(0xa2, uint16(messageId), ...filters.map((filter) => text(filter)))
}

export const disconnectPacket3 = packetOf(0xe0)

const serverTypes: Readonly<Record<number, ServerPacket['type']>> = {
  2: 'connack',
  3: 'publish',
  4: 'puback',
  5: 'pubrec',
  7: 'pubcomp',
  9: 'suback',
  11: 'unsuback',
  13: 'pingresp',
}
/** Of those with a fixed one (MQTT 3.1.1, 3.2 to 3.13). */
const lengths: Partial<Readonly<Record<ServerPacket['type'], number>>> = {
  connack: 2,
  puback: 2,
  pubrec: 2,
  pubcomp: 2,
  unsuback: 2,
  pingresp: 0,
}
const connackCodeMax = 5
const subackCodes: readonly number[] = [0, 1, 2, 0x80]

/** The packet at the start of `bytes`; null while it is not whole. Throws where a server may not send it. */
export function readServerPacket3(bytes: Buffer): ServerPacket | null {
  const [head, length] = bytes
  if (head === undefined || length === undefined) return null
  const type = serverTypes[head >> 4]
  if (type === undefined) throw new Error(`a server does not send packets of type ${head >> 4}`)
  // What the gateway sends is short.
  if (length > 127) throw new Error(`${type} with a length of more than one byte`)
  if (bytes.length < 2 + length) return null
  const flags = head & 0b1111
  if (type !== 'publish' && flags !== 0) throw new Error(`${type} with the flags ${flags}`)
  if (length !== (lengths[type] ?? length)) throw new Error(`${type} with the length ${length}`)
  return bodyOf(type, flags, bytes.subarray(2, 2 + length))
}

function bodyOf(type: ServerPacket['type'], flags: number, body: Buffer): ServerPacket {
  const packet: ServerPacket = {
    type,
    flags,
    code: 0,
    codes: [],
    messageId: 0,
    sessionPresent: false,
    properties: new Map(),
    topic: '',
    payload: Buffer.alloc(0),
    bytes: 2 + body.length,
  }
  if (type === 'connack') {
    const [session, code] = [body[0]!, body[1]!]
    if (session > 1) throw new Error(`CONNACK with the flags ${session}`)
    if (code > connackCodeMax) throw new Error(`CONNACK with the return code ${code}`)
    if (code > 0 && session > 0) throw new Error('session present with a refusal')
    return { ...packet, code, sessionPresent: session === 1 }
  }
  if (type === 'publish') {
    if ((flags & 0b0110) > 0) throw new Error(`the gateway published with the flags ${flags}`)
    const topicEnd = 2 + body.readUInt16BE(0)
    if (topicEnd > body.length) throw new Error('PUBLISH ends within its topic')
    return { ...packet, topic: body.toString('utf8', 2, topicEnd), payload: body.subarray(topicEnd) }
  }
  if (type === 'pingresp') return packet
  const messageId = body.readUInt16BE(0)
  if (messageId === 0) throw new Error(`${type} with packet identifier 0`)
  const codes = [...body.subarray(2)]
  if (type === 'suback' && (codes.length === 0 || codes.some((code) => !subackCodes.includes(code))))
    throw new Error(`SUBACK with the codes ${codes.join(', ')}`)
  return { ...packet, messageId, codes }
}
