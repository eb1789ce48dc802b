// unreleased-messages.ts: compares a QoS 2 message with the session of its client, and adds it there.
// Content is compared by a checksum of topic, bytes and properties.

import { crc32 } from 'node:zlib'
import { propertiesText } from '../../domain/message.ts'
import type { ReceivedMessage } from '../types.ts'

/** A QoS 2 message that its client sends again, and that it has not released. */
export function isUnreleased(message: ReceivedMessage): boolean {
  if (message.qos !== 2 || !message.link?.session) return false
  return message.link.session.holds(message.messageId ?? 0, checksumOf(message))
}

/** In the group of the message. */
export function addUnreleased(message: ReceivedMessage): void {
  message.link?.session?.add(message.messageId ?? 0, checksumOf(message))
}

function checksumOf(message: ReceivedMessage): number {
  return crc32(propertiesText(message), crc32(message.bytes, crc32(message.topic)))
}
