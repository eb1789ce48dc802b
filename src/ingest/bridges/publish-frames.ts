// publish-frames.ts: cuts what a broker sends into MQTT packets, and reads its PUBLISH packets. Pure.
//
//   byte 1      type (4 bits), DUP, QoS (2 bits), RETAIN          MQTT 2.2, 3.3
//   bytes 2..5  remaining length
//   PUBLISH     topic length (2), topic, packet identifier (2, QoS 1 and 2), with MQTT 5 properties, payload
//
// A bridge asks for QoS 1 at most. A session that another client had before may hold messages of QoS 2.

import { isUtf8 } from 'node:buffer'
import { quote } from '../../std/quote.ts'
import type { MessageProperties, QoS, UserProperties } from '../../domain/message.ts'
import type { MessageRefusal } from '../types.ts'
import { propertiesIn } from './publish-properties.ts'

/** A PUBLISH as it was read; the object is used again. */
export type PublishPacket = {
  topic: string
  bytes: Buffer
  qos: QoS
  retain: boolean
  dup: boolean
  messageId: number
  userProperties: UserProperties | null
  properties: MessageProperties | null
  /** Why it cannot be mapped; null for a usual message. */
  refusal: MessageRefusal | null
}

/** `size`: bytes of the whole packet; `need`: at least so many bytes must be there before the next try. */
export type Frame =
  | { kind: 'whole'; type: number; body: number; end: number }
  | { kind: 'part'; need: number }
  | { kind: 'malformed' }

export const publishType = 3

/** The packet at `offset`. */
export function frameAt(bytes: Buffer, offset: number): Frame {
  let body = offset + 1
  let remaining = 0
  for (let shift = 0; ; shift += 7) {
    if (body >= bytes.length) return { kind: 'part', need: bytes.length - offset + 1 }
    const byte = bytes[body]!
    body += 1
    remaining += (byte & 0x7f) << shift
    if (byte < 0x80) break
    if (shift === 21) return { kind: 'malformed' }
  }
  const end = body + remaining
  if (end > bytes.length) return { kind: 'part', need: end - offset }
  return { kind: 'whole', type: bytes[offset]! >> 4, body, end }
}

/** Reads the PUBLISH between `head` and `end` into `packet`; false for a malformed one. */
export function readPublish(
  bytes: Buffer,
  { head, body, end }: { head: number; body: number; end: number },
  isVersion5: boolean,
  packet: PublishPacket,
): boolean {
  const qos = (head >> 1) & 0b11
  // [MQTT-3.3.1-4]. With QoS 0 there is no DUP [MQTT-3.3.1-2].
  if (qos === 3 || (qos === 0 && (head & 0b1000) !== 0) || body + 2 > end) return false
  const topicEnd = body + 2 + bytes.readUInt16BE(body)
  let start = topicEnd + (qos === 0 ? 0 : 2)
  if (start > end || topicEnd === body + 2) return false
  packet.messageId = qos === 0 ? 0 : bytes.readUInt16BE(topicEnd)
  if (qos > 0 && packet.messageId === 0) return false
  packet.userProperties = null
  packet.properties = null
  if (isVersion5) {
    const properties = propertiesIn(bytes.subarray(start, end))
    if (properties === null) return false
    packet.userProperties = properties.user
    packet.properties = properties.others
    start += properties.size
  }
  packet.topic = bytes.toString('utf8', body + 2, topicEnd)
  packet.refusal = topicRefusal(bytes, body + 2, topicEnd)
  packet.bytes = bytes.subarray(start, end)
  packet.qos = qos as QoS
  packet.retain = (head & 0b1) !== 0
  packet.dup = (head & 0b1000) !== 0
  return true
}

/** What a topic name may not have [MQTT-3.3.2-2], [MQTT-1.5.4-1], [MQTT-1.5.4-2]. */
function topicFault(bytes: Buffer, start: number, end: number): string | null {
  let isAscii = true
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!
    if (byte >= 0x80) isAscii = false
    else if (byte === 0x23 || byte === 0x2b) return 'has a wildcard ("#" or "+")'
    else if (byte === 0) return 'has the character NUL'
  }
  return isAscii || isUtf8(bytes.subarray(start, end)) ? null : 'is not UTF-8'
}

/** A broker delivers it again until it is acknowledged, so it is kept as a dead letter. */
function topicRefusal(bytes: Buffer, start: number, end: number): MessageRefusal | null {
  const why = topicFault(bytes, start, end)
  if (why === null) return null
  const topic = quote(bytes.toString('utf8', start, end), 100)
  return { reason: 'BAD_TOPIC', detail: `The broker sent a message with the topic ${topic}, which ${why}.` }
}
