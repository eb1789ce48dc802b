// publish-packets.ts: reads PUBLISH packets of MQTT 5 and PINGREQ, like publish-fast-path.ts those of
// 3.1.1. It knows no socket.
//
//   byte 1        0011 DUP QoS QoS RETAIN             MQTT 3.3.1; PINGREQ is 1100 0000 and the length 0
//   bytes 2..5    remaining length
//   then          topic length (2), topic, packet identifier (2, not QoS 0), property length, properties,
//                 payload to the end
//
// Most messages have the property length 0, and nothing more is read for them. It takes every whole
// PUBLISH, of any QoS: no other parser reads them. One that breaks a rule becomes the fault of the
// connection. What the framing judges is left: flags, lengths and packets beyond the limit, packets that
// are not whole, and those of other types.

import { isUtf8 } from 'node:buffer'
import type { Message, QoS } from '../../../domain/message.ts'
import { clientDrops } from '../client-faults.ts'
import type { PacketTaker } from '../gate/packet-reader/publish-fast-path.ts'
import type { PacketFault } from '../packet-rules.ts'
import { createMessagePropertyReader } from './message-properties.ts'
import { clientProperties, propertyFault } from './property-rules.ts'
import type { Version5 } from './version5.ts'

/** What of the state of a connection it uses. */
export type PublishState = Pick<Version5, 'receivedBytesMax' | 'quota' | 'aliases' | 'counts' | 'fault'>

const pingreqHead = 0xc0
const malformed = 0x81
const protocolError = 0x82
const topicAliasNotValid = 0x94
const quotaExceeded = 0x97

const reader = createMessagePropertyReader(clientProperties.publish)

/**
 * Reads each message at the head of `portion` into `message`, whose bytes are a view then, and calls `taker`.
 * Returns the offset of the first packet that is left, which is the one of `state.fault` where there is one.
 * After it `message` has no properties, as for 3.1.1.
 */
export function takePublishes5(
  portion: Buffer,
  state: PublishState,
  message: Message,
  taker: PacketTaker,
): number {
  let offset = 0
  while (offset < portion.length) {
    const head = portion[offset]!
    if (head === pingreqHead && portion[offset + 1] === 0) {
      offset += 2
      if (!taker.takePing()) return offset
      continue
    }
    const qos = (head >> 1) & 0b11
    if (head >> 4 !== 3 || qos === 3 || (head & 0b1110) === 0b1000) return offset
    let body = offset + 1
    let remaining = 0
    let shift = 0
    for (;;) {
      if (body >= portion.length || shift > 21) return offset
      const byte = portion[body]!
      body += 1
      remaining += (byte & 0x7f) << shift
      shift += 7
      if (byte >= 0x80) continue
      // The framing refuses a length that is longer than needed.
      if (byte === 0 && shift > 7) return offset
      break
    }
    const end = body + remaining
    if (remaining > state.receivedBytesMax || end > portion.length) return offset
    const topicEnd = remaining < 2 ? end : body + 2 + ((portion[body]! << 8) | portion[body + 1]!)
    const propertiesAt = qos === 0 ? topicEnd : topicEnd + 2
    // The property length has a byte at least.
    if (propertiesAt >= end) return fail(state, offset, cutFault)
    const messageId = qos === 0 ? 0 : (portion[topicEnd]! << 8) | portion[topicEnd + 1]!
    if (qos > 0 && messageId === 0) return fail(state, offset, noPacketId)
    message.topic = portion.toString('utf8', body + 2, topicEnd)
    message.bytes = portion.subarray(propertiesAt + 1, end)
    message.qos = qos as QoS
    message.retain = (head & 0b1) !== 0
    message.dup = (head & 0b1000) !== 0
    const fault =
      topicFault(message.topic, portion, body, topicEnd) ??
      (qos > 0 && !state.quota.take() ? tooManyMessages : null) ??
      (portion[propertiesAt] === 0
        ? emptyTopicFault(message.topic)
        : readProperties(portion, propertiesAt, end, state, message))
    if (fault !== null) return fail(state, offset, fault)
    offset = end
    const mayContinue = taker.takePublish(messageId)
    message.userProperties = null
    message.properties = null
    if (!mayContinue) return offset
  }
  return offset
}

/** U+FFFD is what the client sent, or stands for malformed bytes. */
function topicFault(topic: string, portion: Buffer, start: number, end: number): PacketFault | null {
  if (topic.includes('\ufffd') && !isUtf8(portion.subarray(start + 2, end))) return badTopic
  return topic.includes('\0') ? nullInTopic : null
}

function emptyTopicFault(topic: string): PacketFault | null {
  return topic.length === 0 ? emptyTopic : null
}

function readProperties(
  portion: Buffer,
  at: number,
  end: number,
  state: PublishState,
  message: Message,
): PacketFault | null {
  const bytesStart = reader.read(portion, at, end)
  if (bytesStart < 0) return propertyFault('PUBLISH', bytesStart)
  const fault =
    reader.topicAlias() === -1
      ? emptyTopicFault(message.topic)
      : useAlias(reader.topicAlias(), state, message)
  if (fault !== null) return fault
  message.bytes = portion.subarray(bytesStart, end)
  message.userProperties = reader.user()
  message.properties = reader.properties()
  state.counts.propertiesSkipped += reader.skipped()
  if (reader.properties()?.isText === true && !isUtf8(message.bytes))
    state.counts.payloadFormatMismatches += 1
  return null
}

function useAlias(alias: number, { aliases }: PublishState, message: Message): PacketFault | null {
  if (alias === 0) return aliasFault('It used the topic alias 0 [MQTT-3.3.2-8].', topicAliasNotValid)
  if (alias > aliases.max)
    return aliasFault(
      `It used the topic alias ${alias}, and CONNACK allowed ${aliases.max} [MQTT-3.3.2-9].`,
      topicAliasNotValid,
    )
  if (message.topic.length > 0) {
    aliases.set(alias, message.topic)
    return null
  }
  const topic = aliases.get(alias)
  if (topic === undefined)
    return aliasFault(
      `It used the topic alias ${alias}, for which it has sent no topic (MQTT 3.3.2.3.4).`,
      topicAliasNotValid,
    )
  if (topic === null)
    return aliasFault(
      `It used the topic alias ${alias}, whose topic was not kept: the topics of all its aliases have more bytes than a connection may have.`,
      quotaExceeded,
    )
  message.topic = topic
  return null
}

function fail(state: PublishState, offset: number, fault: PacketFault): number {
  state.fault = fault
  return offset
}

// ---- faults

const cutFault: PacketFault = {
  reason: 'protocol_error',
  detail: 'Its PUBLISH ends before its payload (MQTT 3.3.2) [MQTT-2.2.2-1].',
  code: malformed,
}
const noPacketId: PacketFault = {
  reason: 'no_packet_id',
  detail: 'Its PUBLISH has the packet identifier 0 [MQTT-2.2.1-3].',
  code: protocolError,
}
const badTopic: PacketFault = {
  reason: 'bad_topic',
  detail: 'A topic that it sent is not well-formed UTF-8 [MQTT-1.5.4-1].',
  code: malformed,
}
const nullInTopic: PacketFault = {
  reason: 'bad_topic',
  detail: 'It published to a topic that contains a null character [MQTT-4.7.3-2].',
  code: malformed,
}
const emptyTopic: PacketFault = {
  reason: 'bad_topic',
  detail: 'It published without a topic and without a topic alias [MQTT-4.7.3-1].',
  code: protocolError,
}
const tooManyMessages: PacketFault = {
  reason: 'receive_maximum',
  detail: clientDrops.receive_maximum,
}

function aliasFault(detail: string, code: number): PacketFault {
  return { reason: 'topic_alias', detail, code }
}
