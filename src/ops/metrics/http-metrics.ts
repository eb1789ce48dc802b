// http-metrics.ts: the metrics of the HTTP server. See metrics-catalogue.ts.

import { counter, gauge, labelled, type Metric } from './metric-readings.ts'

export const httpMetrics: readonly Metric[] = [
  gauge(
    'gateway_certificate_expiry_timestamp_seconds',
    'When a certificate of the config ends, Unix time, by use (listener, client_ca, ops, bridge, delivery). Of a chain, ' +
      'when the first of its certificates ends.',
    labelled(['use', 'name'], ({ stages }) =>
      (stages.certificates?.certificates() ?? []).map(({ use, name, notAfterMs }) => ({
        labels: { use, name },
        value: notAfterMs / 1000,
      })),
    ),
  ),
  counter(
    'gateway_http_refused_total',
    'Requests and TLS handshakes on ops.listen that were refused, by reason.',
    labelled(['reason'], ({ http }) =>
      [...(http?.refused ?? [])].map(([reason, value]) => ({ labels: { reason }, value })),
    ),
  ),
  gauge('gateway_http_connections', 'Open connections to ops.listen.', ({ http }) => [
    { labels: {}, value: http?.open ?? 0 },
  ]),
  gauge('gateway_http_sessions', 'Sessions of users who are logged in with a browser.', ({ http }) => [
    { labels: {}, value: http?.sessions ?? 0 },
  ]),
  gauge('gateway_http_watchers', 'Pages that watch the gateway through /events.', ({ watchers }) => [
    { labels: {}, value: watchers.watchers },
  ]),
  counter(
    'gateway_http_watchers_refused_total',
    'Requests of /events that were refused, because too many watch.',
    ({ watchers }) => [{ labels: {}, value: watchers.refused }],
  ),
  counter(
    'gateway_http_events_missed_total',
    'Events that a page did not get, because it did not read the ones before.',
    ({ watchers }) => [{ labels: {}, value: watchers.missed }],
  ),
  counter(
    'gateway_http_connections_closed_total',
    'Idle connections to ops.listen that were closed to make room for others.',
    ({ http }) => [{ labels: {}, value: http?.closedForOthers ?? 0 }],
  ),
]
