// mapping-metrics.ts: the metrics of the mapping, the quarantine and deferred messages. See
// metrics-catalogue.ts. The counters of the mapping itself begin anew with each reload, as Prometheus expects
// of a restart.

import { releasedOf } from '../totals-status.ts'
import {
  bySource,
  byField,
  counter,
  gauge,
  ingest,
  labelled,
  mapping,
  type Metric,
} from './metric-readings.ts'

export const mappingMetrics: readonly Metric[] = [
  counter('gateway_messages_quarantined_total', 'Messages quarantined.', bySource('quarantinedByReason')),
  gauge(
    'gateway_messages_open',
    'Messages that wait to become one payload with others.',
    ingest('openParts'),
  ),
  counter('gateway_messages_released_total', 'Messages that left the quarantine.', mapping(releasedOf)),
  counter(
    'gateway_quarantine_corrected_total',
    'Messages whose clock verdict was made again because the clock of this machine was behind.',
    mapping(({ corrected }) => corrected.released + corrected.keptAgain),
  ),
  counter(
    'gateway_kept_messages_dead_total',
    'Quarantined or deferred messages that became dead letters.',
    mapping(
      ({ release, decisions, corrected, deferred }) =>
        release.dead + decisions.dead + corrected.dead + deferred.dead,
    ),
  ),
  counter(
    'gateway_quarantine_dropped_total',
    'Messages dropped from the quarantine by a command; they are dead letters.',
    mapping(({ decisions }) => decisions.dropped),
  ),
  gauge(
    'gateway_devices_releasing',
    'Devices whose messages are leaving the quarantine.',
    mapping(({ release }) => release.devices),
  ),
  gauge(
    'gateway_devices_seen',
    'Devices whose clock is known from their messages.',
    mapping(({ clocks }) => clocks.devices),
  ),
  counter(
    'gateway_device_times_total',
    'Device times by verdict: in the future, never set, a day old, replaced; since the last reload.',
    labelled(['verdict'], ({ stages }) => {
      const { future, unset, old, restamped } = stages.mapping?.view().clocks ?? {}
      return Object.entries({ future, unset, old, restamped }).flatMap(([verdict, value]) =>
        value === undefined ? [] : [{ labels: { verdict }, value }],
      )
    }),
  ),
  counter(
    'gateway_fields_omitted_total',
    'Fields omitted from payloads, since the last reload.',
    byField('omitted'),
  ),
  counter(
    'gateway_fields_flagged_total',
    'Fields sent although they are not plausible (`action: flag`), since the last reload.',
    byField('flagged'),
  ),
  gauge(
    'gateway_devices_position_swapped',
    'Devices whose latitude and longitude look swapped.',
    mapping(({ watched }) => watched.swapped),
  ),
  counter(
    'gateway_devices_not_watched_total',
    'Comparisons of positions, and values that are not plausible, of devices beyond those that are watched.',
    mapping(({ watched }) => watched.beyond),
  ),
  gauge(
    'gateway_mapping_timestamp_seconds',
    'When the mapping was put in force, Unix time.',
    mapping(({ since }) => since / 1000),
  ),
]
