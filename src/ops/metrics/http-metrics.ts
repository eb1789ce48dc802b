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
  counter(
    'gateway_http_connections_closed_total',
    'Idle connections to ops.listen that were closed to make room for others.',
    ({ http }) => [{ labels: {}, value: http?.closedForOthers ?? 0 }],
  ),
]
