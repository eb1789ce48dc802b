// raw-device.ts: a device for tests over TCP, TLS or WebSocket, of any version of MQTT. The test writes each byte;
// what comes is read by the reader of a version, and `received` throws where a packet was malformed.

import { once } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { createWebSocketStream, WebSocket } from 'ws'
import type { ServerPacket } from './mqtt5-reader.ts'

/** The packet at the start of `bytes`; null while it is not whole. Throws where a server may not send it. */
export type PacketRead = (bytes: Buffer) => ServerPacket | null

export type RawDevice = AsyncDisposable & {
  /** All packets in the order in which they came. */
  readonly received: readonly ServerPacket[]
  readonly closed: boolean
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

export type DeviceOptions = {
  /** `mqtt://HOST:PORT`, `ws://HOST:PORT/PATH`, or `mqtts` and `wss`. */
  url: string
  /** Address of this end, such as 127.0.0.2. */
  from?: string
  /** PEM of the authority of the gateway's certificate, for `mqtts` and `wss`. */
  ca?: string
}

type Waiter = {
  look: () => ServerPacket | null | undefined
  resolve: (found: ServerPacket | null) => void
  reject: (error: Error) => void
}

export async function openRawDevice(options: DeviceOptions, read: PacketRead): Promise<RawDevice> {
  const stream = await open(options)
  const received: ServerPacket[] = []
  let rest: Buffer = Buffer.alloc(0)
  let fault: Error | null = null
  let closed = false
  let waiters: Waiter[] = []
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    try {
      for (let packet = read(rest); packet !== null; packet = read(rest)) {
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

  return {
    get received() {
      if (fault !== null) throw fault
      return received
    },
    get closed() {
      return closed
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
}

async function open({ url, from, ca }: DeviceOptions): Promise<Duplex> {
  const { protocol, hostname, port } = new URL(url)
  const end = from !== undefined && { localAddress: from }
  const trust = { ...(ca !== undefined && { ca }), ...end }
  if (protocol.startsWith('ws')) {
    const socket = new WebSocket(url, 'mqtt', { perMessageDeflate: false, ...trust })
    await once(socket, 'open')
    return createWebSocketStream(socket)
  }
  const place = { host: hostname, port: Number(port), ...end }
  if (protocol === 'mqtts:') {
    const socket = connectTls({ ...place, ...trust })
    await once(socket, 'secureConnect')
    return socket.setNoDelay(true)
  }
  const socket = connect({ ...place, noDelay: true })
  await once(socket, 'connect')
  return socket
}
