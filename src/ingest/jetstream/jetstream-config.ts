// jetstream-config.ts: the config of a bridge to NATS JetStream: one kind of `ingest.bridges[]`.

import { hostname } from 'node:os'
import { z } from 'zod'
import { secret } from '../../std/schema.ts'
import { custodyFields } from '../custody/custody-config.ts'
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
import { urlsText } from './nats-address.ts'
import { mqttStream, type DeviceFilter, type JetStreamOptions } from './types.ts'

const defaultPort = 4222

type NatsUrl = { scheme: 'nats' | 'nats+tls'; host: string; port: number }

const urlSchema = z
  .string()
  .meta({ format: 'uri', examples: ['nats://127.0.0.1:4222', 'nats+tls://nats.example.com'] })
  .transform((text, context): NatsUrl => {
    const match = /^(nats|nats\+tls):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?\/?$/.exec(
      text,
    )
    const host = match?.[2] ?? match?.[3]
    const port = match?.[4] === undefined ? defaultPort : Number(match[4])
    if (match && host !== undefined && port >= 1 && port <= 65_535)
      return { scheme: match[1] as NatsUrl['scheme'], host, port }
    context.addIssue({
      code: 'custom',
      message:
        'must be nats://HOST:PORT or nats+tls://HOST:PORT, without user and password; they have options of their own',
      params: { otherKind: /^(mqtts?|wss?|amqps?):/.test(text) },
    })
    return z.NEVER
  })

const urlsSchema = z
  .union([urlSchema.transform((url) => [url]), z.array(urlSchema).min(1).max(16)])
  .superRefine((urls, context) => {
    if (new Set(urls.map(({ scheme }) => scheme)).size > 1)
      context.addIssue({ code: 'custom', message: 'must have one scheme for all nodes' })
  })
  .describe(
    'Address of NATS: nats:// over TCP, nats+tls:// over TLS; default port 4222. Or a list: the nodes of one cluster.',
  )

function checkTopic(text: string, context: z.RefinementCtx): void {
  if (text.includes(' '))
    context.addIssue({ code: 'custom', message: `must have no blank, which NATS refuses, found "${text}"` })
  else checkDeviceFilter(text, context)
}

const durablesSchema = z
  .strictObject({
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,32}$/, { error: 'must have 1 to 32 letters, digits, "_" or "-"' })
      .describe(
        'The durables are named `<prefix>-0` and so on, the subjects of their messages begin with `<prefix>.0`, and the ' +
          'bucket of the members is `<prefix>-members`.',
      ),
    partitions: z
      .int()
      .min(1)
      .max(64)
      .default(4)
      .describe(
        'Number of partitions; a gateway takes any number of them. The mapping of the account must have the same ' +
          'number; `check` prints its lines. With 1 no mapping is needed.',
      ),
  })
  .describe('The durable consumers of the partitions.')

export const jetstreamBridgeSchema = z
  .strictObject({
    name: bridgeNameSchema,
    url: urlsSchema,
    username: z.string().min(1).optional().describe('User name at NATS.'),
    password: secret().optional().describe('Password at NATS.'),
    token: secret().optional().describe('Token at NATS, where it has no users.'),
    tls: bridgeTlsSchema.optional().describe('For nats+tls://. The certificate of NATS is always checked.'),
    member: memberSchema,
    stream: z
      .string()
      .regex(/^[^\s.*>/\\]{1,200}$/, { error: 'must have no blank and none of . * > / \\' })
      .default(mqttStream)
      .describe(
        'Stream to take from. Default: that in which NATS stores what devices publish over MQTT with QoS 1 and 2; only ' +
          'for it NATS waits before it acknowledges to the device.',
      ),
    topics: z
      .array(z.string().superRefine(checkTopic))
      .min(1)
      .max(64)
      .describe(
        'Topic filters of MQTT, with `{device}` for the level that names the device: a device stays in one partition. ' +
          'A filter with one `+` needs no `{device}`. NATS replaces `/` by `.`.',
      ),
    durables: durablesSchema,
    provision: z
      .boolean()
      .default(false)
      .describe(
        'Create what is missing: durables, the bucket of the members, the stream of MQTT. Nothing is ever changed or ' +
          'deleted. Otherwise what is missing is a condition with the command to create it.',
      ),
    window: windowSchema('Messages of a partition that may wait for their acknowledgement.'),
    ...timeFields({
      connectTimeout: 'For each node: from the first packet to the answer of NATS.',
      firstDelay: '250 ms',
      silence:
        'With no message since the start, it does so after 5 minutes: the mapping of the account may be missing.',
    }),
    max_message_bytes: messageBytesSchema(64 * 1024 ** 2),
    ...custodyFields,
  })
  .superRefine(({ url, tls, password, username, token, durables, topics }, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    if (tls !== undefined && url[0]?.scheme === 'nats') refuse(['tls'], 'is not allowed for nats://')
    if (password !== undefined && username === undefined) refuse(['password'], 'needs username')
    if (token !== undefined && username !== undefined) refuse(['token'], 'is not allowed with username')
    if (durables.partitions === 1) return
    for (const [index, topic] of topics.entries())
      if (deviceOf(topic) === null)
        refuse(
          ['topics', index],
          `needs {device} for the level of the device, because there are several partitions, found "${topic}"`,
        )
  })
  .transform(({ topics, ...bridge }) => ({
    ...bridge,
    kind: 'jetstream' as const,
    member: bridge.member ?? hostname(),
    topics: topics.map(plainFilter),
    deviceTopics: topics.map((topic): DeviceFilter => ({
      filter: plainFilter(topic),
      device: deviceOf(topic) ?? 0,
    })),
  }))

export type JetStreamBridgeConfig = z.output<typeof jetstreamBridgeSchema>

/** Which `+` is the device, from 1; null where it is not clear. */
function deviceOf(topic: string): number | null {
  const wildcards = topic.split('/').filter((level) => level === '+' || level === deviceLevel)
  const named = wildcards.indexOf(deviceLevel)
  if (named >= 0) return named + 1
  return wildcards.length === 1 ? 1 : null
}

export function jetstreamOptions(config: JetStreamBridgeConfig): JetStreamOptions {
  const { durables } = config
  return {
    kind: 'jetstream',
    name: config.name,
    custody: config.custody,
    addresses: config.url.map(({ host, port }) => ({ host, port })),
    userName: config.username ?? null,
    password: config.password ?? null,
    token: config.token ?? null,
    tls: config.url[0]?.scheme === 'nats+tls' ? tlsOptions(config.tls) : null,
    member: config.member,
    stream: config.stream,
    topics: config.deviceTopics,
    prefix: durables.prefix,
    partitions: durables.partitions,
    provision: config.provision,
    window: config.window,
    ...timeOptions(config, 250),
    watchEveryMs: 2000,
    lookEveryMs: 30_000,
    unheardAfterMs: Math.min(config.silent_after, unheardMs),
    messageBytesMax: config.max_message_bytes,
  }
}

/** What a valid bridge allows and a person should know. */
export function jetstreamWarnings(
  config: JetStreamBridgeConfig,
  isLoopback: (host: string) => boolean,
): BridgeWarning[] {
  const { name, url, password, token, stream } = config
  const warnings: BridgeWarning[] = []
  const warn = (what: string, act: string) => warnings.push({ what: `Bridge "${name}": ${what}`, act })
  const isOpen = url.some(({ scheme, host }) => scheme === 'nats' && !isLoopback(host))
  if (isOpen && (password !== undefined || token !== undefined))
    warn(
      `${password === undefined ? 'the token' : 'the password'} is sent to ${urlsText(jetstreamOptions(config))} without encryption.`,
      'Use nats+tls://.',
    )
  if (stream !== mqttStream)
    warn(
      `stream is ${stream}. For messages that come over MQTT NATS acknowledges before they are in that stream.`,
      `Leave it out where devices publish over MQTT; the default is ${mqttStream}.`,
    )
  return warnings
}
