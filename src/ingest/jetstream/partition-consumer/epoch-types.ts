// epoch-types.ts: what an epoch of a partition is (partition-epoch.ts), and what it needs.

import type { StoredMsg } from '@nats-io/jetstream'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import type { Clock } from '../../../std/clock.ts'
import type { MessageFeed, Partition } from '../../message-sources/message-sources.ts'
import type { SourceMessage } from '../../message-sources/types.ts'
import type { Delivery } from '../delivered-message.ts'

/** Why an epoch must be looked at. `silent`: it may go on as it is. */
export type Trouble = 'silent' | 'gap' | 'again' | 'not_owner' | 'not_stored' | 'refused' | 'ended'

export type Epoch = {
  readonly partition: Partition
  /** The consumer sequence of the last delivery, and the place of the last message in the stream. */
  readonly last: { consumerSeq: number; streamSeq: number }
  /** Resolves when something is wrong. */
  trouble(): Promise<Trouble>
  /** It was silent and is in order: pulls anew. */
  resume(): void
  /** There may be room. */
  update(): void
  acknowledge(position: number): void
  flush(): void
  /** Takes nothing more; what it took is acknowledged. */
  halt(trouble: Trouble): void
  isHalted(): boolean
  /** Nothing of it is acknowledged any more. */
  end(trouble: Trouble): void
  /** Nothing more is taken. Resolves when all that was taken is acknowledged, or the time is over. */
  settle(limitMs: number): Promise<void>
  tick(): void
  /** Messages that came and are not acknowledged, those for which there was no room, too. */
  outstanding(): number
}

export type EpochDeps = {
  clock: Clock
  nc: NatsConnection
  feed: MessageFeed
  /** Fills the message for the intake; `subject` is that of the stream. */
  read: (message: Pick<Msg, 'subject' | 'data' | 'headers'>, delivery: Delivery) => SourceMessage
  /** The first message of the partition behind a place of the stream; null: there is none. */
  next: (behind: number) => Promise<StoredMsg | null>
  /** Until when this gateway may take messages of its partitions, monotonic. */
  ownedUntilMs: () => number
  taken: () => void
}

export type EpochOptions = {
  label: string
  stream: string
  durable: string
  windowMax: number
  ackWaitMs: number
  /** Of the durable when the epoch begins. */
  consumerSeq: number
  /** Up to this place of the stream all is acknowledged when the epoch begins. */
  ackFloor: number
  /** Places of the messages that were outstanding, ascending. They come first. */
  pending: readonly number[]
}
