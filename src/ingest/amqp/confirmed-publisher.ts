// confirmed-publisher.ts: puts messages into queues, and says in their order when RabbitMQ has them on the
// disks of most of its nodes (publisher confirms). One connection of its own, which connects again by itself.
//
// What is not confirmed when the connection ends is reported as failed, all of it at once: it may be in its
// queue, or not. So is a message that RabbitMQ refuses (a full queue) or that has no queue (`mandatory`):
// without that RabbitMQ confirms a message that it drops.

import type { ConfirmChannel } from 'amqplib'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import { openConfirmChannel, type AmqpConnection } from './amqp-connection.ts'
import type { AmqpFault } from './amqp-faults/amqp-faults.ts'
import type { EngineAlarms } from './engine-alarms.ts'
import { createNodeTurns } from './node-turns.ts'
import type { AmqpCredentials, AmqpOptions } from './types.ts'

export type ConfirmedPublisher = {
  start(): void
  isOpen(): boolean
  /** At most `windowMax` wait for their confirm; the caller counts. Only while it is open. */
  publish(queue: string, bytes: Buffer, headers: Record<string, unknown>): void
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  random: () => number
  credentials: AmqpCredentials
  opened: () => void
  /** So many further messages are safe, the oldest first. */
  confirmed: (count: number) => void
  /** The connection ended, or was not made. Of what was not confirmed nothing is known. */
  failed: (fault: AmqpFault, retryInMs: number) => void
  alarms: EngineAlarms
}

export function createConfirmedPublisher(
  deps: Deps,
  options: AmqpOptions,
  label: string,
): ConfirmedPublisher {
  const { clock, credentials, alarms } = deps
  const turns = createNodeTurns(deps, options)
  let connection: AmqpConnection<ConfirmChannel> | null = null
  let openedAtMs = 0
  /** Numbers of RabbitMQ: the next one, and the first that is not confirmed. */
  let nextTag = 1
  let firstTag = 1
  /** Confirmed out of their order: queues confirm independently of each other. */
  const early = new Set<number>()
  let cancelRetry: CancelTimer = () => {}
  let stopping = false

  function start(): void {
    if (stopping || connection !== null) return
    // It has no failure: ended() gets it.
    void open()
  }

  async function open(): Promise<void> {
    const made = await openConfirmChannel(clock, {
      options,
      credentials,
      node: turns.node(),
      label,
      queue: null,
      ended,
      blocked: (reason) => alarms.set(label, reason),
    })
    if (made === null) return
    if (stopping) return made.close()
    connection = made
    nextTag = 1
    firstTag = 1
    early.clear()
    const { channel } = made
    channel.on('ack', ({ deliveryTag, multiple }) => confirm(made, deliveryTag, multiple))
    channel.on('nack', () => refuse(made, 406, 'PRECONDITION_FAILED - the queue is full'))
    channel.on('return', ({ fields }) => refuse(made, 404, `NOT_FOUND - no queue '${fields.routingKey}'`))
    made.opened()
    openedAtMs = clock.monotonic()
    turns.opened()
    deps.opened()
  }

  function confirm(made: AmqpConnection, tag: number, multiple: boolean): void {
    if (connection !== made) return
    const before = firstTag
    if (multiple) {
      firstTag = Math.max(firstTag, tag + 1)
      for (const one of early) if (one < firstTag) early.delete(one)
    } else if (tag === firstTag) firstTag += 1
    else early.add(tag)
    while (early.delete(firstTag)) firstTag += 1
    if (firstTag > before) deps.confirmed(firstTag - before)
  }

  function refuse(made: AmqpConnection, code: number, words: string): void {
    if (connection !== made) return
    const fault = made.faultOf(
      Object.assign(new Error(`${code} (REFUSED) with message "${words}"`), { code }),
    )
    // It has no failure.
    void made.close()
    ended(fault)
  }

  function ended(fault: AmqpFault): void {
    const wasOpen = connection !== null
    connection = null
    alarms.set(label, null)
    if (stopping) return
    const retryInMs = turns.failed(fault, wasOpen ? clock.monotonic() - openedAtMs : null)
    deps.failed(fault, retryInMs)
    cancelRetry = clock.after(retryInMs, start)
  }

  return {
    start,
    isOpen: () => connection !== null,
    publish(queue, bytes, headers) {
      if (connection === null) return
      nextTag += 1
      try {
        connection.channel.publish('', queue, bytes, { persistent: true, mandatory: true, headers })
      } catch (error) {
        // The channel is closed, or a header cannot be written: what is not confirmed comes again.
        const made = connection
        // It has no failure.
        void made.close()
        ended(made.faultOf(error))
      }
    },
    async close() {
      stopping = true
      cancelRetry()
      alarms.set(label, null)
      const made = connection
      connection = null
      await made?.close()
    },
  }
}
