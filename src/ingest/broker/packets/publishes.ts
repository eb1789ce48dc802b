// publishes.ts: reads PUBLISH of any version, and PINGREQ. It knows no socket.
//
//   byte 1        0011 DUP QoS QoS RETAIN             MQTT 3.3.1; PINGREQ is 1100 0000 and the length 0
//   bytes 2..5    remaining length
//   then          topic length (2), topic, packet identifier (2, not QoS 0), payload to the end
//                 MQTT 5: property length and properties before the payload
//
// Most messages of MQTT 5 have the property length 0, and nothing more is read for them. It takes every whole
// PUBLISH, of any QoS: nothing else reads them. One that breaks a rule becomes the fault of the connection.
// What the framing judges is left: flags, lengths and packets beyond the limit, packets that are not whole,
// and those of other types.

import { isUtf8 } from 'node:buffer'
import type { Message, QoS } from '../../../domain/message.ts'
import { clientDrops, type PacketFault } from '../client-faults.ts'
import type { Version5 } from '../version5/version5.ts'
import { createMessagePropertyReader } from './message-properties.ts'
import { notUtf8 } from './packet-bytes.ts'
import { badText, broken, noPacketId, packetTypes, violation, type Version } from './packets.ts'
import { clientProperties, propertyFault } from './property-rules.ts'

export type PacketTaker = {
  readonly version: Version
  /** Null before MQTT 5. */
  readonly version5: PublishState | null
  /** Of the remaining length. */
  readonly packetBytesMax: number
  /** Takes the message that was just read; false to stop. Packet identifier 0 with QoS 0. */
  takePublish(messageId: number): boolean
  /** Takes a PINGREQ; false to stop. */
  takePing(): boolean
  /** The next packet breaks a rule. */
  fail(fault: PacketFault): void
}

/** What of the state of a connection of MQTT 5 it uses. */
export type PublishState = Pick<Version5, 'quota' | 'aliases' | 'counts'>

const pingreqHead = 0xc0
const topicAliasNotValid = 0x94
const quotaExceeded = 0x97

const reader = createMessagePropertyReader(clientProperties.publish)

/**
 * Reads each message at the head of `portion` into `message`, whose bytes are a view then, and calls `taker`.
 * Returns the offset of the first packet that is left, which is the one that breaks a rule where one does.
 * After it `message` has no properties.
 */
export function takePublishes(portion: Buffer, message: Message, taker: PacketTaker): number {
  const { version, version5 } = taker
  let offset = 0
  while (offset < portion.length) {
    const head = portion[offset]!
    if (head === pingreqHead && portion[offset + 1] === 0) {
      offset += 2
      if (!taker.takePing()) return offset
      continue
    }
    const qos = (head >> 1) & 0b11
    if (head >> 4 !== 3 || qos === 3 || ((head & 0b1110) === 0b1000 && version > 3)) return offset
    let body = offset + 1
    let remaining = 0
    let shift = 0
    for (;;) {
      // The framing refuses a fifth byte, and here the portion may end within the length.
      if (body >= portion.length || shift > 21) return offset
      const byte = portion[body]!
      body += 1
      remaining += (byte & 0x7f) << shift
      shift += 7
      if (byte >= 0x80) continue
      // The framing refuses a length that is longer than needed.
      if (byte === 0 && shift > 7 && version === 5) return offset
      break
    }
    const end = body + remaining
    if (remaining > taker.packetBytesMax || end > portion.length) return offset
    const topicEnd = remaining < 2 ? end + 1 : body + 2 + ((portion[body]! << 8) | portion[body + 1]!)
    const headerEnd = qos === 0 ? topicEnd : topicEnd + 2
    // The property length has a byte at least.
    const bytesAt = version5 === null ? headerEnd : headerEnd + 1
    if (bytesAt > end) return fail(taker, offset, cutFault(version, topicEnd > end))
    const messageId = qos === 0 ? 0 : (portion[topicEnd]! << 8) | portion[topicEnd + 1]!
    if (qos > 0 && messageId === 0) return fail(taker, offset, zeroPacketId(version))
    message.topic = portion.toString('utf8', body + 2, topicEnd)
    message.bytes = portion.subarray(bytesAt, end)
    message.qos = qos as QoS
    message.retain = (head & 0b1) !== 0
    message.dup = (head & 0b1000) !== 0
    // Either sent as it is, or in the place of malformed bytes. A text of one-byte characters costs nothing.
    if (message.topic.includes('\ufffd') && !isUtf8(portion.subarray(body + 2, topicEnd)))
      return fail(taker, offset, badText(version, notUtf8, 'topic', 'bad_topic'))
    if (version5 !== null) {
      const fault = fault5(portion, headerEnd, end, version5, message)
      if (fault !== null) return fail(taker, offset, fault)
    }
    offset = end
    const mayContinue = taker.takePublish(messageId)
    if (version5 !== null) {
      message.userProperties = null
      message.properties = null
    }
    if (!mayContinue) return offset
  }
  return offset
}

/** What differs in MQTT 5. The properties begin at `at`. */
function fault5(
  portion: Buffer,
  at: number,
  end: number,
  state: PublishState,
  message: Message,
): PacketFault | null {
  // Those of other versions are found with the other rules for topics (topic-rules.ts).
  if (message.topic.includes('\0')) return nullInTopic
  if (message.qos > 0 && !state.quota.take()) return tooManyMessages
  return portion[at] === 0 ? emptyTopicFault(message.topic) : readProperties(portion, at, end, state, message)
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

function fail(taker: PacketTaker, offset: number, fault: PacketFault): number {
  taker.fail(fault)
  return offset
}

// ---- faults

function cutFault(version: Version, isInTopic: boolean): PacketFault {
  if (version === 5) return broken(5, 'Its PUBLISH ends before its payload (MQTT 3.3.2) [MQTT-2.2.2-1].')
  return isInTopic
    ? broken(version, 'Its PUBLISH ends within the topic name (MQTT 3.3.2.1).')
    : zeroPacketId(version)
}

function zeroPacketId(version: Version): PacketFault {
  return version === 5
    ? violation(5, 'Its PUBLISH has the packet identifier 0 [MQTT-2.2.1-3].', 'no_packet_id')
    : noPacketId(packetTypes.publish, version)
}

const nullInTopic = broken(
  5,
  'It published to a topic that contains a null character [MQTT-4.7.3-2].',
  'bad_topic',
)
const emptyTopic = violation(
  5,
  'It published without a topic and without a topic alias [MQTT-4.7.3-1].',
  'bad_topic',
)
const tooManyMessages: PacketFault = {
  reason: 'receive_maximum',
  detail: clientDrops.receive_maximum,
}

function aliasFault(detail: string, code: number): PacketFault {
  return { reason: 'topic_alias', detail, code }
}
