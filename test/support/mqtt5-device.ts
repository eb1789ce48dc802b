// mqtt5-device.ts: an MQTT 5 device for tests, over TCP or WebSocket. The test writes each byte; what comes is
// read strictly (mqtt5-reader.ts), and `received` throws where a packet was malformed.

import { once } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { createWebSocketStream, WebSocket } from 'ws'
import { connectPacket, type ConnectFields } from './mqtt5-packets.ts'
import { readServerPacket, type ServerPacket } from './mqtt5-reader.ts'

export type Device5 = AsyncDisposable & {
  /** All packets in the order in which they came. */
  readonly received: readonly ServerPacket[]
  readonly closed: boolean
  /** Sends CONNECT and resolves with the CONNACK; rejects when the connection ends before. */
  connect(fields?: ConnectFields): Promise<ServerPacket>
  send(...packets: readonly Buffer[]): void
  /** Resolves with the first packet of `type` behind the first `skip` of them; rejects when the connection ends. */
  next(type: ServerPacket['type'], skip?: number): Promise<ServerPacket>
  /** Resolves when `met` holds, checked after each chunk; rejects when the connection ends before. */
  until(met: () => boolean): Promise<void>
  /** Resolves when the connection is gone, with the DISCONNECT of the server, null where none came. */
  gone(): Promise<ServerPacket | null>
  pause(): void
  resume(): void
  /** Ends the connection without DISCONNECT. */
  destroy(): void
}

type Options = {
  /** `mqtt://HOST:PORT` or `ws://HOST:PORT/PATH`. */
  url: string
  /** Address of this end, such as 127.0.0.2; TCP only. */
  from?: string
}

type Waiter = {
  look: () => ServerPacket | null | undefined
  resolve: (found: ServerPacket | null) => void
  reject: (error: Error) => void
}

export async function openDevice5(options: Options): Promise<Device5> {
  const stream = await open(options)
  const received: ServerPacket[] = []
  let rest: Buffer = Buffer.alloc(0)
  let fault: Error | null = null
  let closed = false
  let waiters: Waiter[] = []
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    try {
      for (let packet = readServerPacket(rest); packet !== null; packet = readServerPacket(rest)) {
        received.push(packet)
        rest = rest.subarray(packet.bytes)
      }
    } catch (error) {
      fault = error as Error
      stream.destroy()
    }
    settle()
  })
  // A reset is one way in which a connection ends.
  stream.on('error', () => stream.destroy())
  stream.on('close', () => {
    closed = true
    settle()
  })
  stream.on('end', () => stream.destroy())

  function settle(): void {
    const left: Waiter[] = []
    for (const waiter of waiters) {
      const found = fault === null ? waiter.look() : undefined
      if (fault !== null) waiter.reject(fault)
      else if (found !== undefined) waiter.resolve(found)
      else if (closed) waiter.reject(new Error(`the connection ended after ${names()}`))
      else left.push(waiter)
    }
    waiters = left
  }

  function names(): string {
    return received.map(({ type, code }) => `${type} ${code}`).join(', ') || 'no packet'
  }

  function wait(look: Waiter['look']): Promise<ServerPacket | null> {
    return new Promise((resolve, reject) => {
      waiters.push({ look, resolve, reject })
      settle()
    })
  }

  const device: Device5 = {
    get received() {
      if (fault !== null) throw fault
      return received
    },
    get closed() {
      return closed
    },
    connect(fields) {
      device.send(connectPacket(fields))
      return device.next('connack')
    },
    send(...packets) {
      if (stream.writable) stream.write(packets.length === 1 ? packets[0] : Buffer.concat(packets))
    },
    async next(type, skip = 0) {
      const found = await wait(() => received.filter((packet) => packet.type === type)[skip])
      if (found === null) throw new Error('unreachable: `look` gives no null')
      return found
    },
    async until(met) {
      await wait(() => (met() ? null : undefined))
    },
    gone: () =>
      wait(() => (closed ? (received.find(({ type }) => type === 'disconnect') ?? null) : undefined)),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    destroy: () => void stream.destroy(),
    async [Symbol.asyncDispose]() {
      stream.destroy()
      if (!stream.closed) await once(stream, 'close')
    },
  }
  return device
}

async function open({ url, from }: Options): Promise<Duplex> {
  if (url.startsWith('ws')) {
    const socket = new WebSocket(url, 'mqtt', { perMessageDeflate: false })
    await once(socket, 'open')
    return createWebSocketStream(socket)
  }
  const { hostname, port } = new URL(url)
  const socket = connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    ...(from === undefined ? {} : { localAddress: from }),
  })
  await once(socket, 'connect')
  return socket
}
