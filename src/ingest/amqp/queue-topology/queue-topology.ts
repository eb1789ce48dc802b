// queue-topology.ts: what must exist in RabbitMQ, as steps on a channel. Each step can be done again at any
// time. In this order: a queue exists before something is bound to it, and an exchange has its queues before
// messages come to it. topology-link.ts does the steps; member-name.ts has a queue for the name of this
// gateway. The entry file of the folder.
//
//   one queue      bind.exchange --keys--> PREFIX.0
//   topic, header  bind.exchange --keys--> PREFIX.by-topic --hash--> PREFIX.0 ... PREFIX.n
//   device         bind.exchange --keys--> PREFIX.inbox --(gateway)--> PREFIX.0 ... PREFIX.n
//
// queues-beyond.ts looks for queues that a larger number of partitions left, queue-depths.ts says what
// RabbitMQ removed of what waited.
//
// Without `provision` the steps only look. AMQP cannot list bindings, so they stay unknown.

import type { Channel, Options } from 'amqplib'
import { deadQueue, hashExchange, inboxQueue, parkedQueue, partitionQueues } from '../queue-names.ts'
import type { AmqpOptions } from '../types.ts'

export type TopologyStep = {
  /** Queue or exchange. */
  name: string
  kind: 'queue' | 'exchange' | 'binding'
  /** Rejects, and the channel is closed, where RabbitMQ refuses it. */
  run(channel: Channel): Promise<unknown>
  /** It sees other arguments, and changes nothing. */
  compares: boolean
  /** A command that does it; null where nothing is to be done. */
  command: string | null
}

/**
 * RabbitMQ 4.0 gives a message up after 20 returns by default, and a gateway returns messages in each outage.
 * Without a limit (-1) it puts what a consumer gives back behind all else in the queue; with a limit before
 * it. So the limit is one that no message reaches. Older ones have no limit by default.
 */
const returnsMax = 1_000_000_000
const limitedSinceVersion = 4000
/** Older ones do not know it as an argument. */
const timeoutSinceVersion = 3012
/**
 * With `custody: delivered` a batch may wait for its answer for days. The same for both, so that custody may
 * change.
 */
const consumerTimeoutMs = 7 * 86_400_000

export function provisionSteps(options: AmqpOptions, version: number): TopologyStep[] {
  return [...queueSteps(options, version), ...bindingSteps(options), ...formerLayout(options)]
}

/** What must be there without `provision`. */
export function checkSteps(options: AmqpOptions, version: number): TopologyStep[] {
  const queues = queueSteps(options, version).filter(({ name }) => isNeeded(options, name))
  const exchanges = [options.exchange, ...(usesHash(options) ? [hashExchange(options)] : [])]
  return [
    ...queues.map(({ name, command }): TopologyStep => ({
      name,
      kind: 'queue',
      compares: false,
      run: (channel) => channel.checkQueue(name),
      command,
    })),
    ...exchanges.map((name): TopologyStep => ({
      name,
      kind: 'exchange',
      compares: false,
      run: (channel) => channel.checkExchange(name),
      command: exchangeCommand(options, name),
    })),
    // Those that exist are declared as they are: nothing changes. It needs the right to configure.
    ...queues.map((step) => ({ ...step, compares: true })),
  ]
}

function isNeeded({ prefix }: AmqpOptions, queue: string): boolean {
  return queue !== deadQueue(prefix) && queue !== parkedQueue(prefix)
}

export function usesHash({ partitions, partitionBy }: AmqpOptions): boolean {
  return partitions > 1 && partitionBy.kind !== 'device'
}

export function usesInbox({ partitionBy }: Pick<AmqpOptions, 'partitionBy'>): boolean {
  return partitionBy.kind === 'device'
}

function queueSteps(options: AmqpOptions, version: number): TopologyStep[] {
  const { prefix } = options
  const names = [
    deadQueue(prefix),
    parkedQueue(prefix),
    ...(usesInbox(options) ? [inboxQueue(prefix)] : []),
    ...partitionQueues(options),
  ]
  return names.map((name) => {
    const args = queueArguments(options, name, version)
    return {
      name,
      kind: 'queue',
      compares: false,
      run: (channel) => channel.assertQueue(name, { durable: true, arguments: args }),
      command: `${declares(options)} queue name=${name} durable=true arguments='${JSON.stringify(args)}'`,
    }
  })
}

/** They cannot be changed later, other than by a policy. */
export function queueArguments(
  { prefix, queueMessagesMax }: AmqpOptions,
  queue: string,
  version: number,
): Record<string, unknown> {
  const kept = {
    'x-queue-type': 'quorum',
    ...(version >= limitedSinceVersion && { 'x-delivery-limit': returnsMax }),
  }
  // A person looks at it, and puts back what was read, perhaps often.
  if (queue === deadQueue(prefix)) return kept
  return {
    ...kept,
    'x-single-active-consumer': true,
    'x-dead-letter-exchange': '',
    'x-dead-letter-routing-key': deadQueue(prefix),
    ...(queueMessagesMax !== null && { 'x-max-length': queueMessagesMax, 'x-overflow': 'reject-publish' }),
    ...(version >= timeoutSinceVersion && { 'x-consumer-timeout': consumerTimeoutMs }),
  }
}

function bindingSteps(options: AmqpOptions): TopologyStep[] {
  const { exchange, keys, prefix } = options
  if (!usesHash(options)) {
    const queue = usesInbox(options) ? inboxQueue(prefix) : partitionQueues(options)[0]!
    return keys.map((key) => ({
      name: queue,
      kind: 'binding',
      compares: false,
      run: (channel) => channel.bindQueue(queue, exchange, key),
      command: bindCommand(options, { source: exchange, destination: queue, key, type: 'queue' }),
    }))
  }
  const hash = hashExchange(options)
  return [
    {
      name: hash,
      kind: 'exchange',
      compares: false,
      run: (channel) =>
        channel.assertExchange(hash, 'x-consistent-hash', { durable: true, ...hashArguments(options) }),
      command: exchangeCommand(options, hash),
    },
    ...partitionQueues(options).map((queue): TopologyStep => ({
      name: queue,
      kind: 'binding',
      compares: false,
      // The key is the weight.
      run: (channel) => channel.bindQueue(queue, hash, '1'),
      command: bindCommand(options, { source: hash, destination: queue, key: '1', type: 'queue' }),
    })),
    ...keys.map((key): TopologyStep => ({
      name: hash,
      kind: 'binding',
      compares: false,
      run: (channel) => channel.bindExchange(hash, exchange, key),
      command: bindCommand(options, { source: exchange, destination: hash, key, type: 'exchange' }),
    })),
  ]
}

/** The exchange of another `partition_by` would deliver each message a second time. */
function formerLayout(options: AmqpOptions): TopologyStep[] {
  const { prefix } = options
  const former = (['topic', 'header'] as const)
    .map((kind) => hashExchange({ prefix, partitionBy: { kind, header: '' } }))
    .filter((name) => !usesHash(options) || name !== hashExchange(options))
  return former.map((name) => ({
    name,
    kind: 'exchange',
    compares: false,
    run: (channel) => channel.deleteExchange(name),
    command: null,
  }))
}

function hashArguments({ partitionBy }: AmqpOptions): Options.AssertExchange {
  return partitionBy.kind === 'header' ? { arguments: { 'hash-header': partitionBy.header } } : {}
}

function exchangeCommand(options: AmqpOptions, name: string): string {
  if (name === options.exchange) return `${declares(options)} exchange name=${name} type=topic`
  const { arguments: args = {} } = hashArguments(options)
  return `${declares(options)} exchange name=${name} type=x-consistent-hash arguments='${JSON.stringify(args)}'`
}

/** It logs in as guest, unless it gets --username and --password. */
function declares({ vhost }: AmqpOptions): string {
  return `rabbitmqadmin${vhost === '/' ? '' : ` --vhost='${vhost}'`} declare`
}

function bindCommand(
  options: AmqpOptions,
  binding: { source: string; destination: string; key: string; type: string },
): string {
  const { source, destination, key, type } = binding
  return (
    `${declares(options)} binding source=${source} destination_type=${type} destination=${destination} ` +
    `routing_key='${key}'`
  )
}
