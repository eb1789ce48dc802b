// types.ts: what ingest needs of the spool and the mapping, what it knows of the clients of the embedded
// broker, and the order between released and arriving messages.

import type { Message, QoS } from '../domain/message.ts'
import type { Mapper } from '../mapping/mapping.ts'
import type { Spool } from '../spool/spool.ts'
import type { RebirthRequests } from './rebirth-requests.ts'

/** The part of the spool that takes messages in. */
export type IntakeSpool = Pick<
  Spool,
  | 'holdReason'
  | 'busy'
  | 'congested'
  | 'commits'
  | 'isFull'
  | 'holds'
  | 'append'
  | 'addDeadLetter'
  | 'addWindowKey'
  | 'hasWindowKey'
  | 'putState'
  | 'putLateState'
  | 'note'
  | 'putSession'
  | 'keepMessage'
  | 'exchange'
  | 'stateEntries'
  | 'journal'
  | 'sessionRecords'
  | 'endMessage'
  | 'listen'
>

/** The part of the spool for work on kept messages and dead letters. */
export type KeptSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'shelves'
  | 'keptDevices'
  | 'keptMessages'
  | 'deadLetters'
  | 'exchange'
  | 'stateEntries'
  | 'listen'
  | 'totals'
>

/** A message with what tells it from others of its client. */
export type ReceivedMessage = Message & {
  /** Null where the packet identifier belongs to a link of ours and not to the client. */
  link?: ClientLink | null
  /** The client may not publish it: it is acknowledged and ignored for this reason. */
  violation?: string | null
  /** Its acknowledgement says that it is not taken (MQTT 5): its packet identifier is free at once. */
  isRefused?: boolean
  /** It cannot be mapped: it becomes a dead letter for this reason. */
  refusal?: MessageRefusal | null
  /** Packet identifier; 0 with QoS 0. */
  messageId?: number
  /** Its place among the messages of the connection that want an ack, from 0. */
  ordinal?: number
}

/** Why a message of a message source becomes a dead letter without being mapped. */
export type MessageRefusal = { reason: 'BAD_TOPIC' | 'OVERSIZED'; detail: string }

/** A connection of a client to the embedded broker. Acks are given in the order of the messages. */
export type ClientLink = {
  readonly client: KnownClient
  /** Later connections have larger numbers, also over a restart. */
  readonly connection: number
  /** The last one before it on which anything came; 0 and null where it is not known. */
  readonly previousConnection: number
  previous: ClientLink | null
  /** There were others between, on which nothing came. */
  readonly isLater: boolean
  /** PINGREQ or DISCONNECT came on it. */
  isHeard: boolean
  /** Messages that want an ack, and the acks that were written. */
  received: number
  acked: number
  /** Acks that were written before the last PINGREQ, and acks that the client has read for certain. */
  ackedAtPing: number
  confirmed: number
  /** Monotonic time of its last ack; of the connect before the first one. */
  ackedAtMs: number
  /** Null until the broker has opened it. */
  session: ClientSession | null
}

/** The QoS 2 messages of a client that were received and not released (stored-sessions.ts). */
export type ClientSession = {
  /** It survives the connection; the messages of others are in memory only. */
  readonly stored: boolean
  /** Discarded, expired or evicted. */
  readonly ended: boolean
  readonly unreleasedCount: number
  /** There is no room for another message with this packet identifier. */
  isFull(messageId: number): boolean
  /** The last message under the identifier had this checksum, and is not released. */
  holds(messageId: number, checksum: number): boolean
  /** Adds it to the group that is open, with its message. */
  add(messageId: number, checksum: number): void
  /** The write of its message failed. */
  forget(messageId: number): void
  /** Resolves when the deletion of the identifier is durable; false if it was not in use. */
  release(messageId: number): Promise<boolean>
}

/** What is known of a client by its id (untimed-resends.ts). */
export type KnownClient = {
  /** 48 bits of a hash of its id. */
  readonly key: number
  /** Its last connection; null where that was before this process started. */
  link: ClientLink | null
  lastConnection: number
  /** When its last connection ended, monotonic; null while it is open. */
  closedAtMs: number | null
  /** The last message under each packet identifier. */
  entries: Map<number, ClientEntry>
  /** Messages entered so far. */
  entered: number
  /** The last message without DUP, and the last one of the connection before that of this one. */
  lastFirst: { messageId: number; connection: number }
  firstBefore: { messageId: number; connection: number }
  /** It has used a packet identifier twice within a connection. */
  reuses: boolean
  /** The first message of its connections has the packet identifier behind that of the last one before. */
  countsOn: boolean
}

export type ClientEntry = {
  readonly client: KnownClient
  readonly messageId: number
  readonly qos: QoS
  /** 48 bits of a hash of topic and bytes; null for a message that is not compared. */
  readonly hash: number | null
  readonly connection: number
  /** As in ReceivedMessage; -1 where it is not known. */
  readonly ordinal: number
  /** `entered` of the client before it. */
  readonly place: number
  /** It came with DUP. */
  readonly resent: boolean
  /** Monotonic. */
  readonly addedAtMs: number
}

/** What the intake needs of the mapping. */
export type IntakeMapper = Pick<Mapper, 'map' | 'tick' | 'nextTickAt' | 'restore' | 'openParts'> &
  Partial<Pick<Mapper, 'ownerOf'>>

/** While the kept messages of a device are being released, its later messages are kept behind them. */
export type ReleaseOrder = {
  isReleasing(device: string): boolean
  /** Another message of the device was kept. */
  addBehind(device: string): void
}

/** Publishes a request to a node of Sparkplug, on the way back of the message. */
export type RequestRebirth = RebirthRequests['request']
