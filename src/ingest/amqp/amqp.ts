// amqp.ts: takes messages from RabbitMQ by AMQP 0-9-1, as one of several gateways. The entry file of the
// folder.
//
// Promises
//   A message is acknowledged after the fsync of the group that holds it. What was not acknowledged when a
//   gateway or a connection ends is delivered again, to another gateway if there is one. The messages of a
//   queue go to one gateway at a time and keep their order; a device has one queue. A RabbitMQ that is not
//   reachable, refuses, or is silent stops nothing else, and is a condition.
//
// How
//   queue-link            one queue: connects with back-off, consumes, acknowledges, gives back
//   topology-link.ts      declares or checks queues, exchange, bindings (queue-topology.ts); asks for depths
//   member-name.ts        notices another gateway with the same name, and alarms (engine-alarms.ts)
//   amqp-connection.ts    a connection with a channel of amqplib; node-turns.ts: to which node, and when
//   amqp-delivery.ts      a delivery as a message; topic-translation.ts: its topic
//   distributor.ts        devices with several topics: distributes them over the queues, with publisher
//                         confirms (confirmed-publisher.ts)
//   entry-store.ts        custody delivered: what is parked, and copies of dead letters
//   queue-names.ts        names, and which gateway prefers which queue
//   amqp-faults.ts        each fault in words: the cause, and what a person can do
//   amqp-check.ts         tries a bridge for `check --connect`
//   amqp-config.ts        the options; amqp-address.ts: of nodes
//
// Quorum queues with a single active consumer: RabbitMQ delivers a queue to one consumer. Each gateway
// consumes from all queues, and prefers some (x-priority by a hash of gateway and queue). RabbitMQ 4.0 moves
// a queue to the gateway that prefers it, after the one before has acknowledged what it had. RabbitMQ 3.10
// leaves it where it is until that gateway is gone.
//
// What can go wrong, and what then happens
//   the spool is full, the disk low   nothing is handed over. After 2 s each queue is closed once: RabbitMQ
//                                     gives what was open to another gateway, or keeps it (`paused`)
//   the process stood still for 20 s  what is not stored is dropped, and each queue is connected again
//                                     (standstill.ts)
//   a write fails                     the queue is closed, and RabbitMQ delivers again
//   a node or the network is gone     amqplib notices by heartbeat in 30 s; the next node, then back-off
//   RabbitMQ refuses something        a condition with its words and the command; the next try with back-off
//   an alarm of memory or disk        RabbitMQ takes nothing of the devices: a condition (ENGINE_BLOCKED)
//   a queue is not bound              RabbitMQ acknowledges and drops. With provision: true it is bound again
//                                     within a minute; without, `check` and the start warn
//   a message is too large            a dead letter, acknowledged, so that those behind it come
//   a topic has more than 255 bytes   RabbitMQ takes it by MQTT and cannot send it by AMQP: it ends the
//                                     connection. The queue goes on one by one up to it; then a condition
//                                     says how to remove it. Other queues do not wait
//   two gateways have one name        a condition (member_twice). Nothing comes twice by it, but RabbitMQ
//                                     does not share the queues between the two
//   a gateway is killed               RabbitMQ notices the end of its connections, and gives what was open
//                                     to the next gateway
//
// Second effects: what a gateway had stored and not acknowledged comes again, perhaps to another one. With a
// device time its payload has the same payloadId: the dedup window collapses it in one gateway, the service
// counts it between two.

import type { ConsumeMessage } from 'amqplib'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type {
  MessageFeed,
  MessageSource,
  Partition,
  PartitionView,
} from '../message-sources/message-sources.ts'
import { nodesText } from './amqp-address.ts'
import { EngineLosses } from '../message-sources/engine-losses.ts'
import { SourceRisks } from '../message-sources/source-risks.ts'
import { emptyMessage } from '../message-sources/source-message.ts'
import { readDelivery } from './amqp-delivery.ts'
import { EngineAlarms } from './engine-alarms.ts'
import { createDistributor } from './distributor.ts'
import { createEntryStore } from './entry-store.ts'
import { inboxQueue, parkedQueue, partitionQueues } from './queue-names.ts'
import { createQueueLink, type QueueLink } from './queue-link/queue-link.ts'
import { createTopicTranslation } from './topic-translation.ts'
import { stoodStill } from './amqp-faults/amqp-faults.ts'
import { heartbeatMs } from './amqp-connection.ts'
import { Standstill } from './standstill.ts'
import { createMemberName } from './queue-topology/member-name.ts'
import type { QueueTakes } from './queue-topology/queue-depths.ts'
import { createTopologyLink } from './queue-topology/topology-link.ts'
import type { AmqpCredentials, AmqpOptions } from './types.ts'

export { checkAmqpBridge } from './amqp-check.ts'
export type { AmqpOptions } from './types.ts'

export type AmqpDeps = { clock: Clock; emit: Emit; random: () => number }

export type AmqpBridge = MessageSource & { renew(credentials: AmqpCredentials): void }

/** RabbitMQ ends a connection after two heartbeats. */
const standstillMs = 2 * heartbeatMs
/** A queue whose last message is younger has its consumer here. */
const activeForMs = 30_000

export function createAmqpBridge(deps: AmqpDeps, options: AmqpOptions): AmqpBridge {
  const { clock } = deps
  const links: QueueLink[] = []
  const linkOf = new WeakMap<Partition, QueueLink>()
  const roles = new Map<QueueLink, PartitionView['role']>()
  const credentials: AmqpCredentials = {
    userName: options.userName,
    password: options.password,
    tls: options.tls,
  }
  const topics = createTopicTranslation(options.topics)
  const standstill = new Standstill(clock, { limitMs: standstillMs }, (stoodMs) => {
    for (const link of links) link.fail(stoodStill(stoodMs))
    distributor?.fail(stoodStill(stoodMs))
  })
  const risks = new SourceRisks(deps, options.name)
  const alarms = new EngineAlarms()
  const lost = new EngineLosses({ ...deps, risks }, options)
  const topology = createTopologyLink(
    { ...deps, risks, lost, takesOf, credentials, asked: noteRoles },
    options,
  )
  const memberName = createMemberName({ ...deps, risks, alarms, credentials }, options)
  let wanted = 0
  let stopping = false

  const distributor =
    options.partitionBy.kind === 'device'
      ? createDistributor(
          { ...deps, alarms, standstill, topics, credentials, queueMissing: topology.missing },
          options,
        )
      : null

  const isDelivered = options.custody === 'delivered'
  const entries = isDelivered
    ? createEntryStore({ ...deps, alarms, credentials, queueMissing: topology.missing }, options)
    : null

  function start(feed: MessageFeed): void {
    const take = createReader(feed)
    const parked = isDelivered ? [parkedQueue(options.prefix)] : []
    for (const queue of [...partitionQueues(options), ...parked]) {
      const linkFeed: MessageFeed = {
        ...feed,
        assign(label, sender) {
          const partition = feed.assign(label, sender, parked.includes(queue) ? 'parked' : 'messages')
          linkOf.set(partition, link)
          return partition
        },
      }
      const link: QueueLink = createQueueLink(
        { ...deps, feed: linkFeed, take, standstill, credentials, queueMissing: topology.missing },
        options,
        queue,
      )
      links.push(link)
      link.want(wanted)
    }
    topology.start(() => {
      if (stopping) return
      for (const link of links) link.start()
      distributor?.start()
      entries?.start()
      memberName.start()
    })
  }

  /** One message object for all of them. */
  function createReader(feed: MessageFeed): (partition: Partition, delivery: ConsumeMessage) => void {
    const message = emptyMessage()
    const reading = { topicOf: topics.topicOf, messageBytesMax: options.messageBytesMax }
    // A parked entry is larger than the message in it, and a gateway has written it.
    const readingParked = { ...reading, messageBytesMax: Infinity }
    return (partition, delivery) => {
      const from = partition.holds === 'parked' ? readingParked : reading
      feed.take(partition, delivery.fields.deliveryTag, readDelivery(delivery, message, from))
    }
  }

  function takesOf(queue: string): QueueTakes {
    const link = queue === inboxQueue(options.prefix) ? distributor : links.find((one) => one.queue === queue)
    return link?.takes() ?? { consumer: null, deliveries: 0, open: 0, idles: 0 }
  }

  /** AMQP does not say which consumer is the active one, and counts no other one. */
  function noteRoles(): void {
    for (const link of links) {
      const { state, lastMessageMs } = link.view()
      const depth = topology.depthOf(link.queue)
      const isRecent = lastMessageMs !== null && clock.monotonic() - lastMessageMs < activeForMs
      if (state !== 'connected') roles.set(link, null)
      else if (isRecent) roles.set(link, 'active')
      else if (depth !== null && depth.messages > 0 && link.outstanding() === 0) roles.set(link, 'standby')
    }
  }

  function partitionViews(): PartitionView[] {
    return links.slice(0, options.partitions).map((link) => ({
      partition: link.queue,
      member: options.member,
      role: roles.get(link) ?? null,
      outstanding: link.outstanding(),
      lag: topology.depthOf(link.queue)?.messages ?? null,
    }))
  }

  return {
    name: options.name,
    kind: 'amqp',
    traits: {
      ackKind: 'up_to',
      partitioned: true,
      windowMax: options.window,
      holdMs: null,
      redelivers: 'on_close',
    },
    start,
    renew({ userName, password, tls }) {
      Object.assign(credentials, { userName, password, tls })
    },
    want(messages) {
      wanted = messages
      for (const link of links) link.want(messages)
    },
    acknowledge: (partition, position) => linkOf.get(partition)?.acknowledge(position),
    flush: (partition) => linkOf.get(partition)?.flush(),
    giveBack: (partition) => linkOf.get(partition)?.giveBack(),
    reconnect(clientId) {
      for (const link of links) if (clientId === null || link.view().clientId === clientId) link.reconnect()
    },
    ...(entries !== null && {
      custody: { store: entries.store },
    }),
    async release() {
      stopping = true
      for (const link of links) link.release()
      distributor?.release()
    },
    async close() {
      stopping = true
      risks.close()
      standstill.close()
      await Promise.all([
        topology.close(),
        distributor?.close(),
        entries?.close(),
        memberName.close(),
        ...links.map((link) => link.close()),
      ])
    },
    *states() {
      yield* risks.states()
      yield* alarms.states(options.name)
    },
    view: () => {
      const partitions = partitionViews()
      const inbox = topology.depthOf(inboxQueue(options.prefix))?.messages ?? null
      const lags = [...partitions.map(({ lag }) => lag), inbox].filter((lag) => lag !== null)
      return {
        url: nodesText(options.nodes),
        links: [...links.map((link) => link.view()), ...(distributor === null ? [] : [distributor.view()])],
        partitions,
        lag: lags.length === 0 ? null : lags.reduce((sum, lag) => sum + lag, 0),
        lost: lost.total(),
        retainedIgnored: 0,
      }
    },
  }
}
