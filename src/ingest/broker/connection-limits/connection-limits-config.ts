// connection-limits-config.ts: fields of `ingest.broker.limits`: connections of one address and of one
// identity, without an accepted CONNECT, and per second; messages of one client per second; topics.

import { z } from 'zod'
import { size } from '../../../std/schema.ts'
import type { ConnectionLimitOptions } from './connection-limits.ts'

const address = 'An address is an IPv4 address or the /64 network of an IPv6 address.'

export const connectionLimitFields = {
  max_connections_per_address: count(100_000)
    .default(8000)
    .describe(
      'Simultaneous connections of one address. The default leaves a fifth of max_connections to others, and ' +
        'is high because devices behind one router or mobile network share an address. At the limit, the same ' +
        `as for max_connections happens, among the connections of this address. ${address}`,
    ),
  max_connections_per_identity: count(100_000)
    .default(8000)
    .describe(
      'Simultaneous connections of one identity: a user name, or the name in a client certificate. A further ' +
        'client is refused with CONNACK 3; one that connects again with its client id is not. If each device ' +
        'has an identity of its own, set this to a small number, such as 4.',
    ),
  max_unauthenticated: count(100_000)
    .default(1000)
    .describe(
      'Connections without an accepted CONNECT: new ones, those in a TLS handshake, and those whose password ' +
        'is being checked. The rest of max_connections is reserved for accepted ones. At the limit, one of the ' +
        'address with most of them is closed: the one that has been silent longest.',
    ),
  max_unauthenticated_per_address: count(100_000)
    .default(500)
    .describe(
      'The same for one address. A device sends its CONNECT at once, so it is accepted also while others at ' +
        'its address open connections and stay silent.',
    ),
  max_connects_per_s: count(100_000)
    .default(500)
    .describe(
      'New connections per second. Further ones are closed when they are accepted, before TLS, and counted; ' +
        'devices try again. A quarter of it is reserved for addresses where a client was accepted, and another one ' +
        'for these and for addresses without a connection in the last 10 s. 5,000 devices need 10 s to connect ' +
        'after a restart.',
    ),
  max_connects_per_address_per_s: count(100_000)
    .default(250)
    .describe(`The same for one address. ${address}`),
  max_messages_per_s: count(1_000_000)
    .default(1000)
    .describe(
      'Messages of one client per second, of any QoS. Those of two seconds are taken at once. A client beyond it ' +
        'is not read until its rate allows it again: nothing is dropped, and its acknowledgements come later. ' +
        'Counted, and reported with the clients that cause the most pauses. Raise it for a bridge that sends the ' +
        'messages of many devices over one connection.',
    ),
  max_bytes_per_s: size({ minBytes: 1024, maxBytes: 4096 * 1024 ** 2 })
    .prefault('8MiB')
    .describe('The same in bytes of topics and payloads.'),
}

/** Of topics. */
export const topicLimitFields = {
  max_topic_bytes: count(65_535)
    .default(4096)
    .describe(
      'Length of a topic name in UTF-8, that of a will included. A client that publishes to a longer one is ' +
        'disconnected: MQTT 3.1.1 has no other answer.',
    ),
  max_topic_levels: count(1000)
    .default(100)
    .describe('Levels of a topic name: the parts between its slashes. Beyond it, the same happens.'),
}

type ConnectionLimitsConfig = { max_connections: number } & {
  [Key in keyof typeof connectionLimitFields]: z.output<(typeof connectionLimitFields)[Key]>
}

export function connectionLimitOptions(limits: ConnectionLimitsConfig): ConnectionLimitOptions {
  return {
    connectionsMax: limits.max_connections,
    connectionsPerAddressMax: limits.max_connections_per_address,
    connectionsPerIdentityMax: limits.max_connections_per_identity,
    unauthenticatedMax: limits.max_unauthenticated,
    unauthenticatedPerAddressMax: limits.max_unauthenticated_per_address,
    connectsPerS: limits.max_connects_per_s,
    connectsPerAddressPerS: limits.max_connects_per_address_per_s,
    messagesPerS: limits.max_messages_per_s,
    bytesPerS: limits.max_bytes_per_s,
  }
}

function count(max: number) {
  return z.int().min(1).max(max)
}
