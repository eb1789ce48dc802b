// message-source-events.ts: the events of message sources: bridges to other brokers.

import { formatDuration } from '../../../std/quantity.ts'
import { bounded, quote } from '../../../std/quote.ts'
import type { EventName } from '../../../domain/event.ts'
import { sentence } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type MessageSourceEvent = Extract<EventName, `message_source_${string}` | 'rebirth_requested'>

type Link = { messageSource: string; clientId: string }

const keyOf = ({ messageSource, clientId }: Link) => `${messageSource} ${clientId}`

export const messageSourceEvents: EventTable<MessageSourceEvent> = {
  message_source_connected: {
    meaning: 'A bridge is connected and subscribed.',
    level: 'info',
    text: ({ messageSource, clientId, url, sessionPresent, removedFilters }) =>
      `Bridge ${quote(messageSource, 64)} is connected to ${bounded(url, 200)} as ${quote(clientId, 64)}` +
      `${sessionPresent === null ? '' : sessionPresent ? ', with the session that the broker kept' : ', with a new session'}.` +
      (removedFilters.length === 0
        ? ''
        : ` It has unsubscribed ${bounded(removedFilters.join(', '), 200)}, which the config does not have any more.`),
    repeats: keyOf,
    clears: { MESSAGE_SOURCE_DISCONNECTED: keyOf },
  },
  message_source_lost: {
    level: 'warn',
    text: (event) =>
      `Bridge ${linkText(event)} is not connected. ${bounded(sentence(event.detail))} ` +
      `The next try is in ${formatDuration(event.retryInMs)}.`,
    repeats: (event) => `${keyOf(event)}|${event.reason}`,
    raises: {
      MESSAGE_SOURCE_DISCONNECTED: (event) => ({
        key: keyOf(event),
        what: `Bridge ${linkText(event)} is not connected. Its messages wait at the broker, as far as it keeps them.`,
        why: sentence(event.detail),
        act: event.act,
      }),
    },
  },
  message_source_limited: {
    meaning: 'The engine of a bridge does not say something that the gateway could use. Once for each start.',
    level: 'warn',
    text: ({ messageSource, detail, act }) =>
      `Bridge ${quote(messageSource, 64)}: ${bounded(sentence(detail), 220)} ${bounded(act)}`,
    repeats: ({ messageSource, limit }) => `${messageSource}|${limit}`,
  },
  message_source_at_risk: {
    // The others would lose messages, these do.
    level: { oneOf: ['warn', 'error'], of: ({ risk }) => (losing.has(risk) ? 'error' : 'warn') },
    repeats: ({ messageSource, risk }) => `${messageSource}|${risk}`,
    raises: {
      MESSAGE_SOURCE_AT_RISK: ({ messageSource, clientId, risk, detail, act }) => ({
        key: `${messageSource} ${risk}`,
        what: `Bridge ${quote(messageSource, 64)}: ${bounded(sentence(detail), 220)}`,
        why: `Seen on the connection ${quote(clientId, 64)} (${risk}).`,
        act: act ?? riskActs[risk],
        severity: losing.has(risk) ? 'error' : 'warning',
      }),
    },
  },
  message_source_safe: {
    meaning: 'What the broker of a bridge would have lost or delayed is in order again.',
    level: 'debug',
    text: ({ messageSource, risk }) => `Bridge ${quote(messageSource, 64)}: ${risk} is over.`,
    clears: { MESSAGE_SOURCE_AT_RISK: ({ messageSource, risk }) => `${messageSource} ${risk}` },
  },
  rebirth_requested: {
    meaning: 'A node of Sparkplug was asked to publish its births again, because one was missed.',
    level: 'info',
    text: ({ messageSource, topic }) =>
      `A rebirth request was published to ${bounded(topic, 200)} (${messageSource}).`,
    repeats: ({ messageSource }) => messageSource,
  },
  message_source_released: {
    meaning: 'A bridge has disconnected, because the gateway stops.',
    level: 'info',
    text: (event) => `Bridge ${linkText(event)} has disconnected: ${sessionTexts[event.session]}`,
  },
}

/** Messages are lost by these, or are not received. */
const losing: ReadonlySet<string> = new Set([
  'filter_refused',
  'oversized',
  'queue_missing',
  'queue_deleted',
  'exchange_missing',
  'not_declared',
  'durable_missing',
  'durable_differs',
  'custody_deleted',
  'partition_left',
  'mapping_differs',
])

const riskActs = {
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
  queue_deleted: 'Find out who deleted the queue, and take that right away. It is shown for an hour.',
  queue_differs:
    'Change the option of the bridge, or empty and delete the queue, so that it can be declared again.',
  exchange_missing: 'Set provision: true, or create the exchange; `check --connect` prints the command.',
  not_declared: 'Give the user the right to configure, or set provision: false and declare it yourself.',
  blocked: 'Free memory or disk space of the node (`rabbitmq-diagnostics alarms`).',
  stream_settings: 'Change the stream with `nats stream edit`; `check --connect` prints the command.',
  durable_missing: 'Set provision: true, or create the durable; `check --connect` prints the command.',
  durable_differs: 'Change the durable with `nats consumer edit`, or set another prefix.',
  durable_created:
    'Find out who deleted the durable, or let devices connect after the first start. It is shown for an hour.',
  custody_deleted: 'Find out who deleted the stream, and take that right away. It is shown for a day.',
  mapping_differs: 'Correct `mappings` in the account of NATS; `check --connect` prints its lines.',
  partition_mixed: 'Correct `mappings` in the account of NATS; `check --connect` prints its lines.',
  member_twice: 'Give each gateway its own `member`.',
  partition_left: 'Give all gateways the same `partitions`, or the former number until all is taken.',
  partitions_differ: 'Give all gateways the same `durables.partitions`.',
  not_ready: 'Check /healthz of all nodes of NATS.',
}

const sessionTexts = {
  kept: 'the broker keeps its session, and queues what arrives until it returns.',
  engine: 'the engine keeps what arrives, and gives it to this gateway or to another one.',
  left_group: 'it has left the share group, and the other members get what arrives.',
  left_with_rest:
    'it has left the share group, and the other members get what arrives. Its session keeps what the broker had for it ' +
    'before: start it again with this client id.',
  none: 'the broker keeps no session, and what arrives now is lost to it.',
}

function linkText({ messageSource, clientId }: Link): string {
  return `${quote(messageSource, 64)} (${quote(clientId, 64)})`
}
