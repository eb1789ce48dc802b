// message-source-conditions.ts: the conditions of message sources: bridges to other brokers, and the
// custody of their messages.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, listText, quote } from '../../std/quote.ts'
import type { SourceLinks, SourceRisk } from '../../domain/condition-state.ts'
import { sentence } from '../../domain/events/event-text.ts'
import type { ConditionTable } from './types.ts'

type SourceStateCode =
  | 'MESSAGE_SOURCE_DISCONNECTED'
  | 'MESSAGE_SOURCE_AT_RISK'
  | 'MESSAGE_SOURCE_PAUSED'
  | 'MESSAGE_SOURCE_SILENT'
  | 'ENGINE_BLOCKED'
  | 'CUSTODY_WAITING'
  | 'CUSTODY_OUTAGE'
  | 'CUSTODY_STORE_FAILED'

export const sourceStateConditions: ConditionTable<SourceStateCode> = {
  MESSAGE_SOURCE_DISCONNECTED: {
    severity: 'error',
    meaning:
      'A bridge is not connected to its broker. Its messages wait there, as far as the broker keeps them.',
    act:
      'Look at the reason. Check the address, the user and the rules of the broker; `check --connect` tries the ' +
      'bridge. The bridge connects again automatically.',
    cause: ({ detail, act, ...links }) => ({
      key: links.messageSource,
      what: `${linksText(links)} is not connected. Its messages wait at the broker, as far as it keeps them.`,
      why: sentence(detail),
      act,
    }),
  },
  MESSAGE_SOURCE_AT_RISK: {
    severity: 'warning',
    meaning: 'The broker of a bridge would lose, strand or delay messages.',
    act: 'Change the limits at the broker, or the options of the bridge.',
    cause: ({ messageSource, risk, about, clientId, detail, act }) => ({
      key: `${messageSource} ${risk}`,
      what: `Bridge ${quote(messageSource, 64)}: ${bounded(sentence(detail), 220)}`,
      why:
        `Seen on the connection ${quote(clientId, 64)} (${risk}).` +
        (about.length < 2
          ? ''
          : ` ${about.length - 1} more: ${listText(about.slice(1), { lengthMax: 300 })}.`),
      act: act ?? riskActs[risk],
      severity: losing.has(risk) ? 'error' : 'warning',
      causes: about,
    }),
  },
  MESSAGE_SOURCE_PAUSED: {
    severity: 'warning',
    meaning:
      'A bridge takes no messages, because the gateway takes nothing in. The broker or engine keeps them.',
    act:
      'Follow the condition of the spool, or CUSTODY_OUTAGE. RabbitMQ and NATS keep the messages, or give them to another ' +
      'gateway. Of an MQTT broker, check how many it queues for one session: a Mosquitto drops beyond max_queued_messages ' +
      '(default 1000) without a word. Set it for the longest pause.',
    cause: (links) => ({
      key: links.messageSource,
      what: `${linksText(links)} takes no messages, because the gateway takes nothing in.`,
      why: 'The broker or engine keeps them now, as far as its limits allow.',
    }),
  },
  ENGINE_BLOCKED: {
    severity: 'error',
    meaning:
      'RabbitMQ has an alarm of memory or disk space. It takes messages of no device and acknowledges none.',
    act:
      'Run `rabbitmq-diagnostics alarms` at its nodes, and free memory or disk space of the node that it names. It ends ' +
      'by itself then. What waits in the queues is still taken.',
    cause: ({ messageSource, reason }) => ({
      key: messageSource,
      what: `RabbitMQ of bridge ${quote(messageSource, 64)} takes no messages: devices get no acknowledgement.`,
      why: `It has an alarm, and says ${quote(reason, 100)}.`,
    }),
  },
  MESSAGE_SOURCE_SILENT: {
    severity: 'warning',
    meaning: 'A bridge is connected and brings no messages for longer than silent_after.',
    act:
      'Check that devices publish, and that the topics of the bridge are theirs. If long pauses are usual, raise ' +
      'silent_after.',
    cause: ({ messageSource, clientId, quietMs, neverHeard }) =>
      clientId === null
        ? {
            key: messageSource,
            what: `Bridge ${quote(messageSource, 64)} is connected and brought no message for ${formatDuration(quietMs)}.`,
            why: neverHeard
              ? 'None came since the start. Its topics may be wrong; with RabbitMQ its queues may not be bound; with NATS the mapping of the account may be missing. With share_group: some brokers (NATS, older RabbitMQ) grant a shared subscription and deliver nothing.'
              : 'The devices may be off, or the connection may be dead. The bridge connects again.',
          }
        : {
            key: `${messageSource} ${clientId}`,
            what:
              `One connection of bridge ${quote(messageSource, 64)} (${quote(clientId, 64)}) brought no message for ` +
              `${formatDuration(quietMs)}; others did.`,
            why:
              'The broker gives it no share, or the connection is dead. The bridge connects it again. A broker that ' +
              'shares by topic or client does so, too, where few devices publish.',
          },
  },
  CUSTODY_WAITING: {
    severity: 'warning',
    meaning:
      'With custody: delivered, the oldest message that is not acknowledged to the engine waits for longer than ' +
      'park_after. Nothing is lost. When the window is used up, no more messages are taken.',
    act:
      'Look at what it waits for. A batch: `batches show` and docs/delivery.md. A lane of a provider that is not in ' +
      'the config: add the provider. A queue: see CUSTODY_STORE_FAILED.',
    cause: ({ messages, waitedMs, waitsFor }) => ({
      what:
        `${plural(messages, 'message')} ${messages === 1 ? 'is' : 'are'} not acknowledged to the engine; the oldest ` +
        `waits for ${formatDuration(waitedMs)}.`,
      why: `It waits for ${sentence(bounded(waitsFor, 300))}`,
    }),
  },
  CUSTODY_OUTAGE: {
    severity: 'warning',
    meaning:
      'With custody: delivered, no more messages are taken, because the ingestion API accepts nothing. They wait in ' +
      'the engine.',
    act: 'Follow the condition of the endpoint. Watch the disk of the engine. It resumes automatically.',
    cause: ({ waitedMs }) => ({
      what: 'The gateway takes no more messages from the engine.',
      why: `The ingestion API accepted nothing for ${formatDuration(waitedMs)}. New messages wait in the engine.`,
    }),
  },
  CUSTODY_STORE_FAILED: {
    severity: 'error',
    meaning:
      'With custody: delivered, the engine does not confirm what is to be parked, or copies of dead letters. Nothing ' +
      'of it is removed here or acknowledged.',
    act:
      'Check that the engine is reachable, and that the queues PREFIX.parked and PREFIX.dead exist, have room, and may ' +
      'be written by the user of the bridge.',
    cause: ({ messageSource, queue, why, retryInMs }) => ({
      key: messageSource,
      what: `The engine of bridge ${quote(messageSource, 64)} does not confirm entries for its queue ${queue}.`,
      why: `${sentence(bounded(why, 300))} The next try is in ${formatDuration(retryInMs)}.`,
    }),
  },
}

function linksText({ messageSource, clientIds, connections }: SourceLinks): string {
  const of = quote(clientIds[0] ?? '', 64)
  const number =
    clientIds.length === 1 ? of : `${clientIds.length} of ${connections} connections, such as ${of}`
  return `Bridge ${quote(messageSource, 64)} (${number})`
}

/** Messages are lost by these, or are not received. */
const losing: ReadonlySet<SourceRisk> = new Set([
  'filter_refused',
  'oversized',
  'queue_missing',
  'engine_lost_messages',
  'exchange_missing',
  'not_declared',
  'durable_missing',
  'durable_differs',
  'custody_deleted',
  'partition_left',
  'mapping_differs',
])

const riskActs: Record<SourceRisk, string> = {
  clean_session: 'Set session: keep if messages must not be lost.',
  short_expiry: 'Set session_expiry to the longest outage that the data must survive.',
  qos_0: 'Set qos: 1 if messages must not be lost.',
  expiry_reduced: 'Raise the limit for sessions at the broker, or lower session_expiry to what is true.',
  filter_refused: 'Correct `topics` of the bridge, or give the user the right to subscribe at the broker.',
  qos_0_granted: 'Allow QoS 1 for this user at the broker.',
  session_lost:
    'Find out why the broker lost the session: a restart without persistence, its own expiry, or a removal.',
  short_connections:
    'Give each gateway a client_id of its own. If no other one has it, look for the cause in the log of the broker.',
  sessions_left:
    'Take these client ids into the config again until their messages have come. Or remove the sessions at the ' +
    'broker, stop the gateway, and delete bridge-sessions.json in the spool directory. It ends after session_expiry, too.',
  group_restarted:
    'Where that matters, use one connection without share_group: plain subscriptions are kept. It is shown for a day.',
  oversized:
    'Raise max_packet_bytes of the bridge if such messages are meant for the gateway, then requeue the dead letters ' +
    '(OVERSIZED). Those beyond 80 KiB have topic, size and beginning only. It is shown for a day.',
  bad_topic:
    'Look for the client that publishes there, and report it to the operator of the broker: MQTT does not allow such ' +
    'a topic. The message is a dead letter (BAD_TOPIC). It is shown for a day.',
  small_window:
    'Raise the window at the broker: max_inflight_messages 1000 for Mosquitto, mqtt.prefetch = 1000 for RabbitMQ.',
  queue_missing: 'Set provision: true, or create the queue; `check --connect` prints the command.',
  queue_differs:
    'Change the option of the bridge, or empty and delete the queue, so that it can be declared again.',
  exchange_missing: 'Set provision: true, or create the exchange; `check --connect` prints the command.',
  not_declared: 'Give the user the right to configure, or set provision: false and declare it yourself.',
  engine_lost_messages:
    'Find out who purges or deletes queues, durables or streams, and take that right away. Remove limits (max_msgs, ' +
    'max_age, policies) that drop what waits. Devices do not send it again. It is shown for a day.',
  stream_settings: 'Change the stream with `nats stream edit`; `check --connect` prints the command.',
  durable_missing: 'Set provision: true, or create the durable; `check --connect` prints the command.',
  durable_differs: 'Change the durable with `nats consumer edit`, or set another prefix.',
  durable_created:
    'Find out who deleted the durable, or let devices connect after the first start. It is shown for an hour.',
  custody_deleted: 'Find out who deleted the stream, and take that right away. It is shown for a day.',
  mapping_differs: 'Correct `mappings` in the account of NATS; `check --connect` prints its lines.',
  mapping_behind: 'When all gateways have the larger number of partitions, change the account of NATS, too.',
  partition_mixed: 'Correct `mappings` in the account of NATS; `check --connect` prints its lines.',
  member_twice: 'Give each gateway its own `member`.',
  partition_left: 'Give all gateways the same `partitions`, or the former number until all is taken.',
  partitions_differ: 'Give all gateways the same `durables.partitions`.',
  not_ready: 'Check /healthz of all nodes of NATS.',
}
