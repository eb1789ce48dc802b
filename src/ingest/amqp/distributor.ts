// distributor.ts: for devices with several topics. RabbitMQ can hash the whole routing key, but not a part of
// it, so the topics of one device would come into different queues. Everything goes into one queue,
// PREFIX.inbox, and one gateway at a time distributes it: the device by `{device}` in `topics`, its queue by
// a hash. docs/decisions/0054 has what else was tried.
//
//   bind.exchange --keys--> PREFIX.inbox --(consume)--> gateway --(publish, confirm)--> PREFIX.0 ... PREFIX.n
//                                            <--(acknowledge, after the confirm)--'
//
// The inbox is acknowledged after the queues have the messages, in order. A gateway that is killed in between
// leaves messages in both: they come twice, in the same order. Where the connection to the queues is lost, or
// RabbitMQ refuses one, the inbox is closed, and all that was not confirmed comes again.
//
// It does not wait for the spool of this gateway: other gateways may have room.

import type { ConsumeMessage } from 'amqplib'
import { pause, type Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { noSender } from '../../domain/message.ts'
import type { AmqpFault } from './amqp-faults/amqp-faults.ts'
import type { LinkView, MessageFeed, Partition } from '../message-sources/message-sources.ts'
import { newPartition } from '../message-sources/partition.ts'
import { redeliveredHeader, routingKeyHeader } from './amqp-delivery.ts'
import type { EngineAlarms } from './engine-alarms.ts'
import { createConfirmedPublisher } from './confirmed-publisher.ts'
import type { QueueTakes } from './queue-topology/queue-depths.ts'
import { createQueueLink } from './queue-link/queue-link.ts'
import { inboxQueue, partitionOf, partitionQueues } from './queue-names.ts'
import type { Standstill } from './standstill.ts'
import type { TopicTranslation } from './topic-translation.ts'
import type { AmqpCredentials, AmqpOptions } from './types.ts'

export type Distributor = {
  start(): void
  /** Takes nothing more; what it has is still confirmed. */
  release(): void
  close(): Promise<void>
  view(): LinkView
  outstanding(): number
  takes(): QueueTakes
  /** Ends the connection to the inbox, and connects again. */
  fail(fault: AmqpFault): void
  /** Messages that were distributed, since the start. */
  distributed(): number
}

type Deps = {
  clock: Clock
  emit: Emit
  random: () => number
  topics: TopicTranslation
  credentials: AmqpCredentials
  alarms: EngineAlarms
  standstill: Pick<Standstill, 'look'>
  queueMissing: (queue: string | null) => void
}

/** For the last confirms at a stop. What has none comes again. */
const lastConfirmsMs = 1000
const never = new AbortController().signal

export function createDistributor(deps: Deps, options: AmqpOptions): Distributor {
  const { clock, emit, topics } = deps
  const { name: messageSource, member, window } = options
  const queue = inboxQueue(options.prefix)
  const queues = partitionQueues(options)
  /** Messages of the inbox without a confirm: their delivery tags, in order. */
  let tags: number[] = []
  /** Confirms that are still to come for messages of an inbox connection that has ended. */
  let stale = 0
  let current: Partition | null = null
  let distributed = 0
  /** The queues cannot be reached. */
  let publisherFault: AmqpFault | null = null
  let flushing = false
  let released = false

  const publisher = createConfirmedPublisher(
    {
      ...deps,
      opened() {
        publisherFault = null
        if (!released) link.want(window)
      },
      confirmed,
      failed(fault, retryInMs) {
        if (fault.reason === 'queue_missing') deps.queueMissing(null)
        link.want(0)
        publisherFault = fault
        const { reason, detail, act } = fault
        const hasLost = current !== null && tags.length > 0
        tags = []
        stale = 0
        if (hasLost) link.fail(fault)
        else
          emit({
            kind: 'message_source_lost',
            messageSource,
            clientId: label,
            reason,
            detail,
            act,
            retryInMs,
          })
      },
    },
    options,
    `${member}/${queue} to queues`,
  )
  const label = `${member}/${queue}`
  const feed: Pick<MessageFeed, 'assign' | 'revoke' | 'room'> = {
    assign(name) {
      current = newPartition({ label: name, sender: noSender, holds: 'messages' }, clock.monotonic())
      return current
    },
    revoke(partition) {
      partition.assigned = false
      if (current !== partition) return
      current = null
      stale += tags.length
      tags = []
    },
    room: (partition) => (partition === current && publisher.isOpen() ? window - tags.length : 0),
  }
  const link = createQueueLink({ ...deps, feed, take }, options, queue)

  function take(partition: Partition, { fields, properties, content }: ConsumeMessage): void {
    partition.taken += 1
    partition.lastTakenAtMs = clock.monotonic()
    tags.push(fields.deliveryTag)
    const { routingKey, redelivered } = fields
    // A message without a device is kept with others of its topic.
    const index = partitionOf(topics.deviceOf(routingKey) ?? routingKey, queues.length)
    const headers: Record<string, unknown> = { ...properties.headers, [routingKeyHeader]: routingKey }
    if (redelivered) headers[redeliveredHeader] = true
    publisher.publish(queues[index]!, content, headers)
  }

  function confirmed(all: number): void {
    const count = all - Math.min(stale, all)
    stale -= all - count
    if (count === 0 || current === null) return
    distributed += count
    current.acked += count
    current.lastAcked = tags[count - 1]!
    tags.splice(0, count)
    if (flushing) return
    flushing = true
    setImmediate(flush)
  }

  function flush(): void {
    flushing = false
    if (current === null) return
    link.acknowledge(current.lastAcked)
    link.flush()
  }

  return {
    start() {
      link.want(0)
      link.start()
      publisher.start()
    },
    release() {
      released = true
      link.release()
    },
    async close() {
      released = true
      link.release()
      const untilMs = clock.monotonic() + lastConfirmsMs
      while (tags.length > 0 && publisher.isOpen() && clock.monotonic() < untilMs)
        await pause(clock, lastConfirmsMs / 50, never)
      flush()
      await link.close()
      await publisher.close()
    },
    view() {
      // Its inbox is not read while the queues cannot be reached: that is a lost connection, and no pause.
      const own = { ...link.view(), isPausedLong: false }
      if (publisherFault === null) return own
      const { detail: lastFault, act: lastAct } = publisherFault
      return { ...own, state: 'waiting', lastFault, lastAct }
    },
    outstanding: () => tags.length,
    takes: link.takes,
    fail: link.fail,
    distributed: () => distributed,
  }
}
