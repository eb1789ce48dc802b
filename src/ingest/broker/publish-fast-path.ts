// publish-fast-path.ts: the straight way of a PUBLISH, past aedes' parser and its chain of callbacks. Pure: knows no socket.
//
//   byte 1      0011 DUP QoS QoS RETAIN              MQTT 3.3.1
//   bytes 2..5  remaining length
//   then        topic length (2), topic, packet identifier (2, QoS 1 only), payload to the end
//
// It takes whole packets of QoS 0 and 1 from the head of a portion and stops at the first that is anything else: that
// one and all behind it go to aedes, so the order of packets stays. What looks malformed is left to aedes as well,
// which knows what to say of it, and a packet that is larger than may be to the framing.

import type { QoS } from '../../domain/message.ts'

/** Takes one message; false when no further one may be taken. `bytes` is a view. */
export type TakePublish = (
  topic: string,
  bytes: Buffer,
  qos: QoS,
  retain: boolean,
  dup: boolean,
  messageId: number,
) => boolean

/** Hands the leading messages of `portion` to `take`; returns where the first other packet begins. */
export function takePublishes(portion: Buffer, packetBytesMax: number, take: TakePublish): number {
  let offset = 0
  while (offset < portion.length) {
    const head = portion[offset]!
    const qos = (head >> 1) & 0b11
    if (head >> 4 !== 3 || qos > 1) return offset
    let body = offset + 1
    let remaining = 0
    let shift = 0
    for (;;) {
      // The framing has refused a fifth byte already; here the portion may end within the length.
      if (body >= portion.length) return offset
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
    const retain = (head & 0b1) !== 0
    const dup = (head & 0b1000) !== 0
    offset = end
    if (!take(topic, portion.subarray(bytesStart, end), qos as QoS, retain, dup, messageId)) return offset
  }
  return offset
}
