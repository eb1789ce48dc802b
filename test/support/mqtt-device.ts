// mqtt-device.ts: an MQTT 3.1.1 device for tests. The test sets packet identifiers, DUP and QoS, and can send
// raw bytes as malformed packets. Acks are recorded in order.

import { once } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { generate, parser, type IConnackPacket, type IConnectPacket, type Packet } from 'mqtt-packet'
import { createWebSocketStream, WebSocket } from 'ws'

export type PublishOptions = {
  topic: string
  payload: string | Buffer
  qos?: 0 | 1 | 2
  messageId?: number
  dup?: boolean
  retain?: boolean
}

export type DeviceAck = { cmd: 'puback' | 'pubrec' | 'pubcomp'; messageId: number }

export type Device = {
  readonly clientId: string
  /** Acks in the order in which they came. */
  readonly acks: readonly DeviceAck[]
  /** All packets in the order in which they came. */
  readonly received: readonly Packet[]
  /** `true` once the connection has ended. */
  readonly closed: boolean
  /** Sends CONNECT and resolves with the CONNACK; rejects when the connection ends before. */
  connect(packet?: Partial<IConnectPacket>): Promise<IConnackPacket>
  publish(options: PublishOptions): void
  /** Sends any packet. */
  send(packet: Packet): void
  sendBytes(bytes: Buffer): void
  /** Resolves when `count` acks have come; rejects when the connection ends before. */
  acked(count: number): Promise<readonly DeviceAck[]>
  /** Resolves when `met` holds, checked after every packet; rejects when the connection ends before. */
  until(met: (received: readonly Packet[]) => boolean): Promise<void>
  /** Resolves when the connection is gone. */
  gone(): Promise<void>
  pause(): void
  resume(): void
  /** Ends the connection without DISCONNECT. */
  destroy(): void
  end(): void
}

type Waiter = { met: () => boolean; resolve: () => void; reject: (error: Error) => void }

const ackCommands = new Set(['puback', 'pubrec', 'pubcomp'])

/** The bytes of one PUBLISH. */
export function publishBytes(options: PublishOptions): Buffer {
  const { topic, payload, qos = 1, messageId = 1, dup = false, retain = false } = options
  const identified = qos === 0 ? {} : { messageId }
  return generate({ cmd: 'publish', topic, payload, qos, dup, retain, ...identified })
}

export function connectBytes(clientId: string, packet: Partial<IConnectPacket> = {}): Buffer {
  return generate({ cmd: 'connect', protocolVersion: 4, clientId, clean: true, keepalive: 0, ...packet })
}

/** Opens a connection; nothing is sent before connect(). */
export async function createDevice(options: {
  port: number
  host?: string
  clientId: string
  /** Address of this end, such as 127.0.0.2. */
  from?: string
  /** Answers each PUBREC with PUBREL. Default true. */
  releases?: boolean
  /** At the path `/mqtt`, instead of TCP alone. */
  overWebSocket?: boolean
}): Promise<Device> {
  const { port, host = '127.0.0.1' } = options
  const webSocket = options.overWebSocket
    ? new WebSocket(`ws://${host}:${port}/mqtt`, 'mqtt', { perMessageDeflate: false })
    : null
  const socket: Duplex =
    webSocket === null
      ? connect({
          port,
          host,
          ...(options.from === undefined ? {} : { localAddress: options.from }),
          noDelay: true,
        })
      : createWebSocketStream(webSocket)
  const received: Packet[] = []
  const acks: DeviceAck[] = []
  let waiters: Waiter[] = []
  let closed = false

  const parse = parser({ protocolVersion: 4 })
  parse.on('packet', (packet) => {
    received.push(packet)
    if (ackCommands.has(packet.cmd)) acks.push({ cmd: packet.cmd, messageId: packet.messageId } as DeviceAck)
    if (packet.cmd === 'pubrec' && options.releases !== false)
      send({ cmd: 'pubrel', messageId: packet.messageId ?? 0 })
    settleWaiters()
  })
  socket.on('data', (chunk) => parse.parse(chunk))
  // The stream of ws waits for both directions.
  if (webSocket !== null) socket.on('end', () => socket.destroy())
  // A reset is one way in which a connection ends; see `gone`.
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    closed = true
    settleWaiters()
  })
  await (webSocket === null ? once(socket, 'connect') : once(webSocket, 'open'))

  function settleWaiters(): void {
    const left: Waiter[] = []
    for (const waiter of waiters) {
      if (waiter.met()) waiter.resolve()
      else if (closed) waiter.reject(new Error(`${options.clientId}: the connection ended`))
      else left.push(waiter)
    }
    waiters = left
  }

  function wait(met: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      waiters.push({ met, resolve, reject })
      settleWaiters()
    })
  }

  function send(packet: Packet): void {
    if (socket.writable) socket.write(generate(packet))
  }

  function sendBytes(bytes: Buffer): void {
    if (socket.writable) socket.write(bytes)
  }

  return {
    clientId: options.clientId,
    acks,
    received,
    get closed() {
      return closed
    },
    async connect(packet) {
      sendBytes(connectBytes(options.clientId, packet))
      await wait(() => received[0]?.cmd === 'connack')
      return received[0] as IConnackPacket
    },
    publish: (publish) => sendBytes(publishBytes(publish)),
    send,
    sendBytes,
    async acked(count) {
      await wait(() => acks.length >= count)
      return acks
    },
    until: (met) => wait(() => met(received)),
    gone: () => wait(() => closed),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    destroy: () => void socket.destroy(),
    end: () => void socket.end(),
  }
}
