// limits-config.ts: the section `ingest.broker.limits` of the config: bounds of connections and their memory.

import { z } from 'zod'
import { duration, size } from '../../std/schema.ts'
import { unreleasedFields } from './stored-sessions/unreleased-config.ts'
import { connectionLimitFields, topicLimitFields } from './connection-limits/connection-limits-config.ts'

const mib = 1024 ** 2

/** Of all wills together (will-budget.ts); `check` counts it in the memory that a config can need. */
export const willBytesMax = 32 * mib

export const limitsSchema = z
  .strictObject({
    max_connections: z
      .int()
      .min(1)
      .max(100_000)
      .default(10_000)
      .describe(
        'Simultaneous connections, those without an accepted CONNECT included. At the limit, a new connection ' +
          'takes the place of one without an accepted CONNECT; where there is none, it is closed. Both are ' +
          'counted and reported. A device that is connected is never closed for another one. Where the limit of open ' +
          'files of the process (LimitNOFILE) leaves fewer, that number is the limit, and the start warns.',
      ),
    ...connectionLimitFields,
    ...topicLimitFields,
    max_in_flight: z
      .int()
      .min(1)
      .max(65_535)
      .default(1000)
      .describe(
        'Messages of one client without an acknowledgement. At the limit, its connection is not read until ' +
          'acknowledgements are sent. It is announced to clients of MQTT 5 as the receive maximum; one that sends more is ' +
          'disconnected.',
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
        'Stored sessions: one for each client that connects without Clean Session. At the limit, a session ' +
          'without a connection is removed, reported and counted: that client starts a new one. It is one of ' +
          'the client that opens a new session, if its identity or address has more than a hundredth of all; ' +
          'else one of the identity or address with most. Must be at least max_connections.',
      ),
    ...unreleasedFields,
    session_expiry: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('7d')
      .describe(
        'A stored session that was not used for this long is removed. Its client gets CONNACK without ' +
          '`session present` and may drop its unacknowledged messages then. A client of MQTT 5 may ask for less, ' +
          'and gets this where it asks for more.',
      ),
    max_topic_aliases: z
      .int()
      .min(0)
      .max(100)
      .default(10)
      .describe(
        'Topic aliases of one client of MQTT 5, announced to it. Its aliases may stand for 8 KiB of topics. A client that ' +
          'uses a higher one is disconnected.',
      ),
    max_keepalive: duration({ minMs: 1000, maxMs: 65_535_000 })
      .optional()
      .describe(
        'The longest keepalive of clients of MQTT 5. One that asks for a longer one, or for none, gets this one and ' +
          'must keep to it. Default: each client chooses.',
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
    max_control_packets_per_s: z
      .int()
      .min(1)
      .max(100_000)
      .default(100)
      .describe(
        'Control packets of one client per second, on average over 5 seconds: SUBSCRIBE, UNSUBSCRIBE, PINGREQ and ' +
          'stray answers. Each 32 bytes count as one. PUBLISH does not count, nor one PUBREL for each message of ' +
          'QoS 2. A client that sends more is disconnected.',
      ),
    max_partial_bytes: size({ minBytes: mib, maxBytes: 4096 * mib })
      .prefault('64MiB')
      .describe(
        'Memory for packets whose end has not arrived, of all connections. Each connection may use another 4 KiB. ' +
          'At the limit, the slowest connection of the address that uses the most is closed. Must be at least twice ' +
          'max_packet_bytes.',
      ),
    partial_timeout: duration({ minMs: 1000, maxMs: 3_600_000 })
      .prefault('30s')
      .describe(
        'How long a client may pause within a packet. A packet that takes longer than this must also arrive with ' +
          '256 bytes per second on average. If not, the connection is closed.',
      ),
    tcp_keepalive: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('15m')
      .describe(
        'For clients with keepalive 0: idle time after which the system asks by TCP whether the client is still ' +
          'there, up to 9 times, 75 seconds apart. Without an answer the connection is closed. Trackers that sleep ' +
          'longer need more.',
      ),
    idle_timeout: duration({ minMs: 1000, maxMs: 365 * 86_400_000 })
      .prefault('24h')
      .describe('A client with keepalive 0 that sends nothing for this long is disconnected.'),
  })
  .prefault({})
  .superRefine(({ max_partial_bytes, max_packet_bytes }, context) => {
    if (max_partial_bytes < 2 * max_packet_bytes)
      context.addIssue({
        code: 'custom',
        path: ['max_partial_bytes'],
        message: `must be at least twice max_packet_bytes (${max_packet_bytes} bytes), found ${max_partial_bytes}`,
      })
  })
  .superRefine(({ max_sessions, max_connections }, context) => {
    if (max_sessions < max_connections)
      context.addIssue({
        code: 'custom',
        path: ['max_sessions'],
        message: `must be at least max_connections (${max_connections}), found ${max_sessions}`,
      })
  })
