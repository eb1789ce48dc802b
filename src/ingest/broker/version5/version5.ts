// version5.ts: MQTT 5, as far as its connections differ from those of 3.1 and 3.1.1.
//
// Supported: session expiry, receive maximum, maximum packet size, topic aliases from the client, user
// properties and the other properties of a message, reason codes, DISCONNECT in both directions, will delay.
//
// Not supported, and announced so in CONNACK: retained messages, wildcard and shared subscriptions,
// subscription identifiers, response information, enhanced authentication. The gateway sends no topic aliases
// and nothing with QoS 1 or 2.
//
// The broker library sees the CONNECT only, as one of 3.1.1. All packets behind it are read by the files of
// this folder, from whole packets whose sizes the framing has checked:
//
//   connect-properties.ts   what a CONNECT asks for, and what its client gets
//   connack-packet.ts       the answer to it
//   reason-codes.ts         which code says why
//   property-rules.ts       which properties a packet may have, and whether their values are valid
//   packet-layout.ts        whether the other packets are laid out as they must be
//   publish-packets.ts      PUBLISH: the hot path
//   message-properties.ts   what the mapping gets of the properties of a PUBLISH
//   topic-aliases.ts        the topics that a client has given numbers
//   receive-quota.ts        messages that are not acknowledged
//
// A packet that breaks a rule is never taken in part. What was read before it in the same portion counts.

import type { PacketFault } from '../packet-rules.ts'
import type { ConnectRequest } from './connect-properties.ts'
import { createReceiveQuota, type ReceiveQuota } from './receive-quota.ts'
import { createTopicAliases, type TopicAliases } from './topic-aliases.ts'

/** Of all connections together. */
export type Version5Counts = {
  /** Messages whose sender says that they are UTF-8, and which are not. */
  payloadFormatMismatches: number
  /** Properties of messages that the mapping does not get, because there are too many. */
  propertiesSkipped: number
}

/** What the gate of a connection keeps. One object, made when its CONNECT was read. */
export type Version5 = {
  readonly request: ConnectRequest
  /** CONNACK was written: a DISCONNECT may follow [MQTT-3.14.0-1]. */
  isAnswered: boolean
  /** As granted, once its session is open. DISCONNECT may change it. */
  sessionExpiryMs: number
  /** Remaining length of the largest packet that the gateway reads. */
  readonly receivedBytesMax: number
  /** Bytes of the largest packet that the client reads. */
  readonly packetBytesMax: number
  readonly quota: ReceiveQuota
  readonly aliases: TopicAliases
  readonly counts: Version5Counts
  /** DISCONNECT came with another reason than 0x00. */
  hasWillOnDisconnect: boolean
  /** Found in a packet; the connection ends with it, and nothing behind that packet is read. */
  fault: PacketFault | null
}

export type Version5Options = {
  request: ConnectRequest
  receivedBytesMax: number
  /** Announced as the receive maximum. */
  inFlightMax: number
  topicAliasesMax: number
}

export function createVersion5Counts(): Version5Counts {
  return { payloadFormatMismatches: 0, propertiesSkipped: 0 }
}

export function createVersion5(options: Version5Options, counts: Version5Counts): Version5 {
  return {
    request: options.request,
    isAnswered: false,
    sessionExpiryMs: 0,
    packetBytesMax: options.request.packetBytesMax,
    receivedBytesMax: options.receivedBytesMax,
    quota: createReceiveQuota(options.inFlightMax),
    aliases: createTopicAliases(options.topicAliasesMax),
    counts,
    hasWillOnDisconnect: false,
    fault: null,
  }
}
