// connack-packet.ts: the bytes of CONNACK (3.2), in MQTT 5 never more than the client takes [MQTT-3.1.2-24].
// Null where not even the shortest fits: the connection is closed without an answer then.
//
// Not sent: Maximum QoS, since absent means 2 and the property cannot say it [MQTT-3.2.2-9]; response
// information, server reference and user properties.

import { generate, type IConnackPacket } from 'mqtt-packet'
import type { Refusal } from './access/connect-rules.ts'
import type { ConnectRequest, RetainSetting } from './version5/connect-properties.ts'
import { refusalCodes } from './version5/reason-codes.ts'

/** What the gateway takes, by its settings. */
export type ConnackTerms = {
  inFlightMax: number
  /** Of the remaining length. */
  packetBytesMax: number
  topicAliasesMax: number
  retain: RetainSetting
}

export type AcceptedConnect = {
  request: ConnectRequest
  /** As granted. */
  sessionExpiryMs: number
  keepaliveMs: number
  sessionPresent: boolean
  clientId: string
}

export function acceptingConnack(
  { request, sessionExpiryMs, keepaliveMs, sessionPresent, clientId }: AcceptedConnect,
  { inFlightMax, packetBytesMax, topicAliasesMax, retain }: ConnackTerms,
): Buffer | null {
  const bytes = bytesOf(0, sessionPresent, {
    ...(sessionExpiryMs !== request.sessionExpiryMs && {
      sessionExpiryInterval: Math.floor(sessionExpiryMs / 1000),
    }),
    receiveMaximum: inFlightMax,
    ...(retain === 'refuse' && { retainAvailable: false }),
    maximumPacketSize: packetBytesMax,
    // [MQTT-3.2.2-16]
    ...(request.needsClientId && { assignedClientIdentifier: clientId }),
    topicAliasMaximum: topicAliasesMax,
    wildcardSubscriptionAvailable: false,
    subscriptionIdentifiersAvailable: false,
    sharedSubscriptionAvailable: false,
    // [MQTT-3.2.2-21]
    ...(keepaliveMs !== request.keepaliveMs && { serverKeepAlive: keepaliveMs / 1000 }),
  })
  return bytes.length <= request.packetBytesMax ? bytes : null
}

/** `reason`: its stable key. Left out where the client wants none or has no room for it [MQTT-3.2.2-19]. */
export function refusingConnack(
  code: number,
  reason: string,
  request: Pick<ConnectRequest, 'packetBytesMax' | 'wantsReasons'> | null,
): Buffer | null {
  const packetBytesMax = request?.packetBytesMax ?? Infinity
  if (request?.wantsReasons !== false) {
    const bytes = bytesOf(code, false, { reasonString: reason })
    if (bytes.length <= packetBytesMax) return bytes
  }
  const shortest = bytesOf(code, false, {})
  return shortest.length <= packetBytesMax ? shortest : null
}

/** Of MQTT 3.1 and 3.1.1. */
export function plainConnack(returnCode: number, sessionPresent = false): Buffer {
  return Buffer.from([0x20, 2, sessionPresent ? 1 : 0, returnCode])
}

/** The answer to a CONNECT that is refused. `request`: null before MQTT 5. */
export function refusalPacketOf(
  { reason, returnCode }: Refusal,
  request: ConnectRequest | null,
): Buffer | null {
  if (request === null) return plainConnack(returnCode)
  const code = refusalCodes[reason]
  return code === null ? null : refusingConnack(code, reason, request)
}

function bytesOf(
  reasonCode: number,
  sessionPresent: boolean,
  properties: NonNullable<IConnackPacket['properties']>,
): Buffer {
  return generate({ cmd: 'connack', reasonCode, sessionPresent, properties }, { protocolVersion: 5 })
}
