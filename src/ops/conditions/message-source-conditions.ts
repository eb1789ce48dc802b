// message-source-conditions.ts: the conditions of message sources: bridges to other brokers, and the
// custody of their messages.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import { sentence } from '../events/event-text.ts'
import type { ConditionTable } from './types.ts'

export const messageSourceConditions = {
  MESSAGE_SOURCE_DISCONNECTED: {
    severity: 'error',
    meaning:
      'A bridge is not connected to its broker. Its messages wait there, as far as the broker keeps them.',
    act:
      'Look at the reason. Check the address, the user and the rules of the broker; `check --connect` tries the ' +
      'bridge. The bridge connects again automatically.',
  },
  MESSAGE_SOURCE_AT_RISK: {
    severity: 'warning',
    meaning: 'The broker of a bridge would lose, strand or delay messages.',
    act: 'Change the limits at the broker, or the options of the bridge.',
  },
} as const

type SourceStateCode =
  | 'MESSAGE_SOURCE_PAUSED'
  | 'MESSAGE_SOURCE_SILENT'
  | 'CUSTODY_WAITING'
  | 'CUSTODY_OUTAGE'
  | 'CUSTODY_STORE_FAILED'

export const sourceStateConditions: ConditionTable<SourceStateCode> = {
  MESSAGE_SOURCE_PAUSED: {
    severity: 'warning',
    meaning:
      'A bridge takes no messages, because the gateway takes nothing in. The broker or engine keeps them.',
    act:
      'Follow the condition of the spool, or CUSTODY_OUTAGE. RabbitMQ and NATS keep the messages, or give them to another ' +
      'gateway. Of an MQTT broker, check how many it queues for one session: a Mosquitto drops beyond max_queued_messages ' +
      '(default 1000) without a word. Set it for the longest pause.',
    cause: ({ messageSource, clientId }) => ({
      key: `${messageSource} ${clientId}`,
      what:
        `Bridge ${quote(messageSource, 64)} (${quote(clientId, 64)}) takes no messages, because the gateway takes ` +
        'nothing in.',
      why: 'The broker or engine keeps them now, as far as its limits allow.',
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
