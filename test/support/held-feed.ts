// held-feed.ts: a message feed whose acknowledgements the test gives, for a message source without a gateway.

import { noSender } from '../../src/domain/message.ts'
import type {
  MessageFeed,
  MessageSource,
  Partition,
} from '../../src/ingest/message-sources/message-sources.ts'
import { newPartition } from '../../src/ingest/message-sources/partition.ts'

export type HeldMessage = { partition: Partition; position: number; text: string; redelivered: boolean }

export type HeldFeed = {
  readonly feed: MessageFeed
  readonly taken: HeldMessage[]
  /** There is no room. */
  hold(isHolding: boolean): void
  /** The first `count` messages of a partition are acknowledged, up to this place. */
  acknowledge(source: MessageSource, partition: Partition, upTo: { count: number; position: number }): void
}

export function createHeldFeed(windowMax = 100): HeldFeed {
  const taken: HeldMessage[] = []
  let isHolding = false
  const feed: MessageFeed = {
    assign: (label, sender = noSender, holds = 'messages') => newPartition({ label, sender, holds }, 0),
    revoke: (partition) => void (partition.assigned = false),
    room: ({ assigned, taken: has, acked }) => (isHolding || !assigned ? 0 : windowMax - (has - acked)),
    take(partition, position, { bytes, redelivered }) {
      partition.taken += 1
      taken.push({ partition, position: position!, text: bytes.toString(), redelivered })
    },
  }
  return {
    feed,
    taken,
    hold: (is) => void (isHolding = is),
    acknowledge(source, partition, { count, position }) {
      partition.acked = count
      partition.lastAcked = position
      source.acknowledge(partition, position)
      source.flush(partition)
    },
  }
}
