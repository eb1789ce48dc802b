// packet-properties.ts: makes the properties of a message of MQTT 5 readable by paths: its user properties as
// `$properties` of the message, the others as `$packet`. They are part of no record, no list of keys and no
// JSON.

import type { Message, MessageProperties } from '../../domain/message.ts'
import type { packetNames } from '../expression/names.ts'
import { pathIn } from './paths-used.ts'

export type PacketProperties = Pick<Message, 'userProperties' | 'properties'>

export type PacketValues = Readonly<Record<(typeof packetNames)[number], string | number | undefined>>

const userKey = '$properties'
const packetKey = '$packet'

/** They replace what the message has under these keys. A message that is no object has none. */
export function addPacketProperties(root: unknown, { userProperties, properties }: PacketProperties): void {
  if (typeof root !== 'object' || root === null || !Object.isExtensible(root)) return
  // Paths find own keys of usual objects.
  if (userProperties) add(root, userKey, { ...userProperties })
  if (properties) add(root, packetKey, packetValuesOf(properties))
}

function add(root: object, key: string, value: unknown): void {
  Object.defineProperty(root, key, { value, enumerable: false, configurable: true })
}

/** As paths and expressions read them. */
export function packetValuesOf(properties: MessageProperties): PacketValues {
  const { contentType, responseTopic, correlation, isText, expiryS } = properties
  return {
    content_type: contentType,
    response_topic: responseTopic,
    correlation_data: correlation,
    payload_format: isText === true ? 1 : undefined,
    message_expiry: expiryS,
  }
}

/**
 * Whether a path in `options` may read them: their key is written somewhere. A path can quote it, and a
 * quoted key may have backslashes.
 */
export function readsPacketProperties(options: unknown): boolean {
  return textsIn(options).some((text) => text.includes(userKey) || /\$?packet\b/.test(text))
}

/** What a path reads, such as `user property vin`; null for a value of the message itself. */
export function propertyReadBy(text: string): string | null {
  const [first, second] = pathIn(text)[0]?.steps ?? []
  if (first?.kind !== 'key' || second?.kind !== 'key') return null
  if (first.key === userKey) return `user property ${second.key}`
  return first.key === packetKey ? `property ${second.key}` : null
}

/**
 * The names of user properties that `options` do not read. In doubt one counts as read: its name is in a text
 * that reads user properties, or such a text reads all.
 */
export function unreadProperties(options: unknown, { userProperties }: PacketProperties): string[] {
  const readers = textsIn(options).filter(
    (text) => text.includes(userKey) || text.includes('{user.') || text.includes('packet.user'),
  )
  const readsAll = readers.some((text) => /\$properties(?![.[])|\$properties\.[$*]/.test(text))
  if (readsAll) return []
  return Object.keys(userProperties ?? {}).filter((name) => !readers.some((text) => text.includes(name)))
}

/** Without the backslashes that quoted keys may have. */
function textsIn(options: unknown): string[] {
  if (typeof options === 'string') return [options.replaceAll('\\', '')]
  if (typeof options !== 'object' || options === null) return []
  return Object.values(options).flatMap(textsIn)
}
