// message-properties.ts: what the mapping gets of the properties of a PUBLISH (MQTT 5, 3.3.2.3), in one
// pass that also checks them. Pure.
//
// Bounds: `userPropertiesMax` user properties and `bytesMax` bytes of texts and binary data. What goes
// beyond is checked, left out and counted; the message is taken.

import type { MessageProperties, UserProperties } from '../../../domain/message.ts'
import { twoBytesAt } from './packet-bytes.ts'
import { propertyIds as ids, readProperties, type PropertyRules } from './property-rules.ts'

/** Reads one message after another; what it has read is valid until the next call. */
export type MessagePropertyReader = {
  /**
   * Reads the properties whose length is at `at`, in a packet that ends at `end`. Gives their end, or a
   * negative number for `propertyFault`.
   */
  read(bytes: Buffer, at: number, end: number): number
  /** Null where there is none. Of several with one name the last counts. */
  user(): UserProperties | null
  properties(): MessageProperties | null
  /** -1 where there is none. */
  topicAlias(): number
  /** Properties that were left out. */
  skipped(): number
}

const userPropertiesMax = 64
const bytesMax = 16 * 1024

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

export function createMessagePropertyReader(rules: PropertyRules): MessagePropertyReader {
  let user: Record<string, string> | null = null
  let properties: Writable<MessageProperties> | null = null
  let topicAlias = -1
  let skipped = 0
  let userCount = 0
  let bytesLeft = bytesMax
  let source: Buffer = Buffer.alloc(0)

  function read(bytes: Buffer, at: number, end: number): number {
    user = null
    properties = null
    topicAlias = -1
    skipped = 0
    userCount = 0
    bytesLeft = bytesMax
    source = bytes
    return readProperties(bytes, at, end, rules, add)
  }

  function add(identifier: number, start: number, end: number): void {
    if (identifier === ids.userProperty) addUserProperty(source, start, end)
    else addProperty(identifier, source, start, end)
  }

  function addUserProperty(bytes: Buffer, start: number, end: number): void {
    if (userCount === userPropertiesMax) skipped += 1
    else if (hasRoom(end - start)) {
      userCount += 1
      const nameEnd = start + 2 + twoBytesAt(bytes, start)
      // No prototype: a name such as `__proto__` is a name.
      user ??= Object.create(null) as Record<string, string>
      user[bytes.toString('utf8', start + 2, nameEnd)] = bytes.toString('utf8', nameEnd + 2, end)
    }
  }

  function addProperty(identifier: number, bytes: Buffer, start: number, end: number): void {
    switch (identifier) {
      case ids.topicAlias:
        topicAlias = twoBytesAt(bytes, start)
        return
      case ids.payloadFormat:
        if (bytes[start] === 1) (properties ??= {}).isText = true
        return
      case ids.messageExpiry:
        ;(properties ??= {}).expiryS = bytes.readUInt32BE(start)
        return
      case ids.contentType:
        if (hasRoom(end - start)) (properties ??= {}).contentType = bytes.toString('utf8', start + 2, end)
        return
      case ids.responseTopic:
        if (hasRoom(end - start)) (properties ??= {}).responseTopic = bytes.toString('utf8', start + 2, end)
        return
      case ids.correlationData:
        if (hasRoom(end - start)) (properties ??= {}).correlation = bytes.toString('base64', start + 2, end)
        return
      default:
      // A subscription identifier says nothing about the message.
    }
  }

  function hasRoom(size: number): boolean {
    if (size > bytesLeft) {
      skipped += 1
      return false
    }
    bytesLeft -= size
    return true
  }

  return {
    read,
    user() {
      return user
    },
    properties() {
      return properties
    },
    topicAlias() {
      return topicAlias
    },
    skipped() {
      return skipped
    },
  }
}
