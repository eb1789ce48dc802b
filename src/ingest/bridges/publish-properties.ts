// publish-properties.ts: the properties of a PUBLISH of MQTT 5 from a broker (3.3.2.3): finds their end, and
// what the mapping gets of them. Pure.
//
// It is more tolerant than the embedded broker is with its clients (broker/version5): brokers pass on what
// devices have sent, some without a look at it. A text that is not UTF-8 or has U+0000, a property that comes
// twice and a response topic with a wildcard do not end the connection: the broker would send the message
// again without end. The layout must be right, or the message cannot be found.
//
// The gateway announces no topic alias, so a broker may not use one [MQTT-3.3.2-9]. Bounds: message-feed.ts.

import type { MessageProperties, UserProperties } from '../../domain/message.ts'

export type PublishProperties = {
  /** Bytes of all properties with their length. */
  size: number
  /** Null where there is none. Of several with one name the last counts. */
  user: UserProperties | null
  /** The same. */
  others: MessageProperties | null
}

const payloadFormat = 0x01
const messageExpiry = 0x02
const contentType = 0x03
const responseTopic = 0x08
const correlationData = 0x09
const subscriptionIdentifier = 0x0b
const userProperty = 0x26

/** Reads from the first byte of the length. Null for malformed properties. */
export function propertiesIn(bytes: Buffer): PublishProperties | null {
  const length = numberAt(bytes, 0)
  if (length === null || length.end + length.value > bytes.length) return null
  const end = length.end + length.value
  let user: Record<string, string> | null = null
  let others = null as MessageProperties | null
  let at = length.end
  while (at < end) {
    const identifier = bytes[at]!
    at += 1
    const next = valueEnd(identifier, bytes, at, end)
    if (next > end) return null
    if (identifier === userProperty) {
      const middle = textEnd(bytes, at, end)
      // No prototype: a name such as `__proto__` is a name.
      user ??= Object.create(null) as Record<string, string>
      user[bytes.toString('utf8', at + 2, middle)] = bytes.toString('utf8', middle + 2, next)
    } else {
      const property = propertyAt(identifier, bytes, at, next)
      if (property !== null) others = { ...others, ...property }
    }
    at = next
  }
  return { size: end, user, others }
}

/** Infinite where the value does not fit, or the identifier is none of a PUBLISH. */
function valueEnd(identifier: number, bytes: Buffer, at: number, end: number): number {
  switch (identifier) {
    case payloadFormat:
      return at + 1
    case messageExpiry:
      return at + 4
    case contentType:
    case responseTopic:
    case correlationData:
      return textEnd(bytes, at, end)
    case subscriptionIdentifier:
      return numberAt(bytes, at)?.end ?? Infinity
    case userProperty:
      return textEnd(bytes, textEnd(bytes, at, end), end)
    default:
      return Infinity
  }
}

/** Null for one that says nothing about the message. */
function propertyAt(identifier: number, bytes: Buffer, at: number, end: number): MessageProperties | null {
  switch (identifier) {
    case payloadFormat:
      return bytes[at] === 1 ? { isText: true } : null
    case messageExpiry:
      return { expiryS: bytes.readUInt32BE(at) }
    case contentType:
      return { contentType: bytes.toString('utf8', at + 2, end) }
    case responseTopic:
      return { responseTopic: bytes.toString('utf8', at + 2, end) }
    case correlationData:
      return { correlation: bytes.toString('base64', at + 2, end) }
    default:
      return null
  }
}

/** The end of a text with its length; infinite where it does not fit. */
function textEnd(bytes: Buffer, at: number, end: number): number {
  return at + 2 > end ? Infinity : at + 2 + bytes.readUInt16BE(at)
}

function numberAt(bytes: Buffer, start: number): { value: number; end: number } | null {
  let value = 0
  for (let index = 0; index < 4 && start + index < bytes.length; index += 1) {
    const byte = bytes[start + index]!
    value += (byte & 0x7f) << (7 * index)
    if (byte < 0x80) return { value, end: start + index + 1 }
  }
  return null
}
