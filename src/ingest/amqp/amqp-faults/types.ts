// types.ts: the form of what is said of a fault of a bridge to RabbitMQ.

import type { AmqpNode, AmqpOptions } from '../types.ts'

/** Stable codes. */
export type AmqpLossReason =
  | 'unreachable'
  | 'tls_failed'
  | 'not_amqp'
  | 'refused'
  | 'vhost_refused'
  | 'access_refused'
  | 'queue_missing'
  | 'queue_differs'
  | 'queue_locked'
  | 'queue_unavailable'
  | 'plugin_missing'
  | 'consumer_cancelled'
  | 'consumer_timeout'
  | 'undeliverable_message'
  | 'closed_by_operator'
  | 'channel_closed'
  | 'connection_lost'
  | 'not_stored'
  | 'stood_still'
  | 'silent'

/** `detail` and `act` are sentences. `isRefused`: nothing listens there, as while a server restarts. */
export type AmqpFault = { reason: AmqpLossReason; detail: string; act: string; isRefused?: boolean }

export type AmqpPlace = Pick<AmqpOptions, 'vhost' | 'userName' | 'tls' | 'exchange' | 'prefix'> & {
  node: AmqpNode
  /** The queue of the connection; null for the one that declares and asks. */
  queue: string | null
  stage: 'connecting' | 'opening' | 'open'
}

export const askOperator = 'Look into the log of RabbitMQ; it has the reason.'
