// ingest-facts.ts: the facts of incoming messages: their sources, clients, and custody.

import { z } from 'zod'
import type { IngestCounters, ReasonCount } from '../../ingest/ingest.ts'
import {
  count,
  countOrNull,
  fact,
  flag,
  group,
  list,
  maybe,
  secondsOrNull,
  text,
  textOrNull,
  time,
  timeOrNull,
  word,
  wordOrNull,
} from './fact.ts'
import { listMax, type Seen } from './seen.ts'

export const waiting = group('Messages that wait in memory now.', ({ ingest }: Seen) => ingest, {
  heldMessages: count(
    'Messages that wait without an acknowledgement, because they cannot be stored.',
    'gateway_messages_held',
    ({ held }) => held,
  ),
  openMessages: count(
    'Messages that wait to become one payload with others.',
    'gateway_messages_open',
    ({ openParts }) => openParts,
  ),
})

export const reasons = list(
  'Messages that gave no payload, by source and reason. At most 200 of each kind.',
  ({ ingest }: Seen) => [
    ...listed('ignored', ingest?.ignoredByReason),
    ...listed('unmappable', ingest?.deadByReason),
    ...listed('quarantined', ingest?.quarantinedByReason),
  ],
  {
    kind: word('What became of the messages, as in `totals`.', ['ignored', 'unmappable', 'quarantined']),
    source: textOrNull('The source; null where none takes the topic.', ({ source }) => source || null),
    reason: text('Why, as a code or in words.'),
    messages: count('Messages since the start.', null, (one) => one.count),
  },
)

function listed<const Kind extends string>(kind: Kind, counts: readonly ReasonCount[] = []) {
  return counts.slice(0, listMax).map((one) => ({ kind, ...one }))
}

type AuthFailures = IngestCounters['authFailures']

const failures = {
  name: text('The address or user.'),
  failures: count('Wrong passwords since the start.'),
}

export const clients = group('Clients of the embedded broker.', ({ ingest }: Seen) => ingest, {
  connections: count('Connections of devices that are open.', 'gateway_connections'),
  storedSessions: count(
    'Stored sessions of clients that connect without Clean Session.',
    'gateway_sessions',
    ({ sessions }) => sessions,
  ),
  authentication: group('Wrong passwords.', ({ authFailures }: IngestCounters) => authFailures, {
    failures: count('Wrong passwords since the start.'),
    addresses: list('The addresses with most.', ({ addresses }: AuthFailures) => addresses, failures),
    users: list('The users with most.', ({ users }: AuthFailures) => users, failures),
  }),
  refusedMessages: list(
    'Messages that a rule did not allow. At most 200.',
    ({ refusedByIdentity }: IngestCounters) => refusedByIdentity.slice(0, listMax),
    {
      identity: textOrNull('The identity; null for anonymous clients.', ({ source }) => source),
      reason: text('The rule, as a code.'),
      messages: count('Messages since the start.', null, (one) => one.count),
    },
  ),
})

export const messageSources = list(
  'Where messages come from.',
  ({ stages }: Seen) => stages.ingest?.messageSources?.(),
  {
    name: text('Its name: `broker` is the embedded broker, the others are in ingest.bridges.'),
    kind: word('The embedded broker, or a bridge: to an MQTT broker, RabbitMQ or NATS.', [
      'broker',
      'mqtt',
      'amqp',
      'jetstream',
    ]),
    url: textOrNull('Address of the broker of a bridge.'),
    connectedAt: timeOrNull(
      'When the last of its connections was opened; null: one of them is not open, or it is the embedded broker.',
      null,
      ({ links }) => connectedAt(links),
    ),
    silent: flag(
      'Connected, and without a message for longer than silent_after.',
      null,
      ({ isSilent }) => isSilent,
    ),
    messages: count(
      'Messages of a message source; `broker` is the embedded broker.',
      'gateway_message_source_messages_total',
      ({ received }) => received,
    ),
    acked: count(
      'Messages of a message source that were acknowledged.',
      'gateway_message_source_acked_total',
    ),
    outstanding: count('Messages that wait for their acknowledgement.'),
    window: count(
      'Messages of a connection that may be outstanding at most.',
      null,
      ({ traits }) => traits.windowMax,
    ),
    redelivered: countOrNull('Messages that the broker had delivered before; null: not counted.'),
    propertiesSkipped: countOrNull(
      'Properties and headers of messages that the mapping does not get: a message has more than 64 of them, or ' +
        'more than 16 KiB.',
      'gateway_properties_skipped_total',
    ),
    retainedIgnored: count('Retained messages that were ignored.'),
    lag: countOrNull(
      'Messages that wait at RabbitMQ or NATS, for all gateways of the group; nothing where the server does not say.',
      'gateway_message_source_lag',
    ),
    lost: countOrNull(
      'Messages that RabbitMQ or NATS removed before a gateway took them (a purge, a limit, a deleted queue), at least; nothing for others.',
      'gateway_message_source_lost_total',
    ),
    lastMessageAt: timeOrNull(
      'When the last message of a message source came.',
      'gateway_message_source_last_message_timestamp_seconds',
    ),
    connections: list('The connections of a bridge.', ({ links }) => links, {
      clientId: text('Its client id at the broker.'),
      state: word(
        '`waiting`: for the next try. `paused`: the spool takes nothing in, and the broker queues.',
        ['connecting', 'connected', 'waiting', 'paused', 'stopped'],
      ),
      since: time('Since when it has this state.'),
      sessionPresent: fact(
        z
          .boolean()
          .nullable()
          .describe(
            'Whether the broker had kept the session at the last connection; null before the first, and where there is ' +
              'none.',
          ),
      ),
      messages: count('Messages that it brought, since the start.'),
      losses: count('Connections and tries that ended, since the start.'),
      lastFault: textOrNull('Why the last one ended; null while it is connected.'),
    }),
    partitions: list(
      'The queues of a bridge to RabbitMQ or NATS, which gateways share. Empty for others.',
      ({ partitions }) => partitions,
      {
        partition: text('Name of the queue of RabbitMQ, or of the durable consumer of NATS.'),
        member: text('Name of this gateway in the group.'),
        role: wordOrNull(
          '`active`: this gateway gets its messages, `standby`: another one does; null where that is not known.',
          ['active', 'standby'],
        ),
        outstanding: count('Messages of it that wait here for their acknowledgement.'),
        lag: countOrNull('Messages of it that wait at the server; null where it does not say.'),
      },
    ),
  },
  { message_source: 'name' },
)

function connectedAt(links: readonly { state: string; since: number }[]): number | null {
  if (links.length === 0 || links.some(({ state }) => state !== 'connected')) return null
  return Math.max(...links.map(({ since }) => since))
}

export const custody = maybe(
  'Custody `delivered`; null in custody `spool`.',
  ({ stages }: Seen) => stages.ingest?.custody?.(),
  {
    outstanding: count(
      'Messages that are in the spool and not acknowledged to the engine (custody delivered).',
      'gateway_custody_outstanding',
    ),
    oldestSeconds: secondsOrNull(
      'Age of the oldest message that is not acknowledged to the engine; nothing without one. Alert above park_after plus 30 s.',
      'gateway_custody_oldest_seconds',
      ({ oldestMs }) => (oldestMs === null ? null : Math.round(oldestMs / 1000)),
    ),
    waitsFor: textOrNull('The batch, lane or shelf that the oldest waits for; null for none.'),
    holds: flag(
      'Whether nothing is taken from the engine, because the ingestion API accepts nothing.',
      'gateway_custody_holds',
    ),
    parked: count(
      'Payloads and messages that were stored in the queue of parked entries of the engine.',
      'gateway_custody_parked_total',
    ),
    takenBack: count('Parked entries that came back.', 'gateway_custody_taken_back_total'),
    parkedDuplicates: count(
      'Parked entries that the engine delivered again and that were known.',
      'gateway_custody_parked_duplicates_total',
    ),
    refusedEntries: count(
      'Parked entries that could not be read, or whose provider is not in the config. They are dead letters.',
      'gateway_custody_refused_entries_total',
    ),
    parkedAndReleased: count(
      'Messages that were released while they were being parked. They come twice, with the same payloadId.',
      'gateway_custody_parked_and_released_total',
    ),
    waitingEntries: count('Parked entries that wait here for their turn.'),
    copied: count(
      'Dead letters, and payloads of held batches, that were copied to the engine.',
      'gateway_custody_dead_copies_total',
    ),
    storeFailures: count(
      'Entries that the engine did not confirm, by tries. Nothing of them is removed or acknowledged.',
      'gateway_custody_store_failures_total',
    ),
  },
)
