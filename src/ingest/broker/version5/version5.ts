// version5.ts: MQTT 5, as far as its connections differ from those of 3.1 and 3.1.1.
//
// Supported: session expiry, receive maximum, maximum packet size, topic aliases from the client, user
// properties and the other properties of a message, reason codes, DISCONNECT in both directions, will delay.
//
// Not supported, and announced so in CONNACK: retained messages, wildcard and shared subscriptions,
// subscription identifiers, response information, enhanced authentication. The gateway sends no topic aliases
// and nothing with QoS 1 or 2.
//
// Its packets are read with those of the other versions (packets/). Its connections have besides:
//
//   connect-properties.ts   what a CONNECT asks for, and what its client gets
//   connack-packet.ts       the answer to it
//   reason-codes.ts         which code says why
//   topic-aliases.ts        the topics that a client has given numbers
//   receive-quota.ts        messages that are not acknowledged
//   last-packet.ts          why the gateway closes a connection
//   delayed-wills.ts        wills that wait
//
// A packet that breaks a rule is never taken in part. What was read before it in the same portion counts.

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
  /** Bytes of the largest packet that the client reads. */
  readonly packetBytesMax: number
  readonly quota: ReceiveQuota
  readonly aliases: TopicAliases
  readonly counts: Version5Counts
}

export type Version5Options = {
  request: ConnectRequest
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
    quota: createReceiveQuota(options.inFlightMax),
    aliases: createTopicAliases(options.topicAliasesMax),
    counts,
  }
}
