// amqp-config.ts: the config of a bridge to RabbitMQ: one kind of `ingest.bridges[]`.

import { hostname } from 'node:os'
import { z } from 'zod'
import { secret } from '../../std/schema.ts'
import { checkDeviceFilter, deviceLevel, plainFilter } from '../bridges/bridge-address.ts'
import type { BridgeWarning } from '../bridges/bridge-config.ts'
import {
  bridgeNameSchema,
  bridgeTlsSchema,
  memberSchema,
  messageBytesSchema,
  timeFields,
  timeOptions,
  tlsOptions,
  unheardMs,
  windowSchema,
} from '../bridges/bridge-fields.ts'
import { custodyFields } from '../custody/custody-config.ts'
import { nodesText, parseNode } from './amqp-address.ts'
import { filterOfKey } from './topic-translation.ts'
import type { AmqpNode, AmqpOptions, PartitionRule } from './types.ts'

const nodesSchema = z
  .union([z.string(), z.array(z.string()).min(1).max(16)])
  .transform((given, context): readonly AmqpNode[] => {
    const texts = [given].flat()
    const nodes = texts.map(parseNode)
    const valid = nodes.filter((node) => typeof node !== 'string')
    const refuse = (message: string, path: (string | number)[]) =>
      context.addIssue({ code: 'custom', message, path, params: { otherKind: isOther } })
    const isOther = texts.every((text) => !/^amqps?:/.test(text))
    for (const [index, node] of nodes.entries())
      if (typeof node === 'string') refuse(node, typeof given === 'string' ? [] : [index])
    if (new Set(valid.map(({ scheme }) => scheme)).size > 1) refuse('must have one scheme for all nodes', [])
    return valid
  })
  .meta({ format: 'uri', examples: ['amqp://127.0.0.1:5672', 'amqps://rabbit.example.com'] })
  .describe(
    'Address of a RabbitMQ (amqp://HOST:PORT, amqps:// over TLS), or a list with those of the nodes of a cluster. ' +
      'Default ports: 5672, 5671.',
  )

const queueSchema = z.strictObject({
  prefix: z
    .string()
    .regex(/^[\w.:-]{1,100}$/, { error: 'must have 1 to 100 letters, digits, "_", "-", "." or ":"' })
    .describe('Begin of the names of queues: `PREFIX.0`, `PREFIX.1` and so on.'),
  partitions: z
    .int()
    .min(1)
    .max(64)
    .default(4)
    .describe(
      'Number of queues. One gateway at a time takes the messages of a queue, so their order is kept. 4 to 8 are enough ' +
        'for a few gateways. With another number devices change their queue, so empty the queues before.',
    ),
  max_messages: z
    .int()
    .min(1)
    .max(4_000_000_000)
    .optional()
    .describe(
      'Messages that a queue holds at most. At the limit RabbitMQ acknowledges no further ones, and the devices keep ' +
        'them. Default: no limit but that of its disk alarm.',
    ),
})

const bindSchema = z.strictObject({
  exchange: z
    .string()
    .min(1)
    .max(255)
    .default('amq.topic')
    .describe('Exchange that the MQTT plugin publishes to (`mqtt.exchange` of RabbitMQ).'),
  keys: z
    .array(
      z
        .string()
        .min(1)
        .max(255)
        .refine((key) => !/[/+]/.test(key), {
          error: 'is a key of AMQP: write "." for "/" and "*" for "+"',
        }),
    )
    .min(1)
    .max(64)
    .describe(
      'Keys to bind, with `*` for a word and `#` for any number of them. RabbitMQ writes `.` for `/` of a topic: ' +
        '`telemetry.v1.#`.',
    ),
})

const partitionRule = z
  .string()
  .transform((text, context): PartitionRule => {
    if (text === 'topic' || text === 'device') return { kind: text }
    const header = /^header:(.{1,200})$/.exec(text)?.[1]
    if (header !== undefined) return { kind: 'header', header }
    context.addIssue({ code: 'custom', message: `must be topic, device or header:NAME, found "${text}"` })
    return z.NEVER
  })
  .prefault('topic')
  .meta({ examples: ['topic', 'device', 'header:device'] })
  .describe(
    'What decides the queue of a message. It must be the same for all messages of a device. `topic`: for devices with ' +
      'one topic each. `header:NAME`: a user property of MQTT 5 that devices set (RabbitMQ 4). `device`: the level ' +
      '`{device}` of `topics`, for devices with several topics; a gateway distributes then, which costs RabbitMQ a ' +
      'second write of each message.',
  )

export const amqpBridgeSchema = z
  .strictObject({
    name: bridgeNameSchema,
    url: nodesSchema,
    vhost: z.string().min(1).max(255).default('/').describe('Virtual host of RabbitMQ.'),
    username: z
      .string()
      .min(1)
      .optional()
      .describe('User name at RabbitMQ. Default: guest, which may connect over loopback only.'),
    password: secret().optional().describe('Password at RabbitMQ.'),
    tls: bridgeTlsSchema.optional().describe('For amqps://. The certificate of RabbitMQ is always checked.'),
    member: memberSchema,
    queue: queueSchema.describe('The queues, which all gateways share.'),
    bind: bindSchema.describe('Which messages come into the queues.'),
    topics: z
      .array(z.string().superRefine(checkDeviceFilter))
      .min(1)
      .max(64)
      .optional()
      .describe(
        'Topic filters of MQTT, with `{device}` for the level that names the device. RabbitMQ replaces `/` by `.`; only ' +
          'with `{device}` can names of devices have dots. Default: from `bind.keys`.',
      ),
    provision: z
      .boolean()
      .default(false)
      .describe(
        'Declare queues, exchange and bindings, again at each connection and every minute. Otherwise they must exist; ' +
          'what is missing is a condition with the command to create it. The user needs the right to configure.',
      ),
    partition_by: partitionRule,
    window: windowSchema('Messages of a queue that may wait for their acknowledgement (prefetch).'),
    ...timeFields({
      connectTimeout:
        'From the first packet to the first message of a queue, or to its turn to wait for one.',
      firstDelay: '1 s',
      silence: 'With no message since the start, it does so after 5 minutes: the queues may not be bound.',
    }),
    max_message_bytes: messageBytesSchema(256 * 1024 ** 2),
    ...custodyFields,
  })
  .superRefine((bridge, context) => {
    const { url, tls, password, username, partition_by, topics, queue } = bridge
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (tls !== undefined && url[0]?.scheme === 'amqp') refuse('tls', 'is not allowed for amqp://')
    if (password !== undefined && username === undefined) refuse('password', 'needs username')
    if (partition_by.kind !== 'device') return
    if (queue.partitions === 1) refuse('partition_by', 'needs no device with one partition; use topic')
    else if (topics === undefined || topics.some((topic) => !hasDevice(topic)))
      refuse('partition_by', 'needs topics with {device} in each')
  })
  .transform(({ topics, ...bridge }) => ({
    ...bridge,
    kind: 'amqp' as const,
    member: bridge.member ?? hostname(),
    topics: (topics ?? bridge.bind.keys.map(filterOfKey)).map(plainFilter),
    deviceTopics: topics ?? [],
  }))

export type AmqpBridgeConfig = z.output<typeof amqpBridgeSchema>

function hasDevice(topic: string): boolean {
  return topic.split('/').includes(deviceLevel)
}

export function amqpOptions(config: AmqpBridgeConfig): AmqpOptions {
  const { queue, bind } = config
  return {
    kind: 'amqp',
    name: config.name,
    nodes: config.url,
    tls: tlsOptions(config.tls),
    userName: config.username ?? null,
    password: config.password ?? null,
    vhost: config.vhost,
    member: config.member,
    prefix: queue.prefix,
    partitions: queue.partitions,
    queueMessagesMax: queue.max_messages ?? null,
    custody: config.custody,
    exchange: bind.exchange,
    keys: bind.keys,
    topics: config.deviceTopics,
    provisions: config.provision,
    partitionBy: config.partition_by,
    window: config.window,
    ...timeOptions(config, 1000),
    unheardAfterMs: Math.min(config.silent_after, unheardMs),
    messageBytesMax: config.max_message_bytes,
    depthEveryMs: 3000,
    nameTakenAfterMs: 60_000,
    probeEveryMs: 10_000,
  }
}

/** What a valid bridge allows and a person should know. */
export function amqpWarnings(
  config: AmqpBridgeConfig,
  isLoopback: (host: string) => boolean,
): BridgeWarning[] {
  const { name, url, password, provision } = config
  const warnings: BridgeWarning[] = []
  const warn = (what: string, act: string) => warnings.push({ what: `Bridge "${name}": ${what}`, act })
  if (password !== undefined && url.some(({ scheme, host }) => scheme === 'amqp' && !isLoopback(host)))
    warn(`the password is sent to ${nodesText(url)} without encryption.`, 'Use amqps://.')
  if (!provision)
    warn(
      'without provision the gateway cannot see whether its queues are bound. RabbitMQ acknowledges messages that no ' +
        'queue takes, and drops them.',
      'Set provision: true, or check with `rabbitmqctl list_bindings` that the keys of `bind` lead to the queues.',
    )
  return warnings
}
