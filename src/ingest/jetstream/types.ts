// types.ts: the options of a bridge to NATS JetStream (jetstream-config.ts has the meaning of each), and what
// its parts share.

import type { Secret } from '../../std/secret.ts'

export type NatsAddress = { host: string; port: number }

/** PEM texts. */
export type NatsTls = {
  ca: string | null
  cert: string | null
  key: Secret | null
  serverName: string | null
}

export type NatsCredentials = {
  userName: string | null
  password: Secret | null
  token: Secret | null
  /** Null: the connection has no TLS. */
  tls: NatsTls | null
}

/** A filter of MQTT, and which of its `+` is the device, from 1. */
export type DeviceFilter = { filter: string; device: number }

export type JetStreamOptions = NatsCredentials & {
  kind: 'jetstream'
  name: string
  /** Nodes of one cluster. */
  addresses: readonly NatsAddress[]
  /** The name of this gateway among those that share the partitions. */
  member: string
  stream: string
  topics: readonly DeviceFilter[]
  /** Names of the durables are `<prefix>-<n>`; the subjects of a partition begin with `<prefix>.<n>.`. */
  prefix: string
  partitions: number
  /** Creates what is missing: durables, the bucket of the members. */
  provision: boolean
  /** Messages of a partition that may be outstanding. */
  window: number
  /** `delivered`: acknowledged when the ingestion API has accepted (custody/custody.ts). */
  custody: 'spool' | 'delivered'
  connectTimeoutMs: number
  /** The first pause between two tries; it doubles up to the longest. */
  reconnectFirstMs: number
  reconnectMaxMs: number
  /** If there is no room for this time, the partitions are given to other members. */
  pauseAfterMs: number
  /** How often the partitions are asked for what waits in them. */
  watchEveryMs: number
  /** Settings of NATS that nothing else notices are looked at again so often. */
  lookEveryMs: number
  silentAfterMs: number
  unheardAfterMs: number
  messageBytesMax: number
}

/** The stream in which NATS stores what devices publish over MQTT with QoS 1 and 2. */
export const mqttStream = '$MQTT_msgs'
