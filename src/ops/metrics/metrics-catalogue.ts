// metrics-catalogue.ts: every metric: its name, what it counts and where the number comes from. The numbers are read
// at the scrape from the counters of the stages, so that nothing is counted twice on the hot path.
//
// Names are `gateway_*`, units are base units, and every label has a bounded set of values.

import { fromLedger } from './ledger-metrics.ts'
import { fromMapping } from './mapping-metrics.ts'
import {
  byLane,
  byReason,
  counted,
  counter,
  gauge,
  ingest,
  oldest,
  one,
  openConditions,
  reasonsMax,
  spool,
  type Metric,
} from './metric-readings.ts'

const endpointStates = ['available', 'unavailable', 'unauthorized'] as const

const fromIngest: readonly Metric[] = [
  counter('gateway_messages_received_total', 'Messages that devices published.', ingest('received')),
  counter(
    'gateway_messages_acked_total',
    'Messages acknowledged: their payloads are on disk.',
    ingest('acked'),
  ),
  counter(
    'gateway_messages_mapped_total',
    'Messages that became at least one new payload.',
    ingest('mapped'),
  ),
  counter(
    'gateway_messages_duplicate_total',
    'Messages whose every payload was taken in before.',
    ingest('duplicates'),
  ),
  counter(
    'gateway_messages_ignored_total',
    'Messages left out on purpose, by source and reason.',
    (view) => byReason(view.stages.ingest?.counters().ignoredByReason),
    ['source', 'reason'],
  ),
  counter(
    'gateway_messages_dead_total',
    'Messages that became dead letters, by source and reason.',
    (view) => byReason(view.stages.ingest?.counters().deadByReason),
    ['source', 'reason'],
  ),
  counter(
    'gateway_clients_refused_total',
    'Clients whose CONNECT was refused, by reason.',
    (view) => counted(view.stages.ingest?.counters().refusedByReason),
    ['reason'],
  ),
  counter(
    'gateway_clients_dropped_total',
    'Connections that the gateway closed, by reason.',
    (view) => counted(view.stages.ingest?.counters().droppedByReason),
    ['reason'],
  ),
  counter(
    'gateway_messages_dropped_total',
    'QoS 0 messages that were lost. Alert on any increase.',
    ingest('dropped'),
  ),
  counter('gateway_ingest_bytes_total', 'Bytes of the messages received.', ingest('bytes')),
  gauge(
    'gateway_messages_held',
    'Messages whose ack is held because the spool takes nothing in.',
    ingest('held'),
  ),
  gauge('gateway_connections', 'Devices connected now.', ingest('connections')),
]

const fromLetters: readonly Metric[] = [
  counter(
    'gateway_dead_letters_requeued_total',
    'Payloads of dead letters that were sent again.',
    ({ stages }) => (stages.deadLetters ? one(stages.deadLetters.counters().requeued) : []),
  ),
  counter(
    'gateway_dead_letters_purged_total',
    'Dead letters that were deleted, by hand or by age. Their data is lost.',
    ({ stages }) =>
      (['operator', 'age'] as const).flatMap((by) =>
        stages.deadLetters ? [{ labels: { by }, value: stages.deadLetters.counters().purged[by] }] : [],
      ),
    ['by'],
  ),
  counter(
    'gateway_dead_letters_imported_total',
    'Payloads and messages that were taken in from a file.',
    ({ stages }) => (stages.deadLetters ? one(stages.deadLetters.counters().imported) : []),
  ),
]

const fromSpool: readonly Metric[] = [
  counter('gateway_payloads_appended_total', 'Payloads taken into the spool.', spool('payloads')),
  counter(
    'gateway_payloads_duplicate_total',
    'Payloads not stored because they were taken in before.',
    spool('duplicates'),
  ),
  counter('gateway_payloads_retried_total', 'Payloads moved to a retry lane.', spool('retried')),
  counter(
    'gateway_payloads_damaged_total',
    'Payloads that cannot be read any more. Alert on any increase.',
    spool('damaged'),
  ),
  counter('gateway_spool_commits_total', 'Durable writes of a group.', spool('groups')),
  gauge('gateway_payloads_pending', 'Payloads that no batch claims yet.', (view) => byLane(view, 'pending'), [
    'provider',
    'role',
  ]),
  gauge(
    'gateway_payloads_sealed',
    'Payloads in sealed batches that are not settled.',
    (view) => byLane(view, 'sealed'),
    ['provider', 'role'],
  ),
  gauge(
    'gateway_payloads_oldest_timestamp_seconds',
    'When the oldest pending payload was stored, Unix time.',
    oldest,
    ['provider', 'role'],
  ),
  gauge('gateway_spool_bytes', 'Bytes of payloads that wait in the spool.', spool('openBytes')),
  gauge('gateway_spool_limit_bytes', 'The limit of the spool (spool.max_bytes).', spool('bytesMax')),
  gauge('gateway_spool_disk_bytes', 'What the files of the spool use on the disk.', spool('diskBytes')),
  gauge('gateway_dead_letters', 'Dead letters kept now. Alert on any increase.', spool('deadLetters')),
  ...fromLetters,
  gauge('gateway_dead_letter_bytes', 'Bytes of the dead letters.', spool('deadLetterBytes')),
  gauge('gateway_quarantine_messages', 'Messages kept in quarantine now.', spool('quarantined')),
  gauge('gateway_quarantine_bytes', 'Bytes of the messages in quarantine.', spool('quarantineBytes')),
  gauge('gateway_deferred_messages', 'Messages that wait to be mapped by a worker.', spool('deferred')),
  gauge('gateway_deferred_bytes', 'Bytes of the messages that wait to be mapped.', spool('deferredBytes')),
  gauge('gateway_mapping_state_entries', 'Entries of durable state of the mapping.', spool('stateEntries')),
  gauge('gateway_mapping_state_bytes', 'Bytes of the state of the mapping.', spool('stateBytes')),
  counter(
    'gateway_payloads_exchanged_total',
    'Payloads made of what was kept, buried or open before.',
    spool('exchanged'),
  ),
  gauge('gateway_dedup_window_ids', 'payloadIds that the dedup window remembers.', spool('windowIds')),
  gauge(
    'gateway_spool_held',
    '1 while the spool takes nothing in, by reason.',
    ({ stages }) =>
      stages.spool?.holdReason ? [{ labels: { reason: stages.spool.holdReason }, value: 1 }] : [],
    ['reason'],
  ),
]

const fromDelivery: readonly Metric[] = [
  counter(
    'gateway_payloads_accepted_total',
    'Payloads that the ingestion API accepted, by the lane they came from.',
    (view) => [...view.acceptedByLane].map(([lane, value]) => ({ labels: { lane }, value })),
    ['lane'],
  ),
  counter(
    'gateway_payloads_dead_total',
    'Payloads that became dead letters after their retries.',
    ({ stages }) => (stages.delivery ? one(stages.delivery.counters().dead) : []),
  ),
  counter(
    'gateway_submissions_total',
    'Submissions, by what they came to.',
    ({ stages }) =>
      [...(stages.delivery?.counters().outcomes ?? [])]
        .slice(0, reasonsMax)
        .map(([outcome, value]) => ({ labels: { outcome }, value })),
    ['outcome'],
  ),
  counter('gateway_sent_bytes_total', 'Bytes of request bodies sent.', ({ stages }) =>
    stages.delivery ? one(stages.delivery.counters().bytesSent) : [],
  ),
  gauge(
    'gateway_endpoint_state',
    '1 for the state that the endpoint of a provider is in, else 0.',
    ({ stages }) =>
      (stages.delivery?.providers() ?? []).flatMap(({ name, endpoint }) =>
        endpointStates.map((state) => ({
          labels: { provider: name, state },
          value: endpoint === state ? 1 : 0,
        })),
      ),
    ['provider', 'state'],
  ),
  gauge(
    'gateway_submissions_in_flight',
    'Submissions that run now.',
    ({ stages }) =>
      (stages.delivery?.providers() ?? []).map(({ name, inFlight }) => ({
        labels: { provider: name },
        value: inFlight,
      })),
    ['provider'],
  ),
  gauge(
    'gateway_last_accepted_timestamp_seconds',
    'When the ingestion API last accepted something, Unix time.',
    ({ stages }) =>
      (stages.delivery?.providers() ?? []).flatMap(({ name, lastSuccessAt }) =>
        lastSuccessAt === null ? [] : [{ labels: { provider: name }, value: lastSuccessAt / 1000 }],
      ),
    ['provider'],
  ),
  gauge(
    'gateway_clock_offset_seconds',
    'Clock of the ingestion API minus ours.',
    ({ stages }) =>
      (stages.delivery?.providers() ?? []).flatMap(({ name, clockOffsetMs }) =>
        clockOffsetMs === null ? [] : [{ labels: { provider: name }, value: clockOffsetMs / 1000 }],
      ),
    ['provider'],
  ),
]

const fromProcess: readonly Metric[] = [
  gauge('gateway_condition', '1 while a condition is open.', ({ conditions }) => openConditions(conditions), [
    'code',
    'severity',
  ]),
  gauge('gateway_ready', '1 while the gateway is ready.', ({ ready }) => one(ready ? 1 : 0)),
  gauge(
    'gateway_build_info',
    '1, with the version as label.',
    ({ version }) => [{ labels: { version, node: process.version }, value: 1 }],
    ['version', 'node'],
  ),
  counter('gateway_log_lines_lost_total', 'Log lines left out because nobody read stdout.', (view) =>
    one(view.linesLost),
  ),
  gauge(
    'gateway_event_loop_lag_seconds',
    'Delay of the event loop since the last scrape.',
    ({ eventLoopLag }) => [
      { labels: { quantile: '0.5' }, value: eventLoopLag.p50S },
      { labels: { quantile: '0.99' }, value: eventLoopLag.p99S },
      { labels: { quantile: '1' }, value: eventLoopLag.maxS },
    ],
    ['quantile'],
  ),
  gauge('process_resident_memory_bytes', 'Resident memory.', () => one(process.memoryUsage.rss())),
  counter('process_cpu_seconds_total', 'CPU time, user and system.', () => {
    const { user, system } = process.cpuUsage()
    return one((user + system) / 1e6)
  }),
  gauge('process_start_time_seconds', 'When the process started, Unix time.', () =>
    one(performance.timeOrigin / 1000),
  ),
]

export const metricCatalogue: readonly Metric[] = [
  ...fromIngest,
  ...fromSpool,
  ...fromMapping,
  ...fromDelivery,
  ...fromLedger,
  ...fromProcess,
]

/** The one metric that is fed by events: it needs each duration. Buckets are in seconds. */
export const submissionDuration = {
  name: 'gateway_submission_duration_seconds',
  help: 'How long submissions took, by what they came to.',
  labels: ['outcome'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
} as const
