// message-source-metrics.ts: the metrics of message sources. See metrics-catalogue.ts.

import type { MessageSourceStatus } from '../../ingest/ingest.ts'
import { counter, gauge, labelled, type Metric } from './metric-readings.ts'

/** One sample for each message source; none where the value is null. */
function perSource(read: (source: MessageSourceStatus) => number | null) {
  return labelled(['message_source'], ({ stages }) =>
    (stages.ingest?.messageSources?.() ?? []).flatMap((source) => {
      const value = read(source)
      return value === null ? [] : [{ labels: { message_source: source.name }, value }]
    }),
  )
}

const ofBridge = (read: (source: MessageSourceStatus) => number | null) =>
  perSource((source) => (source.kind === 'broker' ? null : read(source)))

export const messageSourceMetrics: readonly Metric[] = [
  counter(
    'gateway_message_source_messages_total',
    'Messages by message source; `broker` is the embedded broker.',
    perSource(({ received }) => received),
  ),
  counter(
    'gateway_message_source_acked_total',
    'Messages acknowledged, by message source.',
    perSource(({ acked }) => acked),
  ),
  counter(
    'gateway_message_source_redelivered_total',
    'Messages of a bridge that its broker had delivered before.',
    ofBridge(({ redelivered }) => redelivered),
  ),
  counter(
    'gateway_message_source_retained_ignored_total',
    'Retained messages of a bridge that were ignored.',
    ofBridge(({ retainedIgnored }) => retainedIgnored),
  ),
  counter(
    'gateway_properties_skipped_total',
    'Properties of MQTT 5 and headers that the mapping does not get: a message has more than 64 of them, or more than 16 KiB.',
    perSource(({ propertiesSkipped }) => propertiesSkipped),
  ),
  counter(
    'gateway_message_source_losses_total',
    'Connections of a bridge, and tries to connect, that ended. Alert on a steady increase.',
    ofBridge(({ links }) => links.reduce((sum, { losses }) => sum + losses, 0)),
  ),
  gauge(
    'gateway_message_source_outstanding',
    'Messages of a bridge that wait for their acknowledgement.',
    ofBridge(({ outstanding }) => outstanding),
  ),
  gauge(
    'gateway_message_source_lag',
    'Messages that wait at RabbitMQ or NATS for all gateways of the group. Absent where the server does not say.',
    ofBridge(({ lag }) => lag),
  ),
  gauge(
    'gateway_message_source_partitions_active',
    'Queues of a bridge to RabbitMQ or NATS whose messages come to this gateway. Alert where the sum over the gateways is below their number.',
    ofBridge(({ traits, partitions }) =>
      traits.partitioned ? partitions.filter(({ role }) => role === 'active').length : null,
    ),
  ),
  gauge(
    'gateway_message_source_connections',
    'Connections of a bridge.',
    ofBridge(({ links }) => links.length),
  ),
  gauge(
    'gateway_message_source_connections_open',
    'Connections of a bridge that are connected. Alert when it is below gateway_message_source_connections.',
    ofBridge(({ links }) => links.filter(({ state }) => state === 'connected').length),
  ),
  gauge(
    'gateway_message_source_silent',
    '1 while a bridge is connected and brings no messages for longer than silent_after.',
    ofBridge(({ isSilent }) => (isSilent ? 1 : 0)),
  ),
  gauge(
    'gateway_message_source_last_message_timestamp_seconds',
    'When the last message of a bridge came, Unix time. Absent until one comes.',
    ofBridge(({ lastMessageAt }) => (lastMessageAt === null ? null : lastMessageAt / 1000)),
  ),
]
