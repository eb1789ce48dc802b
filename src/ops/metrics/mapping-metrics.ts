// mapping-metrics.ts: the metrics of what stands around the mapping: what is put aside, and what becomes of it later.
// See metrics-catalogue.ts. The mapping's own counters begin anew with each reload, as Prometheus expects of a restart.

import { byField, byReason, counter, fromView, gauge, ingest, type Metric } from './metric-readings.ts'

export const fromMapping: readonly Metric[] = [
  counter(
    'gateway_messages_quarantined_total',
    'Messages kept whole until their device or its clock is judged, by source and reason.',
    (view) => byReason(view.stages.ingest?.counters().quarantinedByReason),
    ['source', 'reason'],
  ),
  counter(
    'gateway_messages_deferred_total',
    'Messages kept whole until their expression is evaluated.',
    ingest('deferred'),
  ),
  gauge(
    'gateway_messages_open',
    'Messages that wait to become one payload with others.',
    ingest('openParts'),
  ),
  counter('gateway_messages_released_total', 'Messages that left the quarantine.', (view) =>
    fromView(
      view,
      ({ release, decisions: verdicts }) => release.released + verdicts.released + verdicts.dropped,
    ),
  ),
  counter('gateway_messages_evaluated_total', 'Deferred messages that were mapped.', (view) =>
    fromView(view, ({ deferral }) => deferral.evaluated),
  ),
  counter(
    'gateway_expression_timeouts_total',
    'Expressions that were stopped because they took too long.',
    (view) => fromView(view, ({ deferral }) => deferral.timeouts),
  ),
  counter(
    'gateway_kept_messages_dead_total',
    'Messages that became dead letters after they had been quarantined or deferred.',
    (view) =>
      fromView(
        view,
        ({ release, decisions: verdicts, deferral }) => release.dead + verdicts.dead + deferral.dead,
      ),
  ),
  counter(
    'gateway_quarantine_dropped_total',
    'Messages that a person dropped from the quarantine; they are dead letters.',
    (view) => fromView(view, ({ decisions: verdicts }) => verdicts.dropped),
  ),
  gauge('gateway_devices_releasing', 'Devices whose messages are leaving the quarantine.', (view) =>
    fromView(view, ({ release }) => release.devices),
  ),
  gauge('gateway_devices_seen', 'Devices whose clock is known from their messages.', (view) =>
    fromView(view, ({ clocks }) => clocks.devices),
  ),
  counter(
    'gateway_device_times_total',
    'Device times from the future, of clocks that were never set, a day and more old, and replaced by the arrival; ' +
      'since the last reload.',
    ({ stages }) => {
      const { future, unset, old, restamped } = stages.mapping?.view().clocks ?? {}
      return Object.entries({ future, unset, old, restamped }).flatMap(([verdict, value]) =>
        value === undefined ? [] : [{ labels: { verdict }, value }],
      )
    },
    ['verdict'],
  ),
  counter(
    'gateway_fields_omitted_total',
    'Fields that were left out of payloads, by source, field and reason; since the last reload.',
    ({ stages }) => byField(stages.mapping?.view().omitted),
    ['source', 'field', 'reason'],
  ),
  gauge('gateway_mapping_timestamp_seconds', 'When the mapping was put in force, Unix time.', (view) =>
    fromView(view, ({ since }) => since / 1000),
  ),
]
