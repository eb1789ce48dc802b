// unshown-facts.ts: the numbers that have a metric and no place in /status.

import type { MessageSourceStatus } from '../../ingest/ingest.ts'
import { keptStoreNames } from '../../domain/kept-store.ts'
import type { SpoolTotals } from '../../spool/spool.ts'
import { usedBytes } from '../conditions/fill-conditions.ts'
import { count, flag, group, list, offsetOrNull, timeOrNull, type Fact } from '../status-schema/fact.ts'
import { laterDeadOf } from '../status-schema/seen.ts'
import type { MetricsView } from './metrics-view.ts'

const unshown = ''

const ingest = group(unshown, ({ ingest }: MetricsView) => ingest, {
  mapped: count('Messages mapped to at least one new payload.', 'gateway_messages_mapped_total'),
  duplicates: count('Messages whose payloads are all duplicates.', 'gateway_messages_duplicate_total'),
  identifiersForgotten: count(
    'Packet identifiers of messages without a device time that were forgotten at the bound of their table.',
    'gateway_identifiers_forgotten_total',
  ),
  bytes: count('Size of the messages received.', 'gateway_ingest_bytes_total'),
  retained: count(
    'Messages of clients that came with the retain flag, wills included. The gateway takes each once, and keeps none for subscribers.',
    'gateway_messages_retain_flag_total',
  ),
  payloadFormatMismatches: count(
    'Messages of MQTT 5 whose sender says that they are UTF-8, and which are not. They are mapped as usual.',
    'gateway_payload_format_mismatches_total',
  ),
  willsDelayed: count('Wills of MQTT 5 that wait for their delay.', 'gateway_wills_delayed'),
  willsTakenEarly: count(
    'Wills that were taken before the end of their delay, because too many waited.',
    'gateway_wills_taken_early_total',
  ),
  takeOvers: count(
    'Connections of clients whose earlier connection was still open.',
    'gateway_clients_taken_over_total',
  ),
  subscriptions: count(
    'Topic filters that clients subscribed to and that were granted. Only rebirth requests are sent for them.',
    'gateway_subscriptions_granted_total',
  ),
  subscriptionsRefused: count(
    'Topic filters that clients subscribed to and that were refused (subscriptions: refuse).',
    'gateway_subscriptions_refused_total',
  ),
  rebirthsRequested: count(
    'Requests to nodes of Sparkplug to publish their births again.',
    'gateway_rebirths_requested_total',
  ),
  rebirthsLimited: count(
    'Rebirth requests that were not published, because the node had one shortly before.',
    'gateway_rebirths_limited_total',
  ),
  rebirthsUnreachable: count(
    'Rebirth requests that were not published: the client has not subscribed, or the bridge is not connected.',
    'gateway_rebirths_unreachable_total',
  ),
  unauthenticated: count(
    'Connections without an accepted CONNECT (max_unauthenticated).',
    'gateway_connections_unauthenticated',
  ),
  passwordsComputed: count(
    'Passwords of clients checked by computing their hash.',
    'gateway_passwords_computed_total',
  ),
  passwordsRemembered: count(
    'Passwords of clients answered without a computation, because the same one was checked before.',
    'gateway_passwords_remembered_total',
  ),
})

const bridges = list(
  unshown,
  ({ stages }: MetricsView) =>
    (stages.ingest?.messageSources?.() ?? []).filter(({ kind }) => kind !== 'broker'),
  {
    redelivered: count(
      'Messages of a bridge that its broker had delivered before.',
      'gateway_message_source_redelivered_total',
    ),
    retainedIgnored: count(
      'Retained messages of a bridge that were ignored.',
      'gateway_message_source_retained_ignored_total',
    ),
    losses: count(
      'Connections of a bridge, and tries to connect, that ended. Alert on a steady increase.',
      'gateway_message_source_losses_total',
      ({ links }) => links.reduce((sum, { losses }) => sum + losses, 0),
    ),
    outstanding: count(
      'Messages of a bridge that wait for their acknowledgement.',
      'gateway_message_source_outstanding',
    ),
    active: count(
      'Queues of a bridge to RabbitMQ or NATS whose messages come to this gateway. Alert where the sum over the gateways is below their number.',
      'gateway_message_source_partitions_active',
      activePartitions,
    ),
    connections: count(
      'Connections of a bridge.',
      'gateway_message_source_connections',
      ({ links }) => links.length,
    ),
    open: count(
      'Connections of a bridge that are connected. Alert when it is below gateway_message_source_connections.',
      'gateway_message_source_connections_open',
      ({ links }) => links.filter(({ state }) => state === 'connected').length,
    ),
    isSilent: flag(
      '1 while a bridge is connected and brings no messages for longer than silent_after.',
      'gateway_message_source_silent',
    ),
  },
  { message_source: 'name' },
)

function activePartitions({ traits, partitions }: MessageSourceStatus): number | null {
  return traits.partitioned ? partitions.filter(({ role }) => role === 'active').length : null
}

const mapping = group(unshown, ({ mapping }: MetricsView) => mapping, {
  corrected: count(
    'Messages whose clock verdict was made again because the clock of this machine was behind.',
    'gateway_quarantine_corrected_total',
    ({ corrected }) => corrected.released + corrected.keptAgain,
  ),
  dead: count(
    'Quarantined or deferred messages that became dead letters.',
    'gateway_kept_messages_dead_total',
    laterDeadOf,
  ),
  dropped: count(
    'Messages dropped from the quarantine by a command; they are dead letters.',
    'gateway_quarantine_dropped_total',
    ({ decisions }) => decisions.dropped,
  ),
  releasing: count(
    'Devices whose messages are leaving the quarantine.',
    'gateway_devices_releasing',
    ({ release }) => release.devices,
  ),
  seen: count(
    'Devices whose clock is known from their messages.',
    'gateway_devices_seen',
    ({ clocks }) => clocks.devices,
  ),
})

const spool = group(unshown, ({ totals }: MetricsView) => totals, {
  exchanged: count(
    'Payloads made from kept messages, dead letters or open records.',
    'gateway_payloads_exchanged_total',
  ),
  groups: count('Durable writes.', 'gateway_spool_commits_total'),
  used: count(
    'Size of all that the limit of the spool counts: payloads, kept messages, mapping state and receipts.',
    'gateway_spool_used_bytes',
    usedBytes,
  ),
  deadLetterBytes: count('Size of the dead letters.', 'gateway_dead_letter_bytes'),
  quarantineBytes: count('Size of the messages in quarantine.', 'gateway_quarantine_bytes'),
  deferredBytes: count('Size of the messages that a version before 0.2 deferred.', 'gateway_deferred_bytes'),
  stateEntries: count(
    'Records of mapping state in the database. One may be about many devices.',
    'gateway_mapping_state_entries',
  ),
  stateBytes: count('Size of the mapping state.', 'gateway_mapping_state_bytes'),
  lateMoved: count(
    'Entries of devices that were written a second time, because more devices send in turn than are kept together.',
    'gateway_mapping_state_moved_total',
  ),
  windowIds: count('payloadIds in the dedup window.', 'gateway_dedup_window_ids'),
  stores: list(
    unshown,
    ({ stores }: SpoolTotals) => keptStoreNames.map((store) => ({ store, ...stores[store] })),
    {
      names: count(
        'Devices and clients with a share of their own in a store; 10000 of each at most.',
        'gateway_kept_names',
        ({ devices, clients }) => devices + clients,
      ),
    },
    { store: 'store' },
  ),
})

const deadLetters = group(unshown, ({ stages }: MetricsView) => stages.deadLetters?.counters(), {
  requeued: count('Dead letters sent again.', 'gateway_dead_letters_requeued_total'),
  imported: count('Entries taken from a file.', 'gateway_dead_letters_imported_total'),
})

const delivery = group(unshown, ({ delivery }: MetricsView) => delivery, {
  discarded: count(
    'Payloads deleted by `batches drop --discard`. Their data is lost. Counted as dead, too.',
    'gateway_payloads_discarded_total',
  ),
  bytesSent: count('Size of the request bodies sent.', 'gateway_sent_bytes_total'),
  senderThreadsLost: count('Losses of the thread that sends batches.', 'gateway_sender_threads_lost_total'),
})

const providers = list(
  unshown,
  (view: MetricsView) => view.providers,
  {
    settling: count(
      'Batches that the service has accepted, and whose settle is not on the disk yet.',
      'gateway_batches_settling',
    ),
  },
  { provider: 'name' },
)

/** No metric has a device as a label: a person asks /devices about one. */
const devices = group(unshown, (view: MetricsView) => view.devices, {
  waiting: count('Records that changed and are not on the disk.', 'gateway_device_records_waiting'),
  evicted: count(
    'Records of quiet devices removed at ops.devices.max.',
    'gateway_device_records_evicted_total',
  ),
  notRecorded: count(
    'Messages of devices without a record, because ops.devices.max others have one.',
    'gateway_devices_not_recorded_total',
  ),
  expired: count('Records removed at ops.devices.retention.', 'gateway_device_records_expired_total'),
  ringBytes: count('Memory for the last messages of devices.', 'gateway_device_message_bytes'),
  notKept: count(
    'Messages that `devices show` does not have: messages_max_bytes is reached, or 5000 came in a second.',
    'gateway_device_messages_not_kept_total',
  ),
  unreadable: count('Stored records that cannot be read.', 'gateway_device_records_unreadable_total'),
})

const http = group(unshown, ({ http }: MetricsView) => http ?? { open: 0, sessions: 0, closedForOthers: 0 }, {
  open: count('Open connections to ops.listen.', 'gateway_http_connections'),
  sessions: count('Sessions of users who are logged in with a browser.', 'gateway_http_sessions'),
  closedForOthers: count(
    'Idle connections to ops.listen that were closed to make room for others.',
    'gateway_http_connections_closed_total',
  ),
})

/** One sample for each receiver and heartbeat. */
const receivers = list(
  unshown,
  ({ stages }: MetricsView) => stages.alerts?.receivers(),
  {
    sent: count('Alerts that a receiver took, and requests of a heartbeat.', 'gateway_alerts_sent_total'),
    failed: count('Tries to send an alert or a heartbeat that failed.', 'gateway_alerts_failed_total'),
    dropped: count(
      'Changes of conditions that were undone before a receiver could get them. The next alert has their number.',
      'gateway_alerts_dropped_total',
    ),
    waiting: count('Changes of conditions that wait to be sent to a receiver.', 'gateway_alerts_waiting'),
    lastSentAt: timeOrNull(
      'When a receiver last took an alert or a heartbeat, Unix time. Absent before the first.',
      'gateway_alerts_last_sent_timestamp_seconds',
    ),
  },
  { receiver: 'name' },
)

const log = group(unshown, (view: MetricsView) => view, {
  linesLost: count('Log lines lost because stdout was not read.', 'gateway_log_lines_lost_total'),
  linesSuppressed: count(
    'Log lines not written because they repeat; the next line of their kind says how many.',
    'gateway_log_lines_suppressed_total',
  ),
})

const eventLoop = group(unshown, ({ eventLoopLag }: MetricsView) => eventLoopLag, {
  p50S: count(
    'Median delay of the event loop since the last scrape, of a sample a second.',
    'gateway_event_loop_lag_p50_seconds',
  ),
  p99S: count(
    'Delay of the event loop that one sample in a hundred exceeded since the last scrape.',
    'gateway_event_loop_lag_p99_seconds',
  ),
  maxS: count('Longest delay of the event loop since the last scrape.', 'gateway_event_loop_lag_max_seconds'),
})

/** It can be read without the gateway. */
export const processFacts = group(unshown, () => process, {
  resident: count('Resident memory.', 'process_resident_memory_bytes', residentBytes),
  cpu: count('Processor time, user and system.', 'process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }),
  start: offsetOrNull(
    'When the process started, Unix time.',
    'process_start_time_seconds',
    () => performance.timeOrigin,
  ),
})

/** No sample where the system does not say it: it opens a file, and none may be free. */
function residentBytes(): number | null {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}

export const unshownFacts: readonly Fact<MetricsView>[] = [
  ingest,
  bridges,
  mapping,
  spool,
  deadLetters,
  delivery,
  providers,
  devices,
  http,
  receivers,
  log,
  eventLoop,
  processFacts,
]
