// types.ts: the options of a bridge to RabbitMQ (amqp-config.ts has the meaning of each).

import type { Secret } from '../../std/secret.ts'
import type { BridgeTls } from '../bridges/bridge-address.ts'

/** A node of the cluster. */
export type AmqpNode = { scheme: 'amqp' | 'amqps'; host: string; port: number }

/** What decides the queue of a message; it must be the same for all messages of a device. */
export type PartitionRule =
  | { kind: 'topic' }
  | { kind: 'header'; header: string }
  /** The level `{device}` of `topics`; the gateway distributes. */
  | { kind: 'device' }

export type AmqpOptions = {
  kind: 'amqp'
  name: string
  nodes: readonly AmqpNode[]
  tls: BridgeTls
  userName: string | null
  password: Secret | null
  vhost: string
  /** Name of this gateway among those that consume. */
  member: string
  prefix: string
  partitions: number
  /** Messages that a queue holds at most; null: no limit. */
  queueMessagesMax: number | null
  /** `delivered`: acknowledged when the ingestion API has accepted the payloads. */
  custody: 'spool' | 'delivered'
  exchange: string
  keys: readonly string[]
  /** Filters of MQTT, with `{device}` for the level of the device. */
  topics: readonly string[]
  /** Exchange, queues and bindings are declared. */
  provisions: boolean
  partitionBy: PartitionRule
  window: number
  connectTimeoutMs: number
  /** The first pause between two tries; it doubles up to the longest. */
  reconnectFirstMs: number
  reconnectMaxMs: number
  /** If there is no room for this time, it gives back what it has and disconnects. */
  pauseAfterMs: number
  silentAfterMs: number
  /** The same where none came since the start. */
  unheardAfterMs: number
  messageBytesMax: number
  /** How often the queues are asked for their depth. */
  depthEveryMs: number
  /** If `member` is in use for this time, another gateway has it. */
  nameTakenAfterMs: number
  /** How often it looks for an alarm of RabbitMQ. */
  probeEveryMs: number
}

/** What may change while it runs: the next connection uses it. */
export type AmqpCredentials = Pick<AmqpOptions, 'userName' | 'password' | 'tls'>
