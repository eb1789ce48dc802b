// metrics-catalogue.ts: every metric: its name, what it counts and where the number comes from. The numbers
// are read at the scrape from the counters of the stages, so that nothing is counted twice on the hot path.
//
// Names are `gateway_*`, units are base units, every label has a bounded set of values, and a value is a
// stable code.

import { usedBytes } from '../conditions/fill-conditions.ts'
import { oldestOf } from '../lane-age.ts'
import { alertMetrics } from './alert-metrics.ts'
import { deviceMetrics } from './device-metrics.ts'
import { httpMetrics } from './http-metrics.ts'
import { clientMetrics } from './client-metrics.ts'
import { mappingMetrics } from './mapping-metrics.ts'
import { custodyMetrics } from './custody-metrics.ts'
import { messageSourceMetrics } from './message-source-metrics.ts'
import { processMetrics } from './process-metrics.ts'
import {
  bySource,
  counter,
  deadLetters,
  gauge,
  ingest,
  labelCode,
  labelled,
  lanes,
  one,
  providers,
  samplesOf,
  spool,
  type Metric,
  perStore,
  ledger,
} from './metric-readings.ts'

// The metrics of the ledger.

const ledgerMetrics: readonly Metric[] = [
  gauge('gateway_ledger_records', 'Settled payloads in the ledger.', ledger('records')),
  gauge('gateway_ledger_bytes', 'Size of the ledger.', ledger('bytes')),
  gauge('gateway_ledger_behind_receipts', 'Settled batches not yet copied to the ledger.', ledger('behind')),
  gauge('gateway_ledger_behind_bytes', 'Size of the receipts not yet copied.', ledger('behindBytes')),
  counter('gateway_ledger_dropped_total', 'Payloads removed at ledger.max_bytes.', ledger('dropped')),
  counter('gateway_ledger_expired_total', 'Payloads removed at ledger.retention.', ledger('expired')),
  counter('gateway_ledger_missed_total', 'Settled batches whose receipt did not fit.', ledger('missed')),
  counter('gateway_ledger_reread_total', 'Receipts read from the disk to be copied.', ledger('reread')),
  counter('gateway_ledger_damaged_total', 'Receipts that cannot be read.', ledger('damaged')),
]

// The metrics of the stores of kept messages.

const keptMetrics: readonly Metric[] = [
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

const endpointStates = ['available', 'unavailable', 'unauthorized'] as const
const sum = (a: number, b: number) => a + b

const ingestMetrics: readonly Metric[] = [
  counter('gateway_messages_received_total', 'Messages that devices published.', ingest('received')),
  counter('gateway_messages_acked_total', 'Messages acknowledged: their data is on disk.', ingest('acked')),
  counter('gateway_messages_mapped_total', 'Messages mapped to at least one new payload.', ingest('mapped')),
  counter(
    'gateway_messages_duplicate_total',
    'Messages whose payloads are all duplicates.',
    ingest('duplicates'),
  ),
  counter(
    'gateway_messages_resend_stored_total',
    'Messages without a device time that came with DUP and were stored: nothing shows that they were stored before.',
    ingest('resendsStored'),
  ),
  counter(
    'gateway_identifiers_forgotten_total',
    'Packet identifiers of messages without a device time that were forgotten at the bound of their table.',
    ingest('identifiersForgotten'),
  ),
  counter(
    'gateway_messages_ignored_total',
    'Messages ignored on purpose, by source and reason.',
    bySource('ignoredByReason'),
  ),
  counter(
    'gateway_messages_dead_total',
    'Messages that became dead letters, by source and reason.',
    bySource('deadByReason'),
  ),
  counter('gateway_messages_dropped_total', 'QoS 0 messages lost. Alert on any increase.', ingest('dropped')),
  counter('gateway_ingest_bytes_total', 'Size of the messages received.', ingest('bytes')),
  gauge(
    'gateway_last_message_timestamp_seconds',
    'When the last message came, Unix time. Absent until one comes.',
    ({ stages }) => one(secondsOrNull(stages.ingest?.counters().lastMessageAt ?? null) ?? undefined),
  ),
  gauge('gateway_messages_held', 'Messages whose acknowledgement is held.', ingest('held')),
  gauge('gateway_connections', 'Connections of devices.', ingest('connections')),
  ...clientMetrics,
  ...messageSourceMetrics,
  ...custodyMetrics,
  gauge('gateway_sessions', 'Stored sessions of clients without Clean Session.', ingest('sessions')),
  counter(
    'gateway_sessions_evicted_total',
    'Stored sessions removed at the limit (max_sessions).',
    ingest('sessionsEvicted'),
  ),
  counter('gateway_sessions_expired_total', 'Stored sessions that expired.', ingest('sessionsExpired')),
]

const spoolMetrics: readonly Metric[] = [
  counter('gateway_payloads_appended_total', 'Payloads appended to the spool.', spool('payloads')),
  counter(
    'gateway_payloads_duplicate_total',
    'Payloads not stored because they are duplicates.',
    spool('duplicates'),
  ),
  counter('gateway_payloads_retried_total', 'Payloads moved to a retry lane.', spool('retried')),
  counter(
    'gateway_payloads_returned_total',
    'Payloads removed, because they are parked in a queue of the engine.',
    spool('returned'),
  ),
  counter(
    'gateway_payloads_damaged_total',
    'Payloads that cannot be read. Alert on any increase.',
    spool('damaged'),
  ),
  counter(
    'gateway_records_missing_total',
    'Kept messages, dead letters and entries of mapping state that were counted and are missing. ' +
      'Alert on any increase.',
    spool('recordsMissing'),
  ),
  counter(
    'gateway_payloads_exchanged_total',
    'Payloads made from kept messages, dead letters or open records.',
    spool('exchanged'),
  ),
  counter('gateway_spool_commits_total', 'Durable writes.', spool('groups')),
  gauge(
    'gateway_payloads_pending',
    'Payloads that are in no batch yet.',
    lanes(({ pending }) => pending, sum),
  ),
  gauge(
    'gateway_payloads_sealed',
    'Payloads in sealed batches that are not settled.',
    lanes(({ sealed }) => sealed, sum),
  ),
  gauge(
    'gateway_payloads_oldest_timestamp_seconds',
    'When the oldest payload that is not settled was stored, Unix time. Sealed ones count.',
    lanes((lane) => secondsOrNull(oldestOf(lane)), Math.min),
  ),
  gauge('gateway_spool_bytes', 'Size of the payloads in the spool.', spool('openBytes')),
  gauge(
    'gateway_spool_used_bytes',
    'Size of all that the limit of the spool counts: payloads, kept messages, mapping state and receipts.',
    ({ stages }) => {
      const totals = stages.spool?.totals()
      return one(totals && usedBytes(totals))
    },
  ),
  gauge('gateway_spool_limit_bytes', 'Limit of the spool (spool.max_bytes).', spool('bytesMax')),
  gauge('gateway_spool_disk_bytes', 'Size of the files of the spool.', spool('diskBytes')),
  gauge('gateway_spool_disk_free_bytes', 'Free space on the file system of the spool.', ({ stages }) =>
    one(stages.spool?.totals().freeBytes ?? undefined),
  ),
  gauge(
    'gateway_spool_disk_free_limit_bytes',
    'Free space below which nothing is acknowledged (spool.min_free_bytes).',
    spool('freeBytesMin'),
  ),
  gauge(
    'gateway_spool_held',
    '1 while the spool accepts no messages, by reason.',
    labelled(['reason'], ({ stages }) => {
      const reason = stages.spool?.holdReason() ?? null
      return reason === null ? [] : [{ labels: { reason }, value: 1 }]
    }),
  ),
  gauge('gateway_dead_letters', 'Dead letters in the spool. Alert on any increase.', spool('deadLetters')),
  gauge('gateway_dead_letter_bytes', 'Size of the dead letters.', spool('deadLetterBytes')),
  counter('gateway_dead_letters_requeued_total', 'Dead letters sent again.', deadLetters('requeued')),
  counter('gateway_dead_letters_imported_total', 'Entries taken from a file.', deadLetters('imported')),
  counter(
    'gateway_dead_letters_purged_total',
    'Dead letters deleted, by a command or by age. Their data is lost.',
    labelled(['by'], ({ stages }) =>
      Object.entries(stages.deadLetters?.counters().purged ?? {}).map(([by, value]) => ({
        labels: { by },
        value,
      })),
    ),
  ),
  gauge('gateway_quarantine_messages', 'Messages in quarantine.', spool('quarantined')),
  gauge('gateway_quarantine_bytes', 'Size of the messages in quarantine.', spool('quarantineBytes')),
  gauge(
    'gateway_deferred_messages',
    'Messages that a version before 0.2 deferred, and that are being mapped.',
    spool('deferred'),
  ),
  gauge(
    'gateway_deferred_bytes',
    'Size of the messages that a version before 0.2 deferred.',
    spool('deferredBytes'),
  ),
  gauge(
    'gateway_mapping_state_entries',
    'Records of mapping state in the database. One may be about many devices.',
    spool('stateEntries'),
  ),
  gauge('gateway_mapping_state_bytes', 'Size of the mapping state.', spool('stateBytes')),
  counter(
    'gateway_mapping_state_moved_total',
    'Entries of devices that were written a second time, because more devices send in turn than are kept together.',
    spool('lateMoved'),
  ),
  gauge('gateway_dedup_window_ids', 'payloadIds in the dedup window.', spool('windowIds')),
]

const deliveryMetrics: readonly Metric[] = [
  counter(
    'gateway_payloads_accepted_total',
    'Payloads that the service accepted, by the role of their lane.',
    labelled(['lane'], ({ acceptedByLane }) => samplesOf(acceptedByLane, (lane) => ({ lane }))),
  ),
  counter(
    'gateway_payloads_dead_total',
    'Payloads that became dead letters after their retries.',
    ({ stages }) => one(stages.delivery?.counters().dead),
  ),
  counter(
    'gateway_payloads_discarded_total',
    'Payloads deleted by `batches drop --discard`. Their data is lost. Counted as dead, too.',
    ({ stages }) => one(stages.delivery?.counters().discarded),
  ),
  counter(
    'gateway_submissions_total',
    'Submissions, by outcome.',
    labelled(['outcome'], ({ stages }) =>
      samplesOf(stages.delivery?.counters().outcomes, (outcome) => ({ outcome: labelCode(outcome) })),
    ),
  ),
  counter('gateway_sent_bytes_total', 'Size of the request bodies sent.', ({ stages }) =>
    one(stages.delivery?.counters().bytesSent),
  ),
  counter('gateway_sender_threads_lost_total', 'Losses of the thread that sends batches.', ({ stages }) =>
    one(stages.delivery?.counters().senderThreadsLost),
  ),
  gauge(
    'gateway_endpoint_state',
    '1 for the state of the endpoint of a provider, else 0.',
    labelled(['provider', 'state'], ({ stages }) =>
      (stages.delivery?.providers() ?? []).flatMap(({ name, endpoint }) =>
        endpointStates.map((state) => ({
          labels: { provider: name, state },
          value: endpoint === state ? 1 : 0,
        })),
      ),
    ),
  ),
  gauge(
    'gateway_submissions_in_flight',
    'Submissions that run now.',
    providers(({ inFlight }) => inFlight),
  ),
  gauge(
    'gateway_batches_settling',
    'Batches that the service has accepted, and whose settle is not on the disk yet.',
    providers(({ settling }) => settling),
  ),
  gauge(
    'gateway_last_accepted_timestamp_seconds',
    'When the service last accepted a payload, Unix time. Absent until it does.',
    providers(({ lastAcceptedAt }) => secondsOrNull(lastAcceptedAt)),
  ),
  gauge(
    'gateway_clock_offset_seconds',
    'Clock of the service minus clock of this machine.',
    providers(({ clockOffsetMs }) => secondsOrNull(clockOffsetMs)),
  ),
]

export const metricCatalogue: readonly Metric[] = [
  ...ingestMetrics,
  ...spoolMetrics,
  ...mappingMetrics,
  ...keptMetrics,
  ...deliveryMetrics,
  ...ledgerMetrics,
  ...deviceMetrics,
  ...httpMetrics,
  ...alertMetrics,
  ...processMetrics,
]

/** They need each duration: of submissions, and of writes to the spool. Buckets are in seconds. */
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
] as const

function secondsOrNull(ms: number | null): number | null {
  return ms === null ? null : ms / 1000
}
