// bridge-config.ts: the config of a bridge to an MQTT broker: one kind of `ingest.bridges[]`.

import { z } from 'zod'
import { duration, secret, size } from '../../std/schema.ts'
import { checkFilter, parseUrl, urlText } from './bridge-address.ts'
import {
  bridgeNameSchema,
  bridgeTlsSchema,
  timeFields,
  timeOptions,
  tlsOptions,
  unheardMs,
  windowSchema,
} from './bridge-fields.ts'
import { shortExpiryMs } from './session-risks/session-risks.ts'
import type { BridgeOptions } from './types.ts'

const hourMs = 3_600_000

const dayMs = 24 * hourMs

/** The longest that MQTT 5 can say without "for ever". */
const expiryMaxMs = 0xffff_fffe * 1000

export const mqttBridgeSchema = z
  .strictObject({
    name: bridgeNameSchema,
    url: z
      .string()
      .meta({
        format: 'uri',
        examples: ['mqtt://127.0.0.1:1883', 'mqtts://broker.example.com', 'wss://example.com/mqtt'],
      })
      .transform((text, context) => {
        const url = parseUrl(text)
        if (typeof url !== 'string') return url
        const otherKind = /^(amqps?|nats(\+tls)?):/.test(text)
        context.addIssue({ code: 'custom', message: url, params: { otherKind } })
        return z.NEVER
      })
      .describe(
        'Address of the broker: mqtt:// over TCP, mqtts:// over TLS, ws:// and wss:// over WebSocket. Default ports: ' +
          '1883, 8883, 80, 443.',
      ),
    topics: z
      .array(z.string().superRefine(checkFilter))
      .min(1)
      .max(64)
      .describe(
        'Topic filters to subscribe to, with `+` and `#`. A session keeps its filters: one that is removed here is ' +
          'unsubscribed at the next start, if bridge-sessions.json in the spool directory is still there.',
      ),
    client_id: z
      .string()
      .min(1)
      .max(256)
      .describe(
        'MQTT client id. It must stay the same, because the broker keeps the session under it, and each gateway ' +
          'needs its own. With several `connections` each one adds `-1`, `-2` and so on.',
      ),
    protocol: z
      .union([z.literal(5), z.literal('3.1.1')])
      .default(5)
      .describe(
        'Version of MQTT. With `3.1.1` the broker decides how long it keeps a session, and there are no user ' +
          'properties.',
      ),
    share_group: z
      .string()
      .regex(/^[^/+#]{1,256}$/, { error: 'must have no "/", "+" or "#"' })
      .optional()
      .describe(
        'Group of a shared subscription (`$share/GROUP/...`): the broker gives each message to one member. For ' +
          'several gateways, or several connections of one.',
      ),
    connections: z
      .int()
      .min(1)
      .max(64)
      .default(1)
      .describe(
        'Number of connections. More than one needs `share_group`. One takes some 20,000 messages/s on two cores.',
      ),
    username: z.string().min(1).optional().describe('User name at the broker.'),
    password: secret().optional().describe('Password at the broker.'),
    tls: bridgeTlsSchema
      .optional()
      .describe('For mqtts:// and wss://. The certificate of the broker is always checked.'),
    qos: z
      .union([z.literal(0), z.literal(1)])
      .default(1)
      .describe('QoS of the subscription. With 0 the broker delivers nothing again.'),
    session: z
      .enum(['keep', 'clean'])
      .default('keep')
      .describe(
        '`keep`: the broker keeps subscription and messages while the bridge is not connected. `clean`: it forgets ' +
          'both, and messages of that time are lost.',
      ),
    session_expiry: duration({ minMs: 1000, maxMs: expiryMaxMs })
      .default(7 * dayMs)
      .describe(
        'How long the broker keeps the session without a connection (MQTT 5). It must be longer than any outage of ' +
          'the gateway.',
      ),
    leave_group_on_stop: z
      .boolean()
      .default(false)
      .describe(
        'At a planned stop the bridge leaves its share group, so that the other members get what arrives. Only where ' +
          'other members always run: without any member the broker keeps nothing. Default: the session of the bridge ' +
          'keeps its share until it returns.',
      ),
    retained: z
      .enum(['ignore', 'once'])
      .default('ignore')
      .describe(
        'Retained messages, which the broker sends at each new subscription and which may be old. `once`: they are ' +
          'taken when the session is new. Ignored ones are counted.',
      ),
    window: windowSchema(
      'Messages of a connection that may wait for their acknowledgement. At the bound the bridge stops reading. The ' +
        'broker may have a lower bound.',
    ),
    keepalive: duration({ minMs: 1000, maxMs: 18 * hourMs })
      .default(30_000)
      .describe(
        'How often the bridge asks whether the broker is there. A dead link is noticed after 1.5 times.',
      ),
    ...timeFields({
      connectTimeout: 'From the first packet to CONNACK.',
      firstDelay: '1 s',
      silence: 'With `share_group` and no message since the start, it does so after 5 minutes.',
    }),
    max_packet_bytes: size({ minBytes: 1024, maxBytes: 256 * 1024 ** 2 })
      .default(16 * 1024 ** 2)
      .describe(
        'Largest packet of the broker. A larger message is acknowledged and becomes a dead letter (`OVERSIZED`), whole ' +
          'up to 80KiB, beyond that without its bytes.',
      ),
    custody: z
      .enum(['spool'])
      .default('spool')
      .describe('When a message is acknowledged: `spool`, after it is durable in the spool.'),
  })
  .superRefine((bridge, context) => {
    const { url, tls, connections, share_group, leave_group_on_stop, password, username } = bridge
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    const isSecure = url.scheme === 'mqtts' || url.scheme === 'wss'
    if (tls !== undefined && !isSecure) refuse('tls', `is not allowed for ${url.scheme}://`)
    if (connections > 1 && share_group === undefined)
      refuse('connections', 'needs share_group; otherwise every connection gets every message')
    if (leave_group_on_stop && share_group === undefined) refuse('leave_group_on_stop', 'needs share_group')
    if (password !== undefined && username === undefined) refuse('password', 'needs username')
  })
  .transform((bridge) => ({ ...bridge, kind: 'mqtt' as const }))

export type BridgeConfig = z.output<typeof mqttBridgeSchema>

export function bridgeOptions(config: BridgeConfig): BridgeOptions {
  return {
    kind: 'mqtt',
    name: config.name,
    url: config.url,
    tls: tlsOptions(config.tls),
    topics: config.topics,
    clientIds: clientIdsOf(config),
    isVersion5: config.protocol === 5,
    shareGroup: config.share_group ?? null,
    userName: config.username ?? null,
    password: config.password ?? null,
    qos: config.qos,
    keepsSession: config.session === 'keep',
    sessionExpiryMs: config.session_expiry,
    leavesGroup: config.leave_group_on_stop,
    retained: config.retained,
    window: config.window,
    keepaliveMs: config.keepalive,
    ...timeOptions(config, 1000),
    // Some brokers grant a shared subscription and deliver nothing.
    unheardAfterMs:
      config.share_group === undefined ? config.silent_after : Math.min(config.silent_after, unheardMs),
    packetBytesMax: config.max_packet_bytes,
  }
}

export function clientIdsOf({
  client_id,
  connections,
}: {
  client_id: string
  connections: number
}): string[] {
  if (connections === 1) return [client_id]
  return Array.from({ length: connections }, (_, index) => `${client_id}-${index + 1}`)
}

export type BridgeWarning = { what: string; act: string }

/** What a valid bridge allows and a person should know. */
export function bridgeWarnings(config: BridgeConfig, isLoopback: (host: string) => boolean): BridgeWarning[] {
  const { name, url, qos, session, session_expiry, protocol, password } = config
  const warnings: BridgeWarning[] = []
  const warn = (what: string, act: string) => warnings.push({ what: `Bridge "${name}": ${what}`, act })
  if (qos === 0)
    warn('with qos: 0 the broker delivers no message again.', 'Set qos: 1 if messages must not be lost.')
  if (session === 'clean')
    warn(
      'with session: clean messages are lost while the gateway is not connected.',
      'Set session: keep if messages must not be lost.',
    )
  else if (protocol !== 5)
    warn(
      'with protocol: 3.1.1 the broker alone decides how long it keeps the session.',
      'Check its limit (for Mosquitto persistent_client_expiration, for RabbitMQ mqtt.subscription_ttl, by ' +
        'default 24 hours), or set protocol: 5 and session_expiry.',
    )
  else if (session_expiry < shortExpiryMs)
    warn(
      'session_expiry is less than an hour. Messages of a longer outage are lost.',
      'Set it to the longest outage that the data must survive.',
    )
  if (password !== undefined && (url.scheme === 'mqtt' || url.scheme === 'ws') && !isLoopback(url.host))
    warn(`the password is sent to ${urlText(url)} without encryption.`, 'Use mqtts:// or wss://.')
  return warnings
}
