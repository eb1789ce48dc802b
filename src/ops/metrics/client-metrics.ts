// client-metrics.ts: the metrics of clients of the broker and their connections. See metrics-catalogue.ts.

import type { IngestCounters } from '../../ingest/ingest.ts'
import { byReason, counter, gauge, ingest, labelled, type Metric } from './metric-readings.ts'

type ProtocolUse = IngestCounters['protocolUses'][number]

/** As the schemes of listeners. */
const transportLabels: Readonly<Record<ProtocolUse['transport'], string>> = {
  TCP: 'mqtt',
  TLS: 'mqtts',
  WebSocket: 'ws',
  'WebSocket with TLS': 'wss',
}

/** One sample for each version of MQTT and each kind of listener, also where it is 0. */
function byProtocol(read: (use: ProtocolUse) => number) {
  return labelled(['version', 'transport'], ({ stages }) =>
    (stages.ingest?.counters().protocolUses ?? []).map((use) => ({
      labels: { version: use.version, transport: transportLabels[use.transport] },
      value: read(use),
    })),
  )
}

export const clientMetrics: readonly Metric[] = [
  gauge(
    'gateway_clients_connected',
    'Connections of clients whose CONNECT was accepted, by version of MQTT and kind of listener.',
    byProtocol(({ open }) => open),
  ),
  counter(
    'gateway_clients_accepted_total',
    'Accepted CONNECTs, by version of MQTT and kind of listener.',
    byProtocol(({ accepted }) => accepted),
  ),
  counter(
    'gateway_client_messages_total',
    'Messages of clients, without wills, by version of MQTT and kind of listener.',
    byProtocol(({ messages }) => messages),
  ),
  counter(
    'gateway_messages_retain_flag_total',
    'Messages of clients that came with the retain flag, wills included. The gateway takes each once, and keeps none for subscribers.',
    ingest('retained'),
  ),
  counter('gateway_clients_refused_total', 'Connections refused, by reason.', byReason('refusedByReason')),
  counter(
    'gateway_clients_dropped_total',
    'Connections that the gateway closed, by reason.',
    byReason('droppedByReason'),
  ),
  counter(
    'gateway_messages_refused_total',
    'Messages that their clients may not publish, by reason. With on_violation: drop, they are ignored, too.',
    byReason('refusedMessages'),
  ),
  counter(
    'gateway_payload_format_mismatches_total',
    'Messages of MQTT 5 whose sender says that they are UTF-8, and which are not. They are mapped as usual.',
    ingest('payloadFormatMismatches'),
  ),
  gauge('gateway_wills_delayed', 'Wills of MQTT 5 that wait for their delay.', ingest('willsDelayed')),
  counter(
    'gateway_wills_taken_early_total',
    'Wills that were taken before the end of their delay, because too many waited.',
    ingest('willsTakenEarly'),
  ),
  counter(
    'gateway_clients_taken_over_total',
    'Connections of clients whose earlier connection was still open.',
    ingest('takeOvers'),
  ),
  counter(
    'gateway_subscriptions_granted_total',
    'Topic filters that clients subscribed to and that were granted. Only rebirth requests are sent for them.',
    ingest('subscriptions'),
  ),
  counter(
    'gateway_subscriptions_refused_total',
    'Topic filters that clients subscribed to and that were refused (subscriptions: refuse).',
    ingest('subscriptionsRefused'),
  ),
  counter(
    'gateway_rebirths_requested_total',
    'Requests to nodes of Sparkplug to publish their births again.',
    ingest('rebirthsRequested'),
  ),
  counter(
    'gateway_rebirths_limited_total',
    'Rebirth requests that were not published, because the node had one shortly before.',
    ingest('rebirthsLimited'),
  ),
  counter(
    'gateway_rebirths_unreachable_total',
    'Rebirth requests that were not published: the client has not subscribed, or the bridge is not connected.',
    ingest('rebirthsUnreachable'),
  ),
  counter(
    'gateway_client_pauses_total',
    'Pauses in reading a client that sends more than its rate, by limit.',
    byReason('pausesByLimit'),
  ),
  gauge(
    'gateway_connections_unauthenticated',
    'Connections without an accepted CONNECT (max_unauthenticated).',
    ingest('unauthenticated'),
  ),
  counter(
    'gateway_passwords_computed_total',
    'Passwords of clients checked by computing their hash.',
    ingest('passwordsComputed'),
  ),
  counter(
    'gateway_passwords_remembered_total',
    'Passwords of clients answered without a computation, because the same one was checked before.',
    ingest('passwordsRemembered'),
  ),
  gauge(
    'gateway_passwords_waiting',
    'Passwords of clients that wait to be checked.',
    ingest('passwordsWaiting'),
  ),
  gauge(
    'gateway_partial_packet_bytes',
    'Memory of packets whose end has not arrived, as max_partial_bytes counts it.',
    ingest('partialBytes'),
  ),
]
