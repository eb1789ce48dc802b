// nats-connection.ts: one connection to a node of NATS, and what the parts ask of JetStream over it.
//
// The client connects anew for each attempt, and never by itself (nats-link.ts has the back-off):
// subscriptions and open pulls of a lost connection would come back without the partition that they belonged
// to. A node that is dead without a closed socket is noticed by PING, after three pauses.

import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node'
import {
  jetstream,
  jetstreamManager,
  type ConsumerInfo,
  type JetStreamClient,
  type JetStreamManager,
} from '@nats-io/jetstream'
import { addressText } from './nats-address.ts'
import type { JetStreamOptions, NatsTls } from './types.ts'

export type Connection = {
  nc: NatsConnection
  jsm: JetStreamManager
  js: JetStreamClient
  /** HOST:PORT of the node. */
  server: string
  version: string
}

export type { ConsumerInfo }

type ConnectionOptions = Pick<
  JetStreamOptions,
  'addresses' | 'member' | 'userName' | 'password' | 'token' | 'tls' | 'connectTimeoutMs'
>

/** Of each request to JetStream. An election takes longer; the caller tries again. */
export const requestMs = 2000
const pingEveryMs = 2000
const pingsMax = 2

export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { userName, password, token, tls } = options
  const nc = await connectTo({
    servers: options.addresses.map(addressText),
    name: `telemetry-gateway ${options.member}`,
    timeout: options.connectTimeoutMs,
    reconnect: false,
    // Nodes that the cluster tells of may have addresses that are not meant for this machine.
    ignoreClusterUpdates: true,
    pingInterval: pingEveryMs,
    maxPingOut: pingsMax,
    noAsyncTraces: true,
    tls: tls === null ? null : tlsOptions(tls),
    ...(token !== null && { token: token.reveal() }),
    ...(userName !== null && { user: userName }),
    ...(password !== null && { pass: password.reveal() }),
  })
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: requestMs })
  return {
    nc,
    jsm,
    js: jetstream(nc, { timeout: requestMs }),
    server: nc.getServer(),
    version: nc.info?.version ?? '',
  }
}

/** There was no connection yet: what fails is the address, or what answers there. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super('there is no connection to NATS', { cause })
  }
}

async function connectTo(options: NodeConnectionOptions): Promise<NatsConnection> {
  try {
    return await connect(options)
  } catch (error) {
    throw new NotConnected(error)
  }
}

function tlsOptions({ ca, cert, key, serverName }: NatsTls): Record<string, string> {
  return {
    ...(ca !== null && { ca }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key: key.reveal() }),
    ...(serverName !== null && { servername: serverName }),
  }
}
