// metrics-catalogue.ts: every metric: its name, what it counts and where the number comes from. The numbers
// are read at the scrape from the counters of the stages, so that nothing is counted twice on the hot path.
//
//   ../status-schema/    the numbers of /status have their metrics there
//   unshown-facts.ts     those that have no place in /status
//   labelled-metrics.ts  those by reason, outcome and state
//
// Names are `gateway_*`, units are base units, every label has a bounded set of values, and a value is a
// stable code.

import type { Metric } from '../status-schema/fact.ts'
import { statusMetrics } from '../status-schema/status-schema.ts'
import { labelledMetrics } from './labelled-metrics.ts'
import type { MetricsView } from './metrics-view.ts'
import { unshownFacts } from './unshown-facts.ts'

const all: readonly Metric<MetricsView>[] = [
  ...statusMetrics,
  ...unshownFacts.flatMap(({ metrics }) => metrics('')),
  ...labelledMetrics,
]

export const metricCatalogue = all.toSorted((one, other) => (one.name < other.name ? -1 : 1))

/** They need each duration: of submissions, writes of the spool, waits for acks. Buckets are in seconds. */
export const durationHistograms = [
  {
    name: 'gateway_submission_duration_seconds',
    help: 'Duration of submissions, by outcome.',
    labels: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  {
    name: 'gateway_spool_write_duration_seconds',
    help: 'Duration of writes to the spool with their fsync. One that runs is not in it.',
    labels: [],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
  {
    name: 'gateway_ack_wait_seconds',
    help: 'From the first message of a write to the spool to its acknowledgement (ingest.ack_delay_max).',
    labels: [],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.5, 1, 2.5, 5, 10, 30],
  },
] as const
