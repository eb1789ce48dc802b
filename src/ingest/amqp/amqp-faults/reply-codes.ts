// reply-codes.ts: what the codes mean with which RabbitMQ closes a channel or a connection, and what a person
// can do.

import { quote } from '../../../std/quote.ts'
import { nodeText } from '../amqp-address.ts'
import { askOperator, type AmqpFault, type AmqpPlace } from './types.ts'

/** `406 (PRECONDITION-FAILED) with message "..."`, as amqplib writes it. */
export function serverWords(text: string): { code: number; words: string } | null {
  const match = /(\d{3}) \([A-Z-]+\) with message "(.*)"/s.exec(text)
  return match === null ? null : { code: Number(match[1]), words: match[2]! }
}

/** What RabbitMQ says, without the name of the code. */
function said(words: string): string {
  const text = words.replace(/^[A-Z_]+ - /, '').trim()
  return text === '' ? '' : ` It says ${quote(text, 300)}.`
}

export function ofReply(code: number, words: string, place: AmqpPlace): AmqpFault {
  const { queue, stage, node, userName, vhost } = place
  const name = queue === null ? 'a queue or exchange of the bridge' : `the queue ${quote(queue, 100)}`
  if (code === 320)
    return {
      reason: 'closed_by_operator',
      detail: `RabbitMQ has closed the connection.${said(words)}`,
      act: 'Nothing, if a node was stopped: the bridge connects again, to another node if there is one.',
    }
  if (code === 403 && stage === 'connecting')
    return {
      reason: 'refused',
      detail: `RabbitMQ refuses the user ${quote(userName ?? 'guest', 100)}.${said(words)}`,
      act:
        userName === null
          ? 'Set `username` and `password` of the bridge; the user guest may connect over loopback only.'
          : 'Check `username` and `password` of the bridge; guest may connect over loopback only.',
    }
  if (code === 403)
    return {
      reason: 'access_refused',
      detail: `The user ${quote(userName ?? 'guest', 100)} has no right to what the bridge needs.${said(words)}`,
      act:
        `Give it the right: \`${permissionCommand(place)}\`. The three patterns are configure, write and read. ` +
        'Without provision, read for the queues is enough.',
    }
  if (code === 404)
    return {
      reason: 'queue_missing',
      detail: `RabbitMQ does not have ${name}.${said(words)}`,
      act: 'Set provision: true, or create it; `check --connect` prints the command.',
    }
  if (code === 405)
    return {
      reason: 'queue_locked',
      detail: `Another client has ${name} for itself alone.${said(words)}`,
      act: 'Stop that client. Nothing but gateways may take messages from these queues.',
    }
  if (code === 406 && /timed? ?out/i.test(words))
    return {
      reason: 'consumer_timeout',
      detail: `Messages of ${name} were not acknowledged within the consumer timeout.${said(words)}`,
      act: 'Follow the conditions of spool and delivery. If it repeats, raise consumer_timeout of RabbitMQ.',
    }
  if (code === 406)
    return {
      reason: 'queue_differs',
      detail: `RabbitMQ has ${name} with other properties than the bridge needs.${said(words)}`,
      act: 'Change the option of the bridge, or empty and delete the queue, so that it can be declared again.',
    }
  if (code === 503 || (code === 406 && /exchange type/.test(words)))
    return {
      reason: 'plugin_missing',
      detail: `RabbitMQ does not know a type of exchange that the bridge needs.${said(words)}`,
      act: 'Run `rabbitmq-plugins enable rabbitmq_consistent_hash_exchange` on each node, or set queue.partitions: 1.',
    }
  if (code === 530 || code === 402)
    return {
      reason: 'vhost_refused',
      detail: `RabbitMQ refuses the virtual host ${quote(vhost, 100)}.${said(words)}`,
      act: vhostAct(place),
    }
  if (code === 541)
    return {
      reason: 'undeliverable_message',
      detail: `RabbitMQ ended the connection to ${nodeText(node)} by an internal error.${said(words)}`,
      act: undeliverableAct(place),
    }
  return {
    reason: stage === 'open' ? 'channel_closed' : 'unreachable',
    detail: `RabbitMQ closed the channel of ${name} (code ${code}).${said(words)}`,
    act: askOperator,
  }
}

/** A topic of more than 255 bytes cannot be sent over AMQP 0-9-1, so RabbitMQ fails at each try. */
function undeliverableAct({ queue, vhost }: AmqpPlace): string {
  if (queue === null) return askOperator
  return (
    'If it repeats, the next message of the queue cannot be sent over AMQP: its topic has more than 255 bytes. Move ' +
    `it to the dead letters of RabbitMQ: \`rabbitmqctl set_policy -p ${vhost} --apply-to queues ` +
    `move-undeliverable '^${pattern(queue)}$' '{"delivery-limit":3}'\`, wait a minute, ` +
    `\`rabbitmqctl clear_policy -p ${vhost} move-undeliverable\`. Forbid such topics by topic permissions.`
  )
}

export function vhostAct(place: AmqpPlace): string {
  return (
    'Check `vhost` of the bridge with `rabbitmqctl list_vhosts`, and give the user rights there: ' +
    `\`${permissionCommand(place)}\`.`
  )
}

/** The rights that every kind of bridge works with. */
function permissionCommand({ vhost, userName, prefix, exchange }: AmqpPlace): string {
  const own = `${pattern(prefix)}\\..*`
  return (
    `rabbitmqctl set_permissions -p '${vhost}' '${userName ?? 'guest'}' '^${own}' '^(${own}|amq\\.default)$' ` +
    `'^(${own}|${pattern(exchange)})$'`
  )
}

/** Names have letters, digits, "_", "-", ":" and dots; that of an exchange may have others. */
function pattern(name: string): string {
  return name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
