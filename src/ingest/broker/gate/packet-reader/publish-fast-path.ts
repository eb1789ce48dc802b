// publish-fast-path.ts: reads PUBLISH packets without aedes' parser and its chain of callbacks, and PINGREQ.
// Pure: knows no socket.
//
//   byte 1      0011 DUP QoS QoS RETAIN              MQTT 3.3.1; PINGREQ is 1100 0000 and the length 0
//   bytes 2..5  remaining length
//   then        topic length (2), topic, packet identifier (2, QoS 1 only), payload to the end
//
// It takes whole packets of QoS 0 and 1 from the head of a portion, and PINGREQ, and stops at the first
// packet of another kind. That packet and all that follow go to aedes, so the order of packets is kept.
// Malformed packets and those beyond the limit are left to the framing, malformed UTF-8 to aedes' parser.

import type { Message, QoS } from '../../../../domain/message.ts'

export type PacketTaker = {
  /** Takes the message that was just read; false to stop. Packet identifier 0 with QoS 0. */
  takePublish(messageId: number): boolean
  /** Takes a PINGREQ; false to stop. */
  takePing(): boolean
}

const pingreqHead = 0xc0

/**
 * Reads each message at the head of `portion` into `message`, whose bytes are a view then, and calls `taker`.
 * Returns the offset of the first packet that is left.
 */
export function takePublishes(
  portion: Buffer,
  packetBytesMax: number,
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
    // 0x38 and 0x39 have DUP with QoS 0, which the framing judges.
    if (head >> 4 !== 3 || qos > 1 || (head & 0b1110) === 0b1000) return offset
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
      if (byte < 0x80) break
    }
    const end = body + remaining
    if (remaining < 2 || remaining > packetBytesMax || end > portion.length) return offset
    const topicEnd = body + 2 + ((portion[body]! << 8) | portion[body + 1]!)
    const bytesStart = topicEnd + qos * 2
    if (bytesStart > end) return offset
    const messageId = qos === 0 ? 0 : (portion[topicEnd]! << 8) | portion[topicEnd + 1]!
    if (qos === 1 && messageId === 0) return offset
    const topic = portion.toString('utf8', body + 2, topicEnd)
    // Either sent as it is, or in the place of malformed bytes. A text of one-byte characters costs nothing.
    if (topic.includes('\ufffd')) return offset
    message.topic = topic
    message.bytes = portion.subarray(bytesStart, end)
    message.qos = qos as QoS
    message.retain = (head & 0b1) !== 0
    message.dup = (head & 0b1000) !== 0
    offset = end
    if (!taker.takePublish(messageId)) return offset
  }
  return offset
}
