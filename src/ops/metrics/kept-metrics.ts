// kept-metrics.ts: the metrics of the stores of kept messages. See metrics-catalogue.ts.

import { counter, gauge, perStore, type Metric } from './metric-readings.ts'

export const keptMetrics: readonly Metric[] = [
  counter(
    'gateway_messages_evicted_total',
    'Kept messages dropped to make room, by store. Their data is lost. Alert on any increase.',
    perStore((totals, store) => totals.evicted[store]),
  ),
  gauge(
    'gateway_kept_bytes',
    'Size of a store of kept messages.',
    perStore(({ stores }, store) => stores[store].bytes),
  ),
  gauge(
    'gateway_kept_limit_bytes',
    'Limit of a store.',
    perStore(({ stores }, store) => stores[store].bytesMax),
  ),
  gauge(
    'gateway_kept_names',
    'Devices and clients with a share of their own in a store; 10000 of each at most.',
    perStore(({ stores }, store) => stores[store].devices + stores[store].clients),
  ),
]
