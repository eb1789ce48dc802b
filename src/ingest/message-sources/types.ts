// types.ts: what a message source is, and what the gateway gives it (message-sources.ts).

import type { EpochMs } from '../../std/clock.ts'
import type { MessageProperties, QoS, Sender, UserProperties } from '../../domain/message.ts'
import type { StateSource } from '../../domain/condition-state.ts'
import type { Ack } from '../../spool/spool.ts'
import type { ClientBudget } from '../broker/connection-limits/connection-limits.ts'
import type { MessageRefusal } from '../types.ts'

/** The protocol of a message source that is not the embedded broker. */
export type BridgeKind = 'mqtt' | 'amqp' | 'jetstream'

/** What a message source can do. */
export type SourceTraits = {
  /**
   * `each`: every message is acknowledged. `up_to`: an acknowledgement covers all before it in its partition.
   */
  ackKind: 'each' | 'up_to'
  /** Its messages are in partitions that move between the members of a group. */
  partitioned: boolean
  /** Messages of a partition that may be outstanding at most. */
  windowMax: number
  /** How long a message may be outstanding until the server delivers it again; null: without limit. */
  holdMs: number | null
  /** When the server delivers a message again that was not acknowledged. */
  redelivers: 'on_reconnect' | 'on_close' | 'after_hold'
}

/**
 * A run of messages whose acknowledgements keep their order: a connection, a queue, a partition of a log. It
 * exists from `assign` to `revoke`; the same queue on a new connection is another one. That is its epoch.
 */
export type Partition = {
  readonly label: string
  /** Messages that wait for a full store are found by it. One object per partition. */
  readonly sender: Sender
  /** `parked`: entries that custody stored at the server, in the order in which they were stored. */
  readonly holds: 'messages' | 'parked'
  /** The time that mapping and storing its messages may take; null where they are not mapped. */
  readonly budget: Pick<ClientBudget, 'countTime' | 'isTimeSpent' | 'close'> | null
  /** False after `revoke`: nothing of it is acknowledged any more. */
  assigned: boolean
  /** Messages that were handed over and want an acknowledgement; those that have been acknowledged. */
  taken: number
  acked: number
  /** The last position that was acknowledged, for `up_to`. */
  lastAcked: number
  /** Messages whose commit is durable, and the last position of them. */
  committed: number
  lastCommitted: number
  /** Those of them that custody knows of. */
  collected: number
  lastTakenAtMs: number
}

/** Opens the budget of a partition; `resumeReading` is called when it allows reading again. */
export type PartitionBudgets = {
  openBridgeBudget(name: string, reader: { resumeReading(): void }): Partition['budget']
}

/** A message as its source has it. The source may use the object and the bytes again after the call. */
export type SourceMessage = {
  topic: string
  bytes: Buffer
  qos: QoS
  /** It was stored at the server for new subscribers, and is not new. */
  retain: boolean
  /** The server says that it delivered the message before. */
  redelivered: boolean
  /** When the server stored it; null where it does not say. */
  storedAt: EpochMs | null
  /** Its number at the server, where `storedAt` alone does not tell messages apart; default 0. */
  storedSerial?: number
  userProperties: UserProperties | null
  /** Null where there is none. */
  properties: MessageProperties | null
  /** It is acknowledged and ignored for this reason; null for a message to be mapped. */
  ignoredFor: string | null
  /** It is acknowledged and kept as a dead letter for this reason; null for a message to be mapped. */
  refusal: MessageRefusal | null
}

/** What a message source gets: where its messages go. */
export type MessageFeed = {
  /** A partition begins. `sender`: where the server says who sent its messages. */
  assign(label: string, sender?: Sender, holds?: Partition['holds']): Partition
  /** It ends: messages of it that wait are left to the server. */
  revoke(partition: Partition): void
  /** How many messages it may hand over now. 0 while the spool takes nothing in. */
  room(partition: Partition): number
  /** Hands over a message. `position`: what `acknowledge` gets later; null where none is wanted (QoS 0). */
  take(partition: Partition, position: number | null, message: SourceMessage): void
}

/**
 * What custody `delivered` needs of a source. The source reads the queue `parked` as one more partition
 * (`holds: 'parked'`), whose messages have the body of an entry as bytes.
 */
export type SourceCustody = {
  /**
   * Stores entries in a queue of the server. Resolves when the server has confirmed each of them; rejects
   * where it has not, and then some may be stored.
   */
  store(queue: CustodyQueue, entries: readonly StoredEntry[], signal: AbortSignal): Promise<void>
}

export type CustodyQueue = 'parked' | 'dead'

/** An entry for a queue of the server. The headers say what is in it to a person. */
export type StoredEntry = { headers: Readonly<Record<string, string>>; body: Buffer }

/** The last message of a partition that a commit made durable: its number from 1, and its position. */
export type CommittedPart = { feed: CustodyFeed; partition: Partition; count: number; position: number }

/** What custody asks of a feed: acknowledgements that it gives later than at the commit. */
export type CustodyFeed = {
  readonly source: MessageSource
  /** The partitions with messages that were committed since the last call. */
  collect(): readonly CommittedPart[]
  /** Acknowledges all up to and including it. */
  delivered(part: CommittedPart): void
  /** It is connected and takes messages: what is to be delivered again comes. */
  isReady(): boolean
  /** Gives back everything: the server delivers it again, on new partitions. */
  giveBackAll(): void
  /** The share of the window that is in use, of the partition that uses most. */
  windowUse(): number
}

/** Custody `delivered`, as the feeds of all sources see it (custody/custody.ts). */
export type FeedCustody = {
  /** Nothing is taken: the ingestion API accepts nothing. */
  isHolding(): boolean
  /** Stores an entry that was parked; `ack` after its commit. */
  takeBack(partition: Partition, entry: Buffer, ack: Ack): void
}

export type SourceCounters = {
  /** Messages that were handed over. */
  received: number
  /** Acknowledgements that were given to the server. */
  acked: number
  /** Null where it is not counted by source. */
  redelivered: number | null
  /** Properties of messages that the mapping does not get, because there are too many; null as above. */
  propertiesSkipped: number | null
  /** Messages that wait for their acknowledgement. */
  outstanding: number
}

export type LinkState = 'connecting' | 'connected' | 'waiting' | 'paused' | 'stopped'

/** A connection of a message source, for /status. */
export type LinkView = {
  clientId: string
  state: LinkState
  /** Since when it has this state; `sinceMs` is monotonic. */
  since: EpochMs
  sinceMs: number
  /** The server had kept the session; null before the first connection. */
  sessionPresent: boolean | null
  /** Connections that ended, since the start. */
  losses: number
  /** Why the last one ended, and what to do; null while it is connected, and before the first. */
  lastFault: string | null
  lastAct: string | null
  /** It has taken no messages for longer than the limit of its condition. */
  isPausedLong: boolean
  /** Messages that it brought, since the start; when the last one came, monotonic. */
  messages: number
  lastMessageMs: number | null
}

/** A partition that members of a group share, for /status. */
export type PartitionView = {
  /** Name of the queue or durable consumer. */
  partition: string
  /** Name of this gateway in the group. */
  member: string
  /** Whether this gateway gets its messages, or waits for its turn; null where that is not known. */
  role: 'active' | 'standby' | null
  /** Messages here that wait for their acknowledgement. */
  outstanding: number
  /** Messages that wait at the server; null where it does not say. */
  lag: number | null
}

/** What a source knows of itself, beside what the feed counts. */
export type SourceView = {
  url: string | null
  links: readonly LinkView[]
  /** Empty where the source is not `partitioned`. */
  partitions: readonly PartitionView[]
  /** Messages that wait at the server; null where it does not say. */
  lag: number | null
  /** Messages that the server removed before a gateway took them, since the start; null as above. */
  lost: number | null
  retainedIgnored: number
}

/** `states`: what its server would lose, strand or delay (source-risks.ts). */
export type MessageSource = StateSource & {
  /** As `from` of a source of the mapping names it. */
  readonly name: string
  readonly kind: BridgeKind
  readonly traits: SourceTraits
  /** Begins to connect, and continues until `close`. A server that is not reachable is a condition. */
  start(feed: MessageFeed): void
  /**
   * At most so many messages of each partition may be outstanding. 0: it hands nothing over; where that lasts
   * it returns what it has to the server. Also called with the same number, when there may be room again.
   */
  want(messages: number): void
  /**
   * The message at `position` is durable: in the order of `take` within a partition. `up_to`: the last one.
   */
  acknowledge(partition: Partition, position: number): void
  /** All acknowledgements of a commit were given. */
  flush(partition: Partition): void
  /** A message could not be stored: the server must deliver it again. The partition is revoked. */
  giveBack(partition: Partition): void
  /** Ends its links, or that with this client id, and connects again: they may be dead without an error. */
  reconnect(clientId: string | null): void
  /** Where custody `delivered` is possible. */
  readonly custody?: SourceCustody
  /** Publishes a command at the server, with QoS 0; false where it is not connected. */
  publish?(topic: string, bytes: Buffer): boolean
  /** A planned stop: hands nothing more over. What was taken is still acknowledged. */
  release(): Promise<void>
  /** After the last acknowledgements: disconnects. */
  close(): Promise<void>
  view(): SourceView
}

/** A message source for /status and metrics. */
export type MessageSourceStatus = SourceCounters &
  SourceView & {
    name: string
    kind: 'broker' | BridgeKind
    traits: SourceTraits
    /** It is connected and brings no message for longer than its limit. */
    isSilent: boolean
    /** Null before the first message. */
    lastMessageAt: EpochMs | null
  }
