// amqp-faults.ts: why a connection to RabbitMQ ended or was not made, and what a person can do. The only
// place that turns an error of Node or amqplib, and a close of RabbitMQ, into words. The entry file of the
// folder; reply-codes.ts has the codes of RabbitMQ.
//
// Words of RabbitMQ are quoted, because they name queue, argument and user. Texts of amqplib are not shown.

import { messageOf } from '../../../std/gateway-error.ts'
import { attemptsOf, networkFault } from '../../../std/network-faults/network-faults.ts'
import { formatDuration } from '../../../std/quantity.ts'
import { quote } from '../../../std/quote.ts'
import { bridgePlace } from '../../bridges/bridge-address.ts'
import { nodeText } from '../amqp-address.ts'
import { ofReply, serverWords, vhostAct } from './reply-codes.ts'
import { askOperator, type AmqpFault, type AmqpPlace } from './types.ts'

export type { AmqpFault, AmqpPlace } from './types.ts'

type OwnCode = 'NO_ANSWER' | 'CANCELLED' | 'CLOSED'

/** An end for which there is no error. */
export class AmqpEnd extends Error {
  readonly code: OwnCode

  constructor(code: OwnCode, cause?: unknown) {
    super(code, { cause })
    this.code = code
  }
}

export function amqpFault(thrown: unknown, place: AmqpPlace): AmqpFault {
  const { cause: error } = attemptsOf(thrown)
  const { code } = (error ?? {}) as { code?: unknown }
  const text = messageOf(error)
  const server = serverWords(text)
  const reply = typeof code === 'number' ? code : server?.code
  if (reply !== undefined) return ofReply(reply, server?.words ?? '', place)
  if (error instanceof AmqpEnd) return ofEnd(error.code, place)
  const handshake = ofHandshake(text, place)
  if (handshake !== null) return handshake
  if (typeof code === 'string') return ofNetwork(code, thrown, place)
  return {
    reason: place.stage === 'open' ? 'connection_lost' : 'unreachable',
    detail: `The connection to ${nodeText(place.node)} failed: ${quote(text, 200)}.`,
    act: `Check \`url\` of the bridge. ${askOperator}`,
  }
}

function ofEnd(code: OwnCode, place: AmqpPlace): AmqpFault {
  const { node, queue, stage } = place
  if (code === 'CANCELLED')
    return {
      reason: 'consumer_cancelled',
      detail: `RabbitMQ does not deliver from ${quote(queue ?? '', 100)} any more: the queue was deleted, or its node is gone.`,
      act: 'Nothing, if the bridge connects again. Otherwise create the queue, or set provision: true.',
    }
  if (code === 'NO_ANSWER' && stage === 'opening')
    return {
      reason: 'queue_unavailable',
      detail:
        `${nodeText(node)} did not answer in connect_timeout` +
        (queue === null ? '.' : `: the queue ${quote(queue, 100)} may have no leader.`),
      act:
        'Start the other nodes of the cluster: a quorum queue needs more than half of its members ' +
        '(`rabbitmq-queues quorum_status QUEUE`).',
    }
  if (code === 'NO_ANSWER') return ofNetwork('ETIMEDOUT', null, place)
  return {
    reason: stage === 'open' ? 'connection_lost' : 'unreachable',
    detail: `The connection to ${nodeText(node)} was closed by the server or the network.`,
    act: `Nothing, if the bridge connects again. If it repeats: ${askOperator.toLowerCase()}`,
  }
}

/** Errors of amqplib have texts and no codes. */
function ofHandshake(text: string, place: AmqpPlace): AmqpFault | null {
  const { node } = place
  if (text.startsWith('Expected ConnectionOpenOk'))
    return {
      reason: 'vhost_refused',
      detail: `RabbitMQ refuses the virtual host ${quote(place.vhost, 100)}: it does not exist, or the user has no right to it.`,
      act: vhostAct(place),
    }
  if (
    /^(Frame size|Invalid frame|Unknown frame|Expected Connection|Server frameMax|SASL mechanism)/.test(text)
  )
    return {
      reason: 'not_amqp',
      detail: `${nodeText(node)} does not speak AMQP 0-9-1 with the login that the bridge uses.`,
      act: 'Check `url` of the bridge: the usual port of RabbitMQ is 5672, with TLS 5671; 1883 and 15672 are for others.',
    }
  if (text.startsWith('Socket closed abruptly'))
    return {
      reason: 'unreachable',
      detail: `${nodeText(node)} closed the connection during the login.`,
      act: `Check scheme and port in \`url\` of the bridge: a port for TLS (usually 5671) needs amqps://. ${askOperator}`,
    }
  if (/^(Unexpected close|Channel ended|Channel closed|Connection clos)/.test(text))
    return ofEnd('CLOSED', place)
  if (text.startsWith('Heartbeat timeout'))
    return {
      reason: 'connection_lost',
      detail: `${nodeText(node)} sent nothing for two heartbeats.`,
      act: 'Check the network between this machine and RabbitMQ, and the load of both.',
    }
  return null
}

const closedCodes = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ABORT_ERR',
])
const ports = 'The port is usually 5672 for amqp://, 5671 for amqps://.'

function ofNetwork(code: string, error: unknown, place: AmqpPlace): AmqpFault {
  const { node, stage, tls } = place
  const isRefused = code === 'ECONNREFUSED'
  if (closedCodes.has(code)) return { ...ofEnd('CLOSED', place), isRefused }
  const address = nodeText(node)
  const where = { peer: 'RabbitMQ', host: node.host, address, ports }
  const fault = networkFault(error, bridgePlace(where, tls), { code })
  const lost = stage === 'open' ? 'connection_lost' : 'unreachable'
  if (fault === null)
    return {
      reason: lost,
      detail: `The connection to ${address} failed (${quote(code, 60)}): ${quote(messageOf(error), 200)}.`,
      act: `Check \`url\` of the bridge. ${askOperator}`,
    }
  return {
    reason: /^(tls|clock)$/.test(fault.reason) && stage !== 'open' ? 'tls_failed' : lost,
    detail: `${fault.why} (${fault.tried || code}).`,
    act: fault.act,
    isRefused,
  }
}

export const notStored: AmqpFault = {
  reason: 'not_stored',
  detail: 'A message could not be stored.',
  act: 'Follow the condition of the spool. RabbitMQ delivers the message again.',
}

export function stoodStill(stoodMs: number): AmqpFault {
  return {
    reason: 'stood_still',
    detail:
      `The gateway stood still for ${formatDuration(stoodMs)}, longer than RabbitMQ waits for heartbeats. It may have given the ` +
      'messages to another gateway: those that were not stored are left to it.',
    act: 'Nothing: the bridge connects again. Find out what stopped the process: no memory, no processor time, or a debugger.',
  }
}

export const wasSilent: AmqpFault = {
  reason: 'silent',
  detail: 'No message came for longer than silent_after.',
  act: 'Nothing: the bridge connects again. If devices should publish, check them and `bind` of the bridge.',
}
