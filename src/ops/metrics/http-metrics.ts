// http-metrics.ts: the metrics of the HTTP server. See metrics-catalogue.ts.

import { counter, gauge, labelled, type Metric } from './metric-readings.ts'

export const httpMetrics: readonly Metric[] = [
  counter(
    'gateway_http_refused_total',
    'Requests on ops.listen that were refused, by reason.',
    labelled(['reason'], ({ http }) =>
      [...(http?.refused ?? [])].map(([reason, value]) => ({ labels: { reason }, value })),
    ),
  ),
  gauge('gateway_http_connections', 'Open connections to ops.listen.', ({ http }) => [
    { labels: {}, value: http?.open ?? 0 },
  ]),
  counter(
    'gateway_http_connections_closed_total',
    'Idle connections to ops.listen that were closed to make room for others.',
    ({ http }) => [{ labels: {}, value: http?.closedForOthers ?? 0 }],
  ),
]
