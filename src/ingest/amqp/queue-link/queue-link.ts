// queue-link.ts: keeps the messages of one queue coming, over one connection at a time (queue-consumer.ts),
// and says why where they do not. The entry file of the folder.
//
//   waiting --(back-off)--> connecting --(consumer registered)--> connected --(lost)--> waiting
//                                                                   |  ^
//                                   (no room for seconds: close)    v  | (room again)
//                                                                   paused
//
// One connection for each queue, because RabbitMQ ends the whole connection where it cannot send a message:
// the other queues must not wait for one device. After such an end messages are taken one by one, so that
// those before it come. Nodes of a cluster are tried one after the other; the back-off begins when all have
// failed.
//
// A return of messages is one close of the channel: RabbitMQ counts each return of a message, and keeps the
// order of what comes back at the same time. With custody `delivered` a link that pauses stays open while
// messages of it wait for their answer, and no other gateway gets the queue: it would get later messages
// first. RabbitMQ sends nothing more when `prefetch` messages are open. When nothing that was handed over is
// open any more, the link is closed.
//
// Stop: release() takes nothing more; close() writes the last acknowledgements and closes.

import type { ConsumeMessage } from 'amqplib'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import { createLinkStatus } from '../../message-sources/link-status.ts'
import type { LinkView, MessageFeed, Partition } from '../../message-sources/message-sources.ts'
import { nodeText } from '../amqp-address.ts'
import { notStored, wasSilent, type AmqpFault } from '../amqp-faults/amqp-faults.ts'
import { createNodeTurns } from '../node-turns.ts'
import { createQueueConsumer, type QueueConsumer } from './queue-consumer.ts'
import { consumerPriority } from '../queue-names.ts'
import type { QueueTakes } from '../queue-topology/queue-depths.ts'
import type { Standstill } from '../standstill.ts'
import type { AmqpCredentials, AmqpOptions } from '../types.ts'

export type QueueLink = {
  readonly queue: string
  start(): void
  want(messages: number): void
  acknowledge(position: number): void
  flush(): void
  giveBack(): void
  /** The same for another reason. */
  fail(fault: AmqpFault): void
  reconnect(): void
  release(): void
  close(): Promise<void>
  view(): LinkView
  /** Messages that were handed over and not acknowledged. */
  outstanding(): number
  takes(): QueueTakes
}

type Deps = {
  clock: Clock
  emit: Emit
  random: () => number
  feed: Pick<MessageFeed, 'assign' | 'revoke' | 'room'>
  /** Hands a delivery over. */
  take: (partition: Partition, delivery: ConsumeMessage) => void
  /** Read for each connection. */
  credentials: AmqpCredentials
  standstill: Pick<Standstill, 'look'>
  /** RabbitMQ says that the queue does not exist. */
  queueMissing: (queue: string | null) => void
}

/** Messages that must come one by one before RabbitMQ sends the whole window again. */
const carefulMessages = 2000

export function createQueueLink(deps: Deps, options: AmqpOptions, queue: string): QueueLink {
  const { clock, feed, credentials, standstill } = deps
  const { name: messageSource, member } = options
  const clientId = `${member}/${queue}`
  const status = createLinkStatus(deps, { messageSource, clientId })
  /** The members and queues begin at different nodes. */
  const turns = createNodeTurns(deps, options, consumerPriority(member, queue))
  let consumer: QueueConsumer | null = null
  let wanted = 0
  /** Messages that came, over all connections. */
  let deliveries = 0
  /** Of these the next one may be what RabbitMQ cannot send. */
  let carefulFor = 0
  let isCareful = false
  let cancelRetry: CancelTimer = () => {}
  let cancelPause: CancelTimer | null = null
  let stopping = false

  return {
    queue,
    start: connect,
    want,
    acknowledge: (position) => consumer?.acknowledge(position),
    flush,
    giveBack: () => endNow(notStored),
    fail: endNow,
    reconnect() {
      turns.reset()
      endNow(wasSilent)
    },
    release,
    close,
    view: status.view,
    outstanding: () => consumer?.outstanding() ?? 0,
    takes: () => ({ consumer, deliveries, open: consumer?.open() ?? 0, idles: consumer?.idles() ?? 0 }),
  }

  // ---- connecting

  function connect(): void {
    if (stopping || consumer !== null) return
    if (wanted === 0) {
      // Nothing could be taken in. `want` continues.
      status.set('paused')
      cancelPause ??= clock.after(options.pauseAfterMs, reportPaused)
      return
    }
    status.set('connecting')
    isCareful = carefulFor > 0
    const made: QueueConsumer = createQueueConsumer(
      {
        clock,
        feed,
        take,
        delivered,
        opened,
        ended: (fault) => ended(made, fault),
      },
      {
        options,
        credentials,
        node: turns.node(),
        queue,
        label: clientId,
        prefetch: isCareful ? 1 : options.window,
      },
    )
    consumer = made
  }

  function opened(): void {
    turns.opened()
    status.connected(nodeText(turns.node()))
    want(wanted)
  }

  // ---- messages

  function delivered(): void {
    deliveries += 1
    standstill.look()
  }

  function take(partition: Partition, delivery: ConsumeMessage): void {
    if (carefulFor > 0) carefulFor -= 1
    deps.take(partition, delivery)
    status.took(partition.lastTakenAtMs)
  }

  function flush(): void {
    consumer?.takeWaiting()
    // RabbitMQ sends without an error again: the next consumer gets the whole window.
    if (consumer === null || consumer.outstanding() > 0) return
    if (status.state() === 'paused') leave(consumer)
    else if (isCareful && carefulFor === 0) reopen(consumer)
  }

  function reopen(made: QueueConsumer): void {
    isCareful = false
    consumer = null
    // It has no failure.
    void made.close().then(connect)
  }

  // ---- room

  function want(count: number): void {
    wanted = count
    if (count > 0) {
      keep()
      if (status.state() !== 'paused') consumer?.takeWaiting()
      else if (consumer === null) connect()
      else resume()
    } else if ((status.state() === 'connected' || status.state() === 'connecting') && !stopping)
      cancelPause ??= clock.after(options.pauseAfterMs, pauseLink)
  }

  function keep(): void {
    cancelPause?.()
    cancelPause = null
  }

  function pauseLink(): void {
    cancelPause = null
    const made = consumer
    if (made === null || stopping) return
    status.set('paused')
    reportPaused()
    // What was submitted must stay here until it has its answer.
    if (options.custody === 'spool' || made.outstanding() === 0) leave(made)
  }

  /** Another gateway may have the queue. `want` connects again. */
  function leave(made: QueueConsumer): void {
    consumer = null
    // It has no failure.
    void made.close()
  }

  function resume(): void {
    status.connected(nodeText(turns.node()))
    consumer?.takeWaiting()
  }

  function reportPaused(): void {
    cancelPause = null
    status.reportPaused()
  }

  // ---- the end of a connection

  function endNow(fault: AmqpFault): void {
    const made = consumer
    if (made === null) return
    // It has no failure.
    void made.close()
    ended(made, fault)
  }

  function ended(made: QueueConsumer, fault: AmqpFault): void {
    if (consumer !== made) return
    consumer = null
    keep()
    if (stopping) return
    const openedAtMs = made.openedAtMs()
    if (fault.reason === 'undeliverable_message') carefulFor = carefulMessages
    if (fault.reason === 'queue_missing') deps.queueMissing(queue)
    const retryInMs = turns.failed(fault, openedAtMs === null ? null : clock.monotonic() - openedAtMs)
    status.lost(fault, retryInMs)
    cancelRetry = clock.after(retryInMs, connect)
  }

  // ---- stop

  function release(): void {
    stopping = true
    cancelRetry()
    keep()
    consumer?.discard()
  }

  async function close(): Promise<void> {
    release()
    const made = consumer
    consumer = null
    await made?.close()
    status.released('engine')
  }
}
