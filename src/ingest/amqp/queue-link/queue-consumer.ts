// queue-consumer.ts: one connection that consumes from one queue, from the socket to its end: connection,
// channel, consumer and a partition of the feed live together. queue-link.ts makes the next one.
//
// RabbitMQ sends at most `prefetch` messages without an acknowledgement. What comes while there is no room
// waits here, so that is bounded by it, too.
//
// Giving a part back. Closing the channel gives all of it back, in order. To keep what comes first, another
// consumer of the same channel is registered, with a higher priority. RabbitMQ 4.0 lets the active one finish
// then (it is `quiescing`): it sends nothing more to it, and nothing to any other consumer, until all that it
// has is acknowledged or given back. Only then each message behind the position is given back, one by one;
// whichever consumer comes next gets them before later ones. Not done, because the order would break:
//   cancel, then give back   the cancel makes another gateway active, which gets later messages first
//   give back, then cancel   RabbitMQ sends them to the same consumer again at once
// RabbitMQ 3.10 never stops an active consumer for another one, so there a part cannot be given back.

import type { ConsumeMessage } from 'amqplib'
import type { Clock } from '../../../std/clock.ts'
import type { MessageFeed, Partition } from '../../message-sources/message-sources.ts'
import { openChannel, type AmqpConnection } from '../amqp-connection.ts'
import { AmqpEnd, type AmqpFault } from '../amqp-faults/amqp-faults.ts'
import { consumerPriority, priorityMax } from '../queue-names.ts'
import { createRedeliveredOrder } from './redelivered-order.ts'
import type { AmqpCredentials, AmqpNode, AmqpOptions } from '../types.ts'

export type QueueConsumer = {
  /** Monotonic, when the consumer was registered. */
  openedAtMs(): number | null
  /** Messages that were handed over and not acknowledged. */
  outstanding(): number
  /** There may be room again. */
  takeWaiting(): void
  /** All up to this position are durable. */
  acknowledge(position: number): void
  /** Nothing more is handed over, what was is still acknowledged. */
  discard(): void
  /**
   * Gives back what is behind `position`, and takes nothing more. What is before, at least one message, stays
   * open here: no other gateway gets anything of the queue until it is acknowledged. Not before RabbitMQ 4.0.
   */
  suspend(position: number): void
  isSuspended(): boolean
  /** Consumes again after it. */
  resume(): void
  /** False where RabbitMQ cannot do `suspend`. */
  maySuspend(): boolean
  /** Nothing is acknowledged from here on; what was not, goes back to RabbitMQ at once. */
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  feed: Pick<MessageFeed, 'assign' | 'revoke' | 'room'>
  take: (partition: Partition, delivery: ConsumeMessage) => void
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
  const { clock, feed, take } = deps
  const { options, queue, prefetch } = request
  const partition = feed.assign(queue)
  const priority = consumerPriority(options.member, queue)
  /** With custody `spool` all is given back at once, in its order. */
  const isOrdered = options.custody === 'delivered' && partition.holds === 'messages'
  const ackTarget = { fields: { deliveryTag: 0 } }
  let connection: AmqpConnection | null = null
  let openedAtMs: number | null = null
  /** Delivered while there was no room, from `next`. */
  let waiting: ConsumeMessage[] = []
  let next = 0
  /** The last one that came. */
  let lastTag = 0
  let registered = 0
  let consumerTag = ''
  let isOver = false
  let isDiscarding = false
  /** Consumers that take nothing more: what still comes for them is given back. */
  const stopped = new Set<string>()
  /** While it is suspended: the answer to the registration of the next consumer. */
  let suspended: Promise<void> | null = null
  /** RabbitMQ has not stopped yet: what comes is given back with the others. */
  let isStopping = false

  const order = createRedeliveredOrder(clock, prefetch, (deliveries) => {
    for (const delivery of deliveries) waiting.push(delivery)
    takeWaiting()
  })

  // It has no failure: end() gets it.
  void open()

  async function open(): Promise<void> {
    const made = await openChannel(clock, { ...request, ended: end })
    if (made === null) return
    if (isOver) return made.close()
    connection = made
    try {
      if (made.version < prioritiesSinceVersion) await spread()
      if (isOver) return
      await made.channel.prefetch(prefetch)
      await consume(made)
      if (isOver) return
      made.opened()
      openedAtMs = clock.monotonic()
      deps.opened()
    } catch (error) {
      end(made.faultOf(error))
    }
  }

  async function consume({ channel }: AmqpConnection): Promise<void> {
    registered += 1
    consumerTag = registered === 1 ? options.member : `${options.member}-${registered}`
    await channel.consume(queue, deliver, {
      consumerTag,
      // Higher than the one before it; what it is higher by decides nothing between members.
      arguments: { 'x-priority': priority + registered - 1 },
    })
  }

  function spread(): Promise<void> {
    return new Promise((resolve) => {
      clock.after(spreadMs * (1 - priority / priorityMax), resolve)
    })
  }

  function deliver(delivery: ConsumeMessage | null): void {
    if (isOver) return
    if (delivery === null) return end(connection!.faultOf(new AmqpEnd('CANCELLED')))
    lastTag = delivery.fields.deliveryTag
    if (isDiscarding) return
    if (stopped.has(delivery.fields.consumerTag ?? '')) {
      if (!isStopping) giveBack(connection!, lastTag)
    } else if (isOrdered && order.keeps(delivery)) return
    else if (waiting.length > 0 || feed.room(partition) <= 0) waiting.push(delivery)
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

  function dropWaiting(): void {
    waiting = []
    next = 0
    order.drop()
  }

  function acknowledge(position: number): void {
    if (connection === null || isOver) return
    const { single, upTo } = order.acknowledge(position)
    try {
      for (const tag of single) acknowledgeTag(connection, tag, false)
      if (upTo !== null) acknowledgeTag(connection, upTo, true)
    } catch (error) {
      // The channel is closed, and its event is still to come.
      end(connection.faultOf(error))
    }
  }

  function acknowledgeTag({ channel }: AmqpConnection, tag: number, isUpTo: boolean): void {
    ackTarget.fields.deliveryTag = tag
    // It reads the tag alone.
    channel.ack(ackTarget as ConsumeMessage, isUpTo)
  }

  function suspend(position: number): void {
    const made = connection
    if (made === null || isOver || suspended !== null) return
    dropWaiting()
    stopped.add(consumerTag)
    isStopping = true
    suspended = consume(made)
    suspended.then(
      () => {
        isStopping = false
        for (let open = position + 1, last = lastTag; open <= last; open += 1)
          giveBack(made, order.tagOf(open))
      },
      (error: unknown) => end(made.faultOf(error)),
    )
  }

  function giveBack({ channel, faultOf }: AmqpConnection, tag: number): void {
    if (isOver) return
    ackTarget.fields.deliveryTag = tag
    try {
      // It reads the tag alone.
      channel.nack(ackTarget as ConsumeMessage, false, true)
    } catch (error) {
      end(faultOf(error))
    }
  }

  /** The next consumer goes on; what the stopped one has is still acknowledged. */
  function resume(): void {
    const made = connection
    if (made === null || isOver || suspended === null) return
    const after = suspended
    suspended = null
    for (const tag of stopped)
      after
        .then(() => made.channel.cancel(tag))
        .then(
          () => stopped.delete(tag),
          (error: unknown) => end(made.faultOf(error)),
        )
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
    dropWaiting()
    feed.revoke(partition)
    return connection?.close() ?? Promise.resolve()
  }

  return {
    openedAtMs: () => openedAtMs,
    outstanding: () => partition.taken - partition.acked,
    takeWaiting,
    acknowledge,
    discard: () => void (isDiscarding = true),
    suspend,
    isSuspended() {
      return suspended !== null
    },
    resume,
    maySuspend() {
      return connection === null || connection.version >= prioritiesSinceVersion
    },
    close,
  }
}
