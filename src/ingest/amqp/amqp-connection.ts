// amqp-connection.ts: one connection to a node of RabbitMQ with one channel, from the socket to its end.
//
// amqplib does not connect again, has no limit of time for its handshake, and leaves Nagle's algorithm on:
// the limit and the end of the socket are here, by a signal, and `noDelay` is set. Its errors come as events;
// `ended` gets the first one, once.

import { connect, credentials as logins, type Channel, type ChannelModel, type ConfirmChannel } from 'amqplib'
import { isIP } from 'node:net'
import { addressAttempts, noteAttempts, type Attempts } from '../../std/network-faults/address-attempts.ts'
import { pause, type Clock } from '../../std/clock.ts'
import { AmqpEnd, amqpFault, type AmqpFault, type AmqpPlace } from './amqp-faults/amqp-faults.ts'
import type { AmqpCredentials, AmqpNode, AmqpOptions } from './types.ts'

export type AmqpConnection<C extends Channel = Channel> = {
  readonly channel: C
  /** Of RabbitMQ: 4.0.5 is 4000, 3.10.8 is 3010. */
  readonly version: number
  readonly versionText: string
  /** Messages of each of these queues, up to the first that does not exist. On a channel of its own. */
  depthsOf(queues: readonly string[]): Promise<number[]>
  /** Words for an end that the caller saw. */
  faultOf(error: unknown): AmqpFault
  /** The bridge uses it: a fault from here on is not one of opening. */
  opened(): void
  /** Channel and connection, with what was written before; not longer than a second. */
  close(): Promise<void>
  /** At once. */
  destroy(): void
}

type Request = {
  options: AmqpOptions
  credentials: AmqpCredentials
  node: AmqpNode
  /** Whom it is for, in the list of connections of RabbitMQ. */
  label: string
  queue: string | null
  /** Once, for the first reason, also before it is open. Nothing comes after it. */
  ended: (fault: AmqpFault) => void
  /** RabbitMQ takes no messages from it because of an alarm, in its words; null: it does again. */
  blocked?: (reason: string | null) => void
}

const closeMs = 1000
export const heartbeatMs = 10_000
/** A frame has at most what was agreed on, 128 KiB. */
const frameBytesMax = 1024 * 1024
const notFoundCode = 404
const never = new AbortController().signal

/** Resolves with null where `ended` was called. */
export function openChannel(clock: Clock, request: Request): Promise<AmqpConnection | null> {
  return open(clock, request, (model) => model.createChannel())
}

/** With publisher confirms. */
export function openConfirmChannel(
  clock: Clock,
  request: Request,
): Promise<AmqpConnection<ConfirmChannel> | null> {
  return open(clock, request, (model) => model.createConfirmChannel())
}

async function open<C extends Channel>(
  clock: Clock,
  { options, credentials, node, label, queue, ended, blocked }: Request,
  channelOf: (model: ChannelModel) => Promise<C>,
): Promise<AmqpConnection<C> | null> {
  const place: AmqpPlace = { ...options, ...credentials, node, queue, stage: 'connecting' }
  const socket = new AbortController()
  let isOver = false
  let model: ChannelModel | null = null
  let attempts: Attempts = () => undefined
  const closeSocket = async (closed: Promise<void> | undefined) => {
    await Promise.race([closed?.catch(() => undefined), pause(clock, closeMs, never)])
    socket.abort()
  }
  const end = (error: unknown) => {
    if (isOver) return
    isOver = true
    cancelLimit()
    // With a close where the channel alone has ended. It has no failure.
    void closeSocket(model?.close())
    ended(amqpFault(error, place))
  }
  const cancelLimit = clock.after(options.connectTimeoutMs, () => end(new AmqpEnd('NO_ANSWER', attempts())))
  try {
    const connecting = noteAttempts(() =>
      connect(addressOf(options, credentials, node), {
        ...socketOptions(credentials, node, label, socket.signal),
        ...addressAttempts(options.connectTimeoutMs),
      }),
    )
    attempts = connecting.attempts
    const opened = await connecting.made
    if (isOver) return null
    model = opened
    place.stage = 'opening'
    watch(opened, end)
    opened.on('blocked', (reason) => blocked?.(reason))
    opened.on('unblocked', () => blocked?.(null))
    const channel = await channelOf(opened)
    if (isOver) return null
    const serverVersion = opened.connection.serverProperties.version
    watch(channel, end)
    return {
      channel,
      version: versionOf(serverVersion),
      versionText: serverVersion,
      depthsOf: async (queues) => depthsOf(await opened.createChannel(), queues),
      faultOf: (error) => amqpFault(error, place),
      opened() {
        place.stage = 'open'
        cancelLimit()
      },
      async close() {
        isOver = true
        cancelLimit()
        // The channel first: its acknowledgements are written before its close, those of others are not.
        await closeSocket(channel.close().then(() => opened.close()))
      },
      destroy() {
        isOver = true
        cancelLimit()
        socket.abort()
      },
    }
  } catch (error) {
    end(error)
    return null
  }
}

async function depthsOf(channel: Channel, queues: readonly string[]): Promise<number[]> {
  // RabbitMQ closes the channel where there is no such queue.
  channel.on('error', () => undefined)
  const depths: number[] = []
  try {
    for (const queue of queues) depths.push((await channel.checkQueue(queue)).messageCount)
  } catch (error) {
    if ((error as { code?: unknown }).code !== notFoundCode) throw error
    return depths
  }
  await channel.close()
  return depths
}

/** A close without an error is one by the server or the network. */
function watch(emitter: Pick<ChannelModel, 'on'> | Channel, end: (error: unknown) => void): void {
  const { on } = emitter as { on(event: string, listener: (error?: Error) => void): unknown }
  on.call(emitter, 'error', end)
  on.call(emitter, 'close', (error) => end(error ?? new AmqpEnd('CLOSED')))
  // An error in a handler of ours is a mistake of ours: it must not look like one of the connection.
  on.call(emitter, 'handler-error', (error) => {
    throw error
  })
}

function addressOf({ vhost }: AmqpOptions, { userName, password }: AmqpCredentials, node: AmqpNode) {
  return {
    protocol: node.scheme,
    hostname: node.host,
    port: node.port,
    username: userName ?? 'guest',
    password: userName === null ? 'guest' : (password?.reveal() ?? ''),
    // It is decoded there.
    vhost: encodeURIComponent(vhost),
    heartbeat: heartbeatMs / 1000,
    maxFrameSize: frameBytesMax,
  }
}

function socketOptions(
  { tls, userName }: AmqpCredentials,
  node: AmqpNode,
  label: string,
  signal: AbortSignal,
) {
  return {
    noDelay: true,
    keepAlive: true,
    signal,
    clientProperties: { connection_name: `telemetry-gateway ${label}` },
    ...(node.scheme === 'amqps' && {
      ...(tls.ca !== null && { ca: tls.ca }),
      ...(tls.cert !== null && { cert: tls.cert }),
      ...(tls.key !== null && { key: tls.key.reveal() }),
      servername: tls.serverName ?? (isIP(node.host) === 0 ? node.host : ''),
    }),
    // Without a user name the certificate is the login.
    ...(userName === null && tls.cert !== null && { credentials: logins.external() }),
  }
}

function versionOf(text: string): number {
  const [major = '0', minor = '0'] = text.split('.')
  return Number.parseInt(major, 10) * 1000 + Number.parseInt(minor, 10)
}
