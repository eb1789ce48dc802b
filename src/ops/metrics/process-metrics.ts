// process-metrics.ts: the metrics of the gateway as a whole and of its process. See metrics-catalogue.ts.

import { verdicts } from '../gateway-verdict/gateway-verdict.ts'
import { counter, gauge, labelled, one, openConditions, type Metric } from './metric-readings.ts'

export const processMetrics: readonly Metric[] = [
  gauge('gateway_condition', '1 while a condition is open.', openConditions),
  gauge('gateway_clock_known', '1 while the time of the gateway is known.', ({ stages }) =>
    one((stages.ourTime?.view().by ?? null) === null ? 0 : 1),
  ),
  gauge('gateway_ready', '1 while the gateway is ready, as `/readyz` says it.', ({ ready }) =>
    one(ready ? 1 : 0),
  ),
  gauge(
    'gateway_verdict',
    '1 for the verdict that holds now: ok, degraded, not_delivering or not_receiving.',
    labelled(['verdict'], ({ verdict: now }) =>
      verdicts.map((verdict) => ({ labels: { verdict }, value: verdict === now ? 1 : 0 })),
    ),
  ),
  gauge(
    'gateway_build_info',
    'Always 1, with the version as label.',
    labelled(['version', 'node'], ({ version }) => [
      { labels: { version, node: process.version }, value: 1 },
    ]),
  ),
  counter('gateway_log_lines_lost_total', 'Log lines lost because stdout was not read.', ({ linesLost }) =>
    one(linesLost),
  ),
  counter(
    'gateway_log_lines_suppressed_total',
    'Log lines not written because they repeat; the next line of their kind says how many.',
    ({ linesSuppressed }) => one(linesSuppressed),
  ),
  gauge(
    'gateway_event_loop_lag_p50_seconds',
    'Median delay of the event loop since the last scrape.',
    ({ eventLoopLag }) => one(eventLoopLag.p50S),
  ),
  gauge(
    'gateway_event_loop_lag_p99_seconds',
    'Delay of the event loop that one turn in a hundred exceeded since the last scrape.',
    ({ eventLoopLag }) => one(eventLoopLag.p99S),
  ),
  gauge(
    'gateway_event_loop_lag_max_seconds',
    'Longest delay of the event loop since the last scrape.',
    ({ eventLoopLag }) => one(eventLoopLag.maxS),
  ),
  gauge('process_resident_memory_bytes', 'Resident memory.', residentBytes),
  counter('process_cpu_seconds_total', 'Processor time, user and system.', () => {
    const { user, system } = process.cpuUsage()
    return one((user + system) / 1e6)
  }),
  gauge('process_start_time_seconds', 'When the process started, Unix time.', () =>
    one(performance.timeOrigin / 1000),
  ),
]

/** No sample where the system does not say it: it opens a file, and none may be free. */
function residentBytes() {
  try {
    return one(process.memoryUsage.rss())
  } catch {
    return []
  }
}
