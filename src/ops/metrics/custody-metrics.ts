// custody-metrics.ts: the metrics of custody `delivered`; none in custody `spool`. See metrics-catalogue.ts.

import type { CustodyView } from '../../ingest/ingest.ts'
import { counter, gauge, labelled, type Metric } from './metric-readings.ts'

function custody(read: (view: CustodyView) => number) {
  return labelled([], ({ stages }) => {
    const view = stages.ingest?.custody?.() ?? null
    return view === null ? [] : [{ labels: {}, value: read(view) }]
  })
}

export const custodyMetrics: readonly Metric[] = [
  gauge(
    'gateway_custody_outstanding',
    'Messages that are in the spool and not acknowledged to the engine (custody delivered).',
    custody(({ outstanding }) => outstanding),
  ),
  gauge(
    'gateway_custody_oldest_seconds',
    'Age of the oldest of them; 0 for none. Alert above park_after plus 30 s.',
    custody(({ oldestMs }) => (oldestMs ?? 0) / 1000),
  ),
  gauge(
    'gateway_custody_holds',
    '1 while nothing is taken from the engine, because the ingestion API accepts nothing.',
    custody(({ holds }) => (holds ? 1 : 0)),
  ),
  counter(
    'gateway_custody_parked_total',
    'Payloads and messages that were stored in the queue of parked entries of the engine.',
    custody(({ parked }) => parked),
  ),
  counter(
    'gateway_custody_taken_back_total',
    'Parked entries that came back.',
    custody(({ takenBack }) => takenBack),
  ),
  counter(
    'gateway_custody_parked_duplicates_total',
    'Parked entries that the engine delivered again and that were known.',
    custody(({ parkedDuplicates }) => parkedDuplicates),
  ),
  counter(
    'gateway_custody_refused_entries_total',
    'Parked entries that could not be read, or whose provider is not in the config. They are dead letters.',
    custody(({ refusedEntries }) => refusedEntries),
  ),
  counter(
    'gateway_custody_parked_and_released_total',
    'Messages that were released while they were being parked. They come twice, with the same payloadId.',
    custody(({ parkedAndReleased }) => parkedAndReleased),
  ),
  counter(
    'gateway_custody_dead_copies_total',
    'Dead letters that were copied to the engine.',
    custody(({ copied }) => copied),
  ),
  counter(
    'gateway_custody_store_failures_total',
    'Entries that the engine did not confirm, by tries. Nothing of them is removed or acknowledged.',
    custody(({ storeFailures }) => storeFailures),
  ),
]
