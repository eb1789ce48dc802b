// config.ts: the section `ingest` of the config.

import { z } from 'zod'
import {
  accessOptions,
  accessSchema,
  admitsNobody,
  passwordOptions,
  passwordsSchema,
} from './broker/access/access-config.ts'
import {
  connectionLimitFields,
  connectionLimitOptions,
} from './broker/connection-limits/connection-limits-config.ts'
import { isLoopback } from '../std/loopback.ts'
import { duration } from '../std/schema.ts'
import { anyBridgeOptions, bridgesSchema } from './bridge-kinds.ts'
import { checkCustody, custodyOptions } from './custody/custody-config.ts'
import { limitsSchema } from './broker/limits-config.ts'
import { publishRulesOptions, publishRulesSchema } from './broker/publish-rules/publish-rules-config.ts'
import { listenerOptions, listenerSchema } from './broker/listeners/listener-config.ts'
import type { IngestOptions, LiveLimits } from './ingest.ts'

const brokerSchema = z
  .strictObject({
    listeners: z
      .array(listenerSchema)
      .prefault([{ url: 'mqtt://127.0.0.1:1883' }])
      .describe('Addresses on which devices connect. May be empty where there are bridges.'),
    access: accessSchema.prefault({}).describe('Which clients may connect.'),
    passwords: passwordsSchema.describe('How passwords of clients are checked.'),
    rules: publishRulesSchema.describe('Which topics clients may publish to.'),
    subscriptions: z
      .enum(['accept', 'refuse'])
      .default('accept')
      .describe(
        'Answer to a client that subscribes. The gateway sends nothing but rebirth requests of Sparkplug. `accept` grants ' +
          'each subscription and stores nothing: some devices connect again without end when one is refused. ' +
          '`refuse` answers with SUBACK 128.',
      ),
    retain: z
      .enum(['refuse', 'accept'])
      .default('refuse')
      .describe(
        'How the broker answers clients of MQTT 5 about retained messages, which the gateway does not keep. `refuse` announces ' +
          'that there are none and refuses a CONNECT whose will has the retain flag, as the standard demands. `accept` ' +
          'announces nothing and takes such a will without the flag. With both, a message with the flag is taken once.',
      ),
    limits: limitsSchema.describe('Limits of connections and their memory.'),
  })
  .prefault({})
  .superRefine(({ listeners, access }, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    if (listeners.some((listener) => listener.access === undefined) && admitsNobody(access))
      refuse(['access'], nobodyText)
    listeners.forEach(({ url, tls, access: own }, index) => {
      const path = own === undefined ? ['access'] : ['listeners', index, 'access']
      const { anonymous, anonymous_beyond_loopback, certificates } = own ?? access
      const address = `${url.host}:${url.port}`
      if (own !== undefined && admitsNobody(own)) refuse(path, nobodyText)
      if (certificates && tls?.client_ca === undefined)
        refuse([...path, 'certificates'], `needs tls.client_ca, which the listener ${address} does not have`)
      if (anonymous && !anonymous_beyond_loopback && !isLoopback(url.host))
        refuse([...path, 'anonymous'], anonymousText(address))
    })
  })
  .describe('The embedded MQTT broker. It receives messages, and sends none but rebirth requests.')

const nobodyText =
  'must have anonymous: true, certificates: true, a user, a password_file or a token; otherwise no device can ' +
  'connect'

function anonymousText(address: string): string {
  return (
    `must not be true, because other machines reach the listener ${address}: everybody there could publish. ` +
    'Configure users, or set anonymous_beyond_loopback: true beside it if this is intended'
  )
}

export const ingestSchema = z
  .strictObject({
    broker: brokerSchema,
    bridges: bridgesSchema,
    ack_delay_max: duration({ minMs: 0, maxMs: 1000 })
      .prefault('250ms')
      .describe(
        'How long a message may wait for messages of others before it is written to the disk and acknowledged. It waits for ' +
          'a quarter of the time since the last acknowledgement of its connection, and for this long at most. So a device ' +
          'that waits for each acknowledgement hardly becomes slower, and at a depot one write to the disk serves many ' +
          'devices, which spares processor time and flash memory. Seals and settles of batches that are not full wait ' +
          'as long. `0s` turns it off: each message is written at once.',
      ),
    rebirth_requests: z
      .boolean()
      .default(true)
      .describe(
        'Ask nodes of Sparkplug to publish their births again where one was missed: a client that has subscribed to ' +
          'its command topic (NCMD), or over the broker of a bridge, whose user must be allowed to publish there. A ' +
          'node is asked at most once a minute, and less often while it does not answer.',
      ),
  })
  .superRefine(({ broker, bridges }, context) => {
    checkCustody({ listeners: broker.listeners, bridges }, context)
    if (broker.listeners.length + bridges.length > 0) return
    const message = 'must have a listener where `bridges` is empty'
    context.addIssue({ code: 'custom', path: ['broker', 'listeners'], message })
  })
  .prefault({})

export type IngestConfig = z.output<typeof ingestSchema>

export { addressText, anyBridgeWarnings } from './bridge-kinds.ts'
export { defaultPortOf, listenUrlOf, listenUrlText } from './broker/listeners/listen-url.ts'
export { willBytesMax } from './broker/limits-config.ts'
export { mqttBridgeSchema } from './bridges/bridge-config.ts'

/** Options of `ingest.broker.limits` that a reload puts in force. */
export const liveLimits = [
  ...(Object.keys(connectionLimitFields) as (keyof typeof connectionLimitFields)[]),
  'max_control_packets_per_s',
  'partial_timeout',
  'idle_timeout',
] as const

export function liveLimitOptions({ broker: { limits } }: Pick<IngestConfig, 'broker'>): LiveLimits {
  const { connectionsMax: _, ...ofConnections } = connectionLimitOptions(limits)
  return {
    ...ofConnections,
    controlPacketsPerSecondMax: limits.max_control_packets_per_s,
    partialTimeoutMs: limits.partial_timeout,
    idleTimeoutMs: limits.idle_timeout,
  }
}

export function ingestOptions({ broker, bridges, rebirth_requests }: IngestConfig): IngestOptions {
  const { access, limits } = broker
  return {
    listeners: broker.listeners.map(listenerOptions),
    bridges: bridges.map(anyBridgeOptions),
    custody: custodyOptions(bridges),
    rebirthRequests: rebirth_requests,
    access: broker.listeners.map((listener) => accessOptions(listener.access ?? access)),
    passwords: passwordOptions(broker.passwords),
    rules: publishRulesOptions(broker.rules),
    subscriptions: broker.subscriptions,
    retain: broker.retain,
    topicAliasesMax: limits.max_topic_aliases,
    keepaliveMsMax:
      limits.max_keepalive === undefined ? null : Math.floor(limits.max_keepalive / 1000) * 1000,
    ...liveLimitOptions({ broker }),
    connectionsMax: limits.max_connections,
    topicLimits: { bytesMax: limits.max_topic_bytes, levelsMax: limits.max_topic_levels },
    inFlightMax: limits.max_in_flight,
    connectBytesMax: limits.max_connect_bytes,
    packetBytesMax: limits.max_packet_bytes,
    clientIdBytesMax: limits.max_client_id_bytes,
    heldMessagesMax: limits.max_held_messages,
    heldBytesMax: limits.max_held_bytes,
    connectTimeoutMs: limits.connect_timeout,
    ackTimeoutMs: limits.ack_timeout,
    partialBytesMax: limits.max_partial_bytes,
    tcpKeepaliveMs: limits.tcp_keepalive,
    sessionsMax: limits.max_sessions,
    unreleasedMax: limits.max_unreleased_messages,
    unreleasedTotalMax: limits.max_unreleased_messages_total,
    sessionExpiryMs: limits.session_expiry,
  }
}
