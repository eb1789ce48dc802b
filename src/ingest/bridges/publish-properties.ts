// publish-properties.ts: the properties of a PUBLISH of MQTT 5 (3.3.2.3): finds their end and the user
// properties. Pure.
//
// The gateway announces no topic alias, so a broker may not use one [MQTT-3.3.2-9]. The others say nothing
// that the mapping uses.

import type { UserProperties } from '../../domain/message.ts'

export type PublishProperties = {
  /** Bytes of all properties with their length. */
  size: number
  /** Null where there is none. Of several with one name the last counts. */
  user: UserProperties | null
}

/** Bytes of the values of fixed size, by identifier. */
const fixedBytes = new Map([
  [0x01, 1], // payload format
  [0x02, 4], // message expiry
])
/** Identifiers with one text or binary value: content type, response topic, correlation data. */
const oneText = new Set([0x03, 0x08, 0x09])
const subscriptionIdentifier = 0x0b
const userProperty = 0x26

/** Reads from the first byte of the length. Null for malformed properties. */
export function userPropertiesIn(bytes: Buffer): PublishProperties | null {
  const length = numberAt(bytes, 0)
  if (length === null || length.end + length.value > bytes.length) return null
  const end = length.end + length.value
  let user: Record<string, string> | null = null
  let at = length.end
  while (at < end) {
    const identifier = bytes[at]!
    at += 1
    const fixed = fixedBytes.get(identifier)
    if (fixed !== undefined) at += fixed
    else if (oneText.has(identifier)) at = textEnd(bytes, at, end)
    else if (identifier === subscriptionIdentifier) at = numberAt(bytes, at)?.end ?? Infinity
    else if (identifier === userProperty) {
      const middle = textEnd(bytes, at, end)
      const last = textEnd(bytes, middle, end)
      if (last > end) return null
      // No prototype: a name such as `__proto__` is a name.
      user ??= Object.create(null) as Record<string, string>
      user[bytes.toString('utf8', at + 2, middle)] = bytes.toString('utf8', middle + 2, last)
      at = last
    } else return null
  }
  return at === end ? { size: end, user } : null
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
