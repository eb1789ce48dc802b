// queue-consumer.ts: one connection that consumes from one queue, from the socket to its end: connection,
// channel, consumer and a partition of the feed live together. queue-link.ts makes the next one.
//
// RabbitMQ sends at most `prefetch` messages without an acknowledgement. What comes while there is no room
// waits here, so that is bounded by it, too.

import type { ConsumeMessage } from 'amqplib'
import type { Clock } from '../../../std/clock.ts'
import type { MessageFeed, Partition } from '../../message-sources/message-sources.ts'
import { openChannel, type AmqpConnection } from '../amqp-connection.ts'
import { AmqpEnd, type AmqpFault } from '../amqp-faults/amqp-faults.ts'
import { consumerPriority, priorityMax } from '../queue-names.ts'
import type { AmqpCredentials, AmqpNode, AmqpOptions } from '../types.ts'

export type QueueConsumer = {
  /** Monotonic, when the consumer was registered. */
  openedAtMs(): number | null
  /** Messages that were handed over and not acknowledged. */
  outstanding(): number
  /** Those that came and RabbitMQ has no acknowledgement for, with those that wait here. */
  open(): number
  /** How often there was none of them. */
  idles(): number
  /** There may be room again. */
  takeWaiting(): void
  /** All up to this position are durable. */
  acknowledge(position: number): void
  /** Nothing more is handed over, what was is still acknowledged. */
  discard(): void
  /** Nothing is acknowledged from here on; what was not, goes back to RabbitMQ at once. */
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  feed: Pick<MessageFeed, 'assign' | 'revoke' | 'room'>
  take: (partition: Partition, delivery: ConsumeMessage) => void
  /** One more came, and is not used yet. */
  delivered: () => void
  opened: () => void
  /** Once, for the first reason; not after close(). Nothing is acknowledged any more. */
  ended: (fault: AmqpFault) => void
}

type Request = {
  options: AmqpOptions
  credentials: AmqpCredentials
  node: AmqpNode
  queue: string
  /** For the list of connections of RabbitMQ. */
  label: string
  prefetch: number
}

/**
 * RabbitMQ before 4.0 gives a queue to its first consumer. Who prefers it less waits for up to this time, so
 * that gateways that start together share the queues.
 */
const spreadMs = 2000
/** Consumers with a higher priority get a queue. */
const prioritiesSinceVersion = 4000

export function createQueueConsumer(deps: Deps, request: Request): QueueConsumer {
  const { clock, feed, take, delivered } = deps
  const { options, queue, prefetch } = request
  const partition = feed.assign(queue)
  const priority = consumerPriority(options.member, queue)
  const ackTarget = { fields: { deliveryTag: 0 } }
  let connection: AmqpConnection | null = null
  let openedAtMs: number | null = null
  /** Delivered while there was no room, from `next`. */
  let waiting: ConsumeMessage[] = []
  let next = 0
  let idles = 0
  let isOver = false
  let isDiscarding = false

  // It has no failure: end() gets it.
  void connect()

  async function connect(): Promise<void> {
    const made = await openChannel(clock, { ...request, ended: end })
    if (made === null) return
    if (isOver) return made.close()
    connection = made
    try {
      if (made.version < prioritiesSinceVersion) await spread()
      if (isOver) return
      await made.channel.prefetch(prefetch)
      await made.channel.consume(queue, deliver, {
        consumerTag: options.member,
        arguments: { 'x-priority': priority },
      })
      if (isOver) return
      made.opened()
      openedAtMs = clock.monotonic()
      deps.opened()
    } catch (error) {
      end(made.faultOf(error))
    }
  }

  function spread(): Promise<void> {
    return new Promise((resolve) => {
      clock.after(spreadMs * (1 - priority / priorityMax), resolve)
    })
  }

  function deliver(delivery: ConsumeMessage | null): void {
    if (isOver) return
    if (delivery === null) return end(connection!.faultOf(new AmqpEnd('CANCELLED')))
    delivered()
    // After a standstill it may have ended by that.
    if (isOver || isDiscarding) return
    if (waiting.length > 0 || feed.room(partition) <= 0) waiting.push(delivery)
    else take(partition, delivery)
  }

  function takeWaiting(): void {
    if (waiting.length === 0 || isOver || isDiscarding) return
    // close() empties it.
    while (next < waiting.length && feed.room(partition) > 0) {
      const delivery = waiting[next]!
      next += 1
      take(partition, delivery)
    }
    if (next < waiting.length) return
    waiting = []
    next = 0
  }

  function open(): number {
    return partition.taken - partition.acked + waiting.length - next
  }

  function acknowledge(position: number): void {
    if (connection === null || isOver) return
    if (open() === 0) idles += 1
    ackTarget.fields.deliveryTag = position
    try {
      // It reads the tag alone.
      connection.channel.ack(ackTarget as ConsumeMessage, true)
    } catch (error) {
      // The channel is closed, and its event is still to come.
      end(connection.faultOf(error))
    }
  }

  function end(fault: AmqpFault): void {
    if (isOver) return
    // It has no failure.
    void close()
    deps.ended(fault)
  }

  function close(): Promise<void> {
    if (isOver) return Promise.resolve()
    isOver = true
    waiting = []
    next = 0
    feed.revoke(partition)
    return connection?.close() ?? Promise.resolve()
  }

  return {
    openedAtMs: () => openedAtMs,
    outstanding: () => partition.taken - partition.acked,
    open,
    idles: () => idles,
    takeWaiting,
    acknowledge,
    discard: () => void (isDiscarding = true),
    close,
  }
}
