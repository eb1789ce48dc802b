// alert-metrics.ts: the metrics of alerts. See metrics-catalogue.ts.

import type { AlertReceiverView } from '../../alerts/types.ts'
import { counter, gauge, labelled, type Metric } from './metric-readings.ts'

/** One sample for each receiver and heartbeat; none where the value is null. */
function perReceiver(read: (receiver: AlertReceiverView) => number | null) {
  return labelled(['receiver'], ({ stages }) =>
    (stages.alerts?.receivers() ?? []).flatMap((receiver) => {
      const value = read(receiver)
      return value === null ? [] : [{ labels: { receiver: receiver.name }, value }]
    }),
  )
}

export const alertMetrics: readonly Metric[] = [
  counter(
    'gateway_alerts_sent_total',
    'Alerts that a receiver took, and requests of a heartbeat.',
    perReceiver(({ sent }) => sent),
  ),
  counter(
    'gateway_alerts_failed_total',
    'Tries to send an alert or a heartbeat that failed.',
    perReceiver(({ failed }) => failed),
  ),
  counter(
    'gateway_alerts_dropped_total',
    'Changes of conditions that were undone before a receiver could get them. The next alert has their number.',
    perReceiver(({ dropped }) => dropped),
  ),
  gauge(
    'gateway_alerts_waiting',
    'Changes of conditions that wait to be sent to a receiver.',
    perReceiver(({ waiting }) => waiting),
  ),
  gauge(
    'gateway_alerts_last_sent_timestamp_seconds',
    'When a receiver last took an alert or a heartbeat, Unix time. Absent before the first.',
    perReceiver(({ lastSentAt }) => (lastSentAt === null ? null : lastSentAt / 1000)),
  ),
]
