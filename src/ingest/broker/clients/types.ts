// types.ts: what is known of a client, as others see it.

import type { UnnamedMessage, UserProperties } from '../../../domain/message.ts'
import type { EpochMs } from '../../../std/clock.ts'

export type ClientState = 'connected' | 'disconnected' | 'lost' | 'refused'

export type ClientView = {
  /** '' for what is known of an address only. */
  readonly clientId: string
  readonly identity: string | null
  /** As its last CONNECT had it, whether it was checked or not. */
  readonly userName: string | null
  readonly address: string | null
  /** Of its last connection: version of MQTT, and what it goes over unless that is TCP alone. */
  readonly protocol: string | null
  /** Of its last connection; null before MQTT 5. */
  readonly connect: ClientConnect | null
  /** When the certificate of its last connection is valid; null without one. */
  readonly certificate: { startsAt: EpochMs; endsAt: EpochMs } | null
  readonly state: ClientState
  /** Since when it has this state. */
  readonly since: EpochMs
  /** Its will came when it was last lost. */
  readonly willCame: boolean
  /** How often it connected while its earlier connection was open. */
  readonly takeOvers: number
  /** When it and another client with its id last closed the connection of each other; null for never. */
  readonly sharedAt: EpochMs | null
  /** Since when they do that, without ten minutes in between. */
  readonly sharedFirstAt: EpochMs | null
  /** Messages that a rule did not allow. */
  readonly refusedMessages: number
  /** The first and the last of them; null where there was none. */
  readonly messageRefusedFirstAt: EpochMs | null
  readonly messageRefusedAt: EpochMs | null
  /** When its CONNECT was first and last refused since it connected; null where it was not. */
  readonly refusedFirstAt: EpochMs | null
  readonly refusedAt: EpochMs | null
  /** The last fault that the gateway found. */
  readonly fault: ClientFault | null
  /** Of its last connection. */
  readonly traffic: Readonly<ClientTraffic>
  /** Its messages that gave no payload and name no device; null where there are none. */
  readonly unnamed: Readonly<UnnamedMessages> | null
}

/** `messages`: those that it sent, wills left out. `subscriptions`: topic filters that it subscribed to. */
export type ClientTraffic = { messages: number; subscriptions: number }

/** What is known of the last one, and since when they come. */
export type UnnamedMessages = UnnamedMessage & { count: number; firstAt: EpochMs; at: EpochMs }

/** What its CONNECT asked for (MQTT 5, 3.1.2), and what it got. */
export type ClientConnect = {
  /** Seconds; 0 for none. */
  readonly keepaliveAsked: number
  readonly keepalive: number
  /** Seconds; null for a session that never expires. */
  readonly sessionExpiryAsked: number | null
  readonly sessionExpiry: number | null
  readonly cleanStart: boolean
  /** It got its stored session. */
  readonly sessionPresent: boolean
  /** Messages with QoS 1 and 2 that it takes at a time. */
  readonly receiveMaximum: number
  /** Topic aliases that it takes; the gateway sends none. */
  readonly topicAliasMaximum: number
  /** Bytes of the largest packet that it takes; null where it names none. */
  readonly maximumPacketSize: number | null
  /** Seconds; null without a will. */
  readonly willDelay: number | null
  /** At most 16, of 1 KiB together. */
  readonly userProperties: UserProperties | null
}

/** `reason` is a stable code; `count` faults since the start, of any kind. */
export type ClientFault = { reason: string; detail: string; at: EpochMs; count: number }
