// connect-properties.ts: what a CONNECT of MQTT 5 asks for (3.1.2.11, 3.1.3.2), and what it is refused for.
// Its properties were read by mqtt-packet, which does not check that they are laid out as they must be.
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
import type { ConnectPacket } from '../aedes-internals.ts'
import type { RefusalReason } from '../client-faults.ts'

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

type UserPropertyBounds = { count: number; characters: number; bytes: number; hidesSecrets: boolean }

const shown: UserPropertyBounds = { count: 16, characters: 128, bytes: 1024, hidesSecrets: true }
const readable: UserPropertyBounds = {
  count: 64,
  characters: Infinity,
  bytes: 16 * 1024,
  hidesSecrets: false,
}

/** MQTT 5, 3.1.2.11.2: a session that never expires. */
const neverExpiresS = 0xffff_ffff
const receiveMaximumDefault = 65_535

export function connectRequestOf({
  clientId,
  clean,
  keepalive,
  properties = {},
  will,
}: ConnectPacket): ConnectRequest {
  const expiryS = properties.sessionExpiryInterval ?? 0
  return {
    cleanStart: clean ?? true,
    needsClientId: clientId === '',
    sessionExpiryMs: expiryS === neverExpiresS ? Infinity : expiryS * 1000,
    keepaliveMs: (keepalive ?? 0) * 1000,
    receiveMaximum: properties.receiveMaximum ?? receiveMaximumDefault,
    topicAliasMaximum: properties.topicAliasMaximum ?? 0,
    packetBytesMax: properties.maximumPacketSize ?? Infinity,
    wantsReasons: properties.requestProblemInformation ?? true,
    userProperties: userPropertiesOf(properties.userProperties, shown).kept,
    will: will === undefined ? null : willRequestOf(will.properties ?? {}),
  }
}

type Will = NonNullable<ConnectPacket['will']>

function willRequestOf(given: NonNullable<Will['properties']>): WillRequest {
  const { contentType, responseTopic, correlationData, payloadFormatIndicator, messageExpiryInterval } = given
  const properties: MessageProperties = {
    ...(contentType !== undefined && { contentType }),
    ...(responseTopic !== undefined && { responseTopic }),
    ...(correlationData !== undefined && { correlation: correlationData.toString('base64') }),
    ...(payloadFormatIndicator && { isText: true }),
    ...(messageExpiryInterval !== undefined && { expiryS: messageExpiryInterval }),
  }
  const { kept, skipped } = userPropertiesOf(given.userProperties, readable)
  return {
    delayMs: (given.willDelayInterval ?? 0) * 1000,
    userProperties: kept,
    properties: Object.keys(properties).length === 0 ? null : properties,
    skipped,
  }
}

/** A name that comes twice has its last value, as in the mapping. */
function userPropertiesOf(
  given: NonNullable<ConnectPacket['properties']>['userProperties'],
  { count, characters, bytes, hidesSecrets }: UserPropertyBounds,
): { kept: UserProperties | null; skipped: number } {
  const kept = Object.create(null) as Record<string, string>
  let number = 0
  let size = 0
  let skipped = 0
  for (const [givenName, values] of Object.entries(given ?? {})) {
    const name = cut(givenName, characters)
    const given = (Array.isArray(values) ? values.at(-1) : values) ?? ''
    const value = hidesSecrets && namesSecret(givenName) ? hiddenText : cut(given, characters)
    size += Buffer.byteLength(name) + Buffer.byteLength(value)
    if (number === count || size > bytes) skipped += 1
    else {
      kept[name] = value
      number += 1
    }
  }
  return { kept: number === 0 ? null : kept, skipped }
}

function cut(text: string, characters: number): string {
  if (text.length <= characters) return text
  // A copy: a part of a text keeps the whole text in memory, and the device view has it for long.
  return Buffer.from(`${text.slice(0, characters)}…`).toString()
}

/** Why a CONNECT of MQTT 5 is refused for what it asks for. */
export function connectRefusalOf(
  { properties = {}, will }: ConnectPacket,
  { retain }: { retain: RetainSetting },
): RefusalReason | null {
  // [MQTT-4.12.0-1]
  if (properties.authenticationMethod !== undefined) return 'authentication_method'
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
