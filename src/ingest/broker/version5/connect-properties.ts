// connect-properties.ts: what a CONNECT of MQTT 5 asks for (3.1.2.11, 3.1.3.2), and what it is refused for.
//
// A setting bounds the keepalive, and another one the expiry (stored-sessions.ts); CONNACK announces the
// bound where it is not what the client asked for. The client's receive maximum and topic alias maximum need
// nothing: it gets neither a message with QoS 1 or 2 nor a topic alias.
//
// Kept for the device view: the first 16 user properties, within 1 KiB and each cut at 128 characters, and
// without the values of those that may be secrets by their name. For the will: as many as of a PUBLISH,
// whole, because the mapping reads them.

import type { MessageProperties, UserProperties } from '../../../domain/message.ts'
import { hiddenText, namesSecret } from '../../../std/secret.ts'
import type { RefusalReason } from '../client-faults.ts'
import type { ConnectPacket, ConnectProperties, ConnectWill } from '../packets/connect-packet.ts'
import { createMessagePropertyReader } from '../packets/message-properties.ts'
import { clientProperties, propertyIds as ids, propertyValueAt } from '../packets/property-rules.ts'

export type ConnectRequest = {
  readonly cleanStart: boolean
  /** It gave no client id, so that it gets one. */
  readonly needsClientId: boolean
  /** As it asked; Infinity for a session that never expires. */
  readonly sessionExpiryMs: number
  /** As it asked; 0 for none. */
  readonly keepaliveMs: number
  readonly receiveMaximum: number
  readonly topicAliasMaximum: number
  /** The largest packet that it takes; Infinity where it says none. */
  readonly packetBytesMax: number
  /** It takes reason strings. */
  readonly wantsReasons: boolean
  readonly userProperties: UserProperties | null
  readonly will: WillRequest | null
}

export type WillRequest = {
  readonly delayMs: number
  readonly userProperties: UserProperties | null
  readonly properties: MessageProperties | null
  /** User properties beyond the bounds. */
  readonly skipped: number
}

/** Null: every keepalive, and none. */
export type KeepaliveLimit = { keepaliveMsMax: number | null }

/** User properties of the device view. */
const shown = { count: 16, characters: 128, bytes: 1024 }
const willProperties = createMessagePropertyReader(clientProperties.will)

/** MQTT 5, 3.1.2.11.2: a session that never expires. */
const neverExpiresS = 0xffff_ffff
const receiveMaximumDefault = 65_535

export function connectRequestOf({
  clientId,
  clean,
  keepaliveS,
  properties,
  will,
}: ConnectPacket): ConnectRequest {
  const expiryS = numberOf(properties, ids.sessionExpiry) ?? 0
  return {
    cleanStart: clean,
    needsClientId: clientId === '',
    sessionExpiryMs: expiryS === neverExpiresS ? Infinity : expiryS * 1000,
    keepaliveMs: keepaliveS * 1000,
    receiveMaximum: numberOf(properties, ids.receiveMaximum) ?? receiveMaximumDefault,
    topicAliasMaximum: numberOf(properties, ids.topicAliasMaximum) ?? 0,
    packetBytesMax: numberOf(properties, ids.maximumPacketSize) ?? Infinity,
    wantsReasons: numberOf(properties, ids.requestProblemInformation) !== 0,
    userProperties: shownProperties(properties.user),
    will: will && willRequestOf(will),
  }
}

/** The value of a property that is a number. */
function numberOf({ values }: ConnectProperties, identifier: number): number | undefined {
  const value = values.get(identifier)
  return value?.readUIntBE(0, value.length)
}

function willRequestOf({ section }: ConnectWill): WillRequest {
  willProperties.read(section, 0, section.length)
  const delayAt = propertyValueAt(section, 0, section.length, ids.willDelay, clientProperties.will)
  return {
    delayMs: delayAt === -1 ? 0 : section.readUInt32BE(delayAt) * 1000,
    userProperties: willProperties.user(),
    properties: willProperties.properties(),
    skipped: willProperties.skipped(),
  }
}

function shownProperties(given: ReadonlyMap<string, string>): UserProperties | null {
  const kept = Object.create(null) as Record<string, string>
  let number = 0
  let size = 0
  for (const [givenName, givenValue] of given) {
    const name = cut(givenName, shown.characters)
    const value = namesSecret(givenName) ? hiddenText : cut(givenValue, shown.characters)
    size += Buffer.byteLength(name) + Buffer.byteLength(value)
    if (number === shown.count || size > shown.bytes) continue
    kept[name] = value
    number += 1
  }
  return number === 0 ? null : kept
}

function cut(text: string, characters: number): string {
  if (text.length <= characters) return text
  // A copy: a part of a text keeps the whole text in memory, and the device view has it for long.
  return Buffer.from(`${text.slice(0, characters)}…`).toString()
}

/** Why a CONNECT of MQTT 5 is refused for what it asks for. */
export function connectRefusalOf(
  { properties, will }: ConnectPacket,
  { retain }: { retain: RetainSetting },
): RefusalReason | null {
  // [MQTT-4.12.0-1]
  if (properties.values.has(ids.authenticationMethod)) return 'authentication_method'
  // [MQTT-3.2.2-13]
  return will?.retain === true && retain === 'refuse' ? 'will_retain' : null
}

export type RetainSetting = 'refuse' | 'accept'

/** 0 for none. Whole seconds, because CONNACK has no others (3.2.2.3.14). */
export function grantedKeepaliveMs(asked: number, { keepaliveMsMax }: KeepaliveLimit): number {
  if (keepaliveMsMax === null) return asked
  const most = Math.floor(keepaliveMsMax / 1000) * 1000
  return asked === 0 ? most : Math.min(asked, most)
}
