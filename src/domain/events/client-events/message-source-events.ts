// message-source-events.ts: the events of message sources: bridges to other brokers.

import { formatDuration, plural } from '../../../std/quantity.ts'
import { bounded, quote } from '../../../std/quote.ts'
import { event, field } from '../events.ts'
import { sentence } from '../event-text.ts'

const messageSource = field<string>('name of the message source')
const clientId = field<string>('MQTT client id of the connection')

type Link = { messageSource: string; clientId: string }

const keyOf = ({ messageSource, clientId }: Link) => `${messageSource} ${clientId}`

export const messageSourceEvents = {
  message_source_connected: event({
    fields: {
      messageSource,
      clientId,
      url: field<string>('address of the server'),
      sessionPresent: field<boolean | null>('the server had kept the session; null where it has none'),
      removedFilters: field<readonly string[]>(
        'filters of the session that the config does not have any more',
      ),
    },
    meaning: 'A bridge is connected and subscribed.',
    level: 'info',
    text: ({ messageSource, clientId, url, sessionPresent, removedFilters }) =>
      `Bridge ${quote(messageSource, 64)} is connected to ${bounded(url, 200)} as ${quote(clientId, 64)}` +
      `${sessionPresent === null ? '' : sessionPresent ? ', with the session that the broker kept' : ', with a new session'}.` +
      (removedFilters.length === 0
        ? ''
        : ` It has unsubscribed ${bounded(removedFilters.join(', '), 200)}, which the config does not have any more.`),
    repeats: keyOf,
    isEndOf: (event, other) =>
      other.kind === 'message_source_lost' && keyOf(other as Link & typeof other) === keyOf(event),
  }),
  message_source_lost: event({
    fields: {
      messageSource,
      clientId,
      reason: field<string>('stable code of the reason'),
      detail: field<string>('the reason in words'),
      act: field<string>('what to do'),
      retryInMs: field<number>('time until the next try, in ms'),
    },
    meaning: 'A bridge is not connected to its broker, and tries again.',
    act: 'See MESSAGE_SOURCE_DISCONNECTED.',
    level: 'warn',
    text: (event) =>
      `Bridge ${linkText(event)} is not connected. ${bounded(sentence(event.detail))} ` +
      `The next try is in ${formatDuration(event.retryInMs)}.`,
    repeats: (event) => `${keyOf(event)}|${event.reason}`,
  }),
  message_source_limited: event({
    fields: {
      messageSource,
      limit: field<'bindings_unseen' | 'no_stored_time'>(
        '`bindings_unseen`: whether messages come to the queues cannot be seen, `no_stored_time`: the time at which the ' +
          'engine got a message is not known',
      ),
      detail: field<string>('what is not known, in words'),
      act: field<string>('what a person can do'),
    },
    meaning: 'The engine of a bridge does not say something that the gateway could use. Once for each start.',
    level: 'warn',
    text: ({ messageSource, detail, act }) =>
      `Bridge ${quote(messageSource, 64)}: ${bounded(sentence(detail), 220)} ${bounded(act)}`,
    repeats: ({ messageSource, limit }) => `${messageSource}|${limit}`,
  }),
  engine_messages_lost: event({
    fields: {
      messageSource,
      queue: field<string>('queue of RabbitMQ, or durable consumer of NATS'),
      messages: field<number>('messages that are lost, at least'),
      cause: field<'removed' | 'deleted'>(
        '`removed`: by a purge, a limit or an age, `deleted`: with the queue or durable',
      ),
    },
    meaning: 'RabbitMQ or NATS has removed messages that no gateway had taken. They are lost.',
    act: 'See MESSAGE_SOURCE_AT_RISK (engine_lost_messages).',
    level: 'error',
    text: ({ messageSource, queue, messages, cause }) =>
      `Bridge ${quote(messageSource, 64)}: the engine has removed at least ${plural(messages, 'message')} of ${quote(queue, 100)} that no ` +
      `gateway had taken${cause === 'deleted' ? ': it was deleted' : ', by a purge, a limit or an age'}. They are lost.`,
    repeats: ({ messageSource, queue }) => `${messageSource}|${queue}`,
  }),
  rebirth_requested: event({
    fields: { messageSource, topic: field<string>('topic of the command') },
    meaning: 'A node of Sparkplug was asked to publish its births again, because one was missed.',
    level: 'info',
    text: ({ messageSource, topic }) =>
      `A rebirth request was published to ${bounded(topic, 200)} (${messageSource}).`,
    repeats: ({ messageSource }) => messageSource,
  }),
  message_source_released: event({
    fields: {
      messageSource,
      clientId,
      session: field<'kept' | 'engine' | 'left_group' | 'left_with_rest' | 'none'>(
        '`kept`: it queues what arrives, `engine`: RabbitMQ or NATS keeps it for any gateway, `left_group`: the other members get it, `left_with_rest`: so, too, and the ' +
          'session keeps what it had before, `none`: nothing is queued',
      ),
    },
    meaning: 'A bridge has disconnected, because the gateway stops.',
    level: 'info',
    text: (event) => `Bridge ${linkText(event)} has disconnected: ${sessionTexts[event.session]}`,
  }),
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
