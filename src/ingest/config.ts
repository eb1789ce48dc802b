// config.ts: the section `ingest` of the config.

import { z } from 'zod'
import { duration, secret, size } from '../std/schema.ts'
import type { IngestOptions } from './ingest.ts'
import type { ListenerOptions } from './broker/listeners.ts'

const mib = 1024 ** 2

const listenerSchema = z
  .strictObject({
    url: z
      .string()
      .meta({ examples: ['mqtt://127.0.0.1:1883', 'mqtts://0.0.0.0:8883'] })
      .transform((text, context) => {
        const address = parseUrl(text)
        if (typeof address !== 'string') return address
        context.addIssue({ code: 'custom', message: address })
        return z.NEVER
      })
      .describe(
        'Address on which devices connect: mqtt:// is MQTT 3.1.1 over TCP, mqtts:// over TLS. The ' +
          'default port is 1883 or 8883; with 0 the system chooses one. The host is an address of this ' +
          'machine, or 0.0.0.0 for all.',
      ),
    tls: z
      .strictObject({
        cert: z
          .string()
          .min(1)
          .describe('Certificate chain of the gateway as PEM text, usually `${file:/etc/.../cert.pem}`.'),
        key: secret().describe(
          'Private key of the certificate as PEM text, usually `${file:/etc/.../key.pem}`.',
        ),
        client_ca: z
          .string()
          .min(1)
          .optional()
          .describe(
            'Authorities of device certificates as PEM text. If set, a device without a certificate of ' +
              'one of them is refused. The mapping can use the common name of the certificate.',
          ),
      })
      .optional()
      .describe('Required for mqtts://, not allowed for mqtt://.'),
  })
  .superRefine(({ url, tls }, context) => {
    if (url.secure && tls === undefined)
      context.addIssue({ code: 'custom', path: ['tls'], message: 'is required for an mqtts:// listener' })
    if (!url.secure && tls !== undefined)
      context.addIssue({ code: 'custom', path: ['tls'], message: 'is not allowed for an mqtt:// listener' })
  })

const accessSchema = z
  .strictObject({
    anonymous: z
      .boolean()
      .default(false)
      .describe(
        'Whether clients without a user name may connect. If false, they are refused with CONNACK 5. If ' +
          'true and no users are configured, user names are not checked.',
      ),
    users: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe('User name of the client.'),
          password: secret().describe('Password of the client.'),
        }),
      )
      .default([])
      .describe(
        'User names and passwords of clients. A client with another user name is refused with CONNACK 4.',
      ),
  })
  .prefault({})
  .superRefine(({ anonymous, users }, context) => {
    if (!anonymous && users.length === 0)
      context.addIssue({
        code: 'custom',
        message: 'must have anonymous: true or at least one user; otherwise no device can connect',
      })
    users.forEach(({ name }, index) => {
      if (users.findIndex((other) => other.name === name) < index)
        context.addIssue({
          code: 'custom',
          path: ['users', index, 'name'],
          message: `must be unique, found "${name}" twice`,
        })
    })
  })

const limitsSchema = z
  .strictObject({
    max_connections: z
      .int()
      .min(1)
      .max(100_000)
      .default(10_000)
      .describe('Simultaneous connections. Further connections are closed at once and counted.'),
    max_in_flight: z
      .int()
      .min(1)
      .max(65_535)
      .default(1000)
      .describe(
        'Messages of one client without an acknowledgement. At the limit, its connection is not read until ' +
          'acknowledgements are sent.',
      ),
    max_connect_bytes: size({ minBytes: 256, maxBytes: mib })
      .prefault('64KiB')
      .describe(
        'Size of CONNECT, including will and password. A client that announces more is disconnected.',
      ),
    max_packet_bytes: size({ minBytes: 1024, maxBytes: 8 * mib })
      .prefault('1MiB')
      .describe(
        'Size of any packet after CONNECT. A client that announces more is disconnected before the ' +
          'packet is buffered. A device that sends the packet again is disconnected again: raise the ' +
          'limit or correct the device.',
      ),
    max_client_id_bytes: z
      .int()
      .min(23)
      .max(65_535)
      .default(256)
      .describe('Length of a client id in UTF-8. A CONNECT with a longer one is refused with CONNACK 2.'),
    max_held_messages: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(100_000)
      .describe(
        'Messages in memory without an acknowledgement while the spool accepts nothing. At the ' +
          'limit, sockets are not read and the devices keep further messages.',
      ),
    max_held_bytes: size({ minBytes: 1024, maxBytes: 4096 * mib })
      .prefault('32MiB')
      .describe('The same in bytes. The limit that is reached first applies.'),
    max_sessions: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(100_000)
      .describe(
        'Stored sessions: one for each client that connects without Clean Session. At the limit, the session ' +
          'without a connection that was used longest ago is removed, reported and counted: that client ' +
          'starts a new one. Must be at least max_connections.',
      ),
    session_expiry: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('7d')
      .describe(
        'A stored session that was not used for this long is removed. Its client gets CONNACK without ' +
          '`session present` and may drop its unacknowledged messages then.',
      ),
    connect_timeout: duration({ minMs: 100, maxMs: 600_000 })
      .prefault('10s')
      .describe('Time from the connection to the end of CONNECT. Then the connection is closed.'),
    ack_timeout: duration({ minMs: 100, maxMs: 3_600_000 })
      .prefault('60s')
      .describe(
        'How long a client may leave acknowledgements unread after its send buffer is full. Then it ' +
          'is disconnected.',
      ),
  })
  .prefault({})
  .superRefine(({ max_sessions, max_connections }, context) => {
    if (max_sessions < max_connections)
      context.addIssue({
        code: 'custom',
        path: ['max_sessions'],
        message: `must be at least max_connections (${max_connections}), found ${max_sessions}`,
      })
  })

const brokerSchema = z
  .strictObject({
    listeners: z
      .array(listenerSchema)
      .min(1)
      .prefault([{ url: 'mqtt://127.0.0.1:1883' }])
      .describe('Addresses on which devices connect.'),
    access: accessSchema.describe('Which clients may connect.'),
    limits: limitsSchema.describe('Limits of connections and their memory.'),
  })
  .prefault({})
  .describe('The embedded MQTT broker. It receives messages and sends none: subscriptions are refused.')

export const ingestSchema = z
  .strictObject({
    broker: brokerSchema,
    bridges: z
      .array(z.unknown())
      .max(0, { error: 'must be empty: this version of the gateway does not connect to external brokers' })
      .default([])
      .describe('External brokers to receive messages from. Not available in this version.'),
  })
  .prefault({})

export type IngestConfig = z.output<typeof ingestSchema>

export function ingestOptions({ broker }: IngestConfig): IngestOptions {
  const { access, limits } = broker
  return {
    listeners: broker.listeners.map(({ url, tls }): ListenerOptions => ({
      host: url.host,
      port: url.port,
      tls: tls === undefined ? null : { cert: tls.cert, key: tls.key, clientCa: tls.client_ca ?? null },
    })),
    access,
    connectionsMax: limits.max_connections,
    inFlightMax: limits.max_in_flight,
    connectBytesMax: limits.max_connect_bytes,
    packetBytesMax: limits.max_packet_bytes,
    clientIdBytesMax: limits.max_client_id_bytes,
    heldMessagesMax: limits.max_held_messages,
    heldBytesMax: limits.max_held_bytes,
    connectTimeoutMs: limits.connect_timeout,
    ackTimeoutMs: limits.ack_timeout,
    sessionsMax: limits.max_sessions,
    sessionExpiryMs: limits.session_expiry,
  }
}

type ListenUrl = { secure: boolean; host: string; port: number }

/** The URL of a listener, or what is wrong with it. */
function parseUrl(text: string): ListenUrl | string {
  const match = /^(mqtts?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?\/?$/.exec(text)
  const host = match?.[2] ?? match?.[3]
  if (!match || host === undefined)
    return `must be mqtt://HOST:PORT or mqtts://HOST:PORT without path, query or password, found "${text}"`
  const secure = match[1] === 'mqtts'
  const port = match[4] === undefined ? (secure ? 8883 : 1883) : Number(match[4])
  if (port > 65_535) return `must have a port of 0 to 65535, found ${port}`
  return { secure, host, port }
}
