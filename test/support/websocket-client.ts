// websocket-client.ts: a client of WebSocket for tests that writes each byte itself: the request, the frames, their
// masks. It reads frames of the server strictly.

import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { generate, parser, type Packet } from 'mqtt-packet'
import type { ListenerOptions } from '../../src/ingest/broker/listeners/listeners.ts'
import { connectBytes, publishBytes } from './mqtt-device.ts'

export type FrameOptions = {
  /** Default: 2, binary. */
  opcode?: number
  fin?: boolean
  mask?: Buffer | null
  /** The length that the head announces; default: that of the payload. */
  announced?: number
  /** Reserved bits. */
  reserved?: number
}

export type ReceivedFrame = { opcode: number; fin: boolean; payload: Buffer }

export type RequestOptions = {
  path?: string
  method?: string
  /** Replaces or adds; null leaves one out. */
  headers?: Record<string, string | null>
  /** Answers the close frame of the server. Default: true. */
  answersClose?: boolean
}

export type WebSocketClient = {
  readonly socket: Socket
  /** Status and head of the answer, and its body where it is no 101. */
  readonly answer: { status: number; head: string; body: string }
  readonly frames: readonly ReceivedFrame[]
  /** The packets of MQTT in the binary frames. */
  readonly packets: readonly Packet[]
  readonly closed: boolean
  /** The code of the close frame, once it came. */
  closeCode(): number | null
  send(...packets: readonly (Packet | Buffer)[]): void
  sendFrame(payload: Buffer, options?: FrameOptions): void
  sendBytes(bytes: Buffer): void
  /** Sends CONNECT and waits for CONNACK. */
  connect(clientId: string): Promise<Packet>
  until(met: (client: WebSocketClient) => boolean): Promise<void>
  acked(count: number): Promise<void>
  gone(): Promise<void>
}

const defaultMask = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

export function frame(payload: Buffer, options: FrameOptions = {}): Buffer {
  const { opcode = 2, fin = true, mask = defaultMask, announced = payload.length, reserved = 0 } = options
  const short = announced < 126 ? announced : announced < 65_536 ? 126 : 127
  const head = Buffer.alloc(2 + (short === 126 ? 2 : short === 127 ? 8 : 0))
  head[0] = (fin ? 0x80 : 0) | reserved | opcode
  head[1] = (mask === null ? 0 : 0x80) | short
  if (short === 126) head.writeUInt16BE(announced, 2)
  if (short === 127) head.writeBigUInt64BE(BigInt(announced), 2)
  if (mask === null) return Buffer.concat([head, payload])
  const masked = Buffer.from(payload)
  for (let index = 0; index < masked.length; index += 1) masked[index]! ^= mask[index & 3]!
  return Buffer.concat([head, mask, masked])
}

export function upgradeRequest({
  path = '/mqtt',
  method = 'GET',
  headers = {},
}: RequestOptions = {}): Buffer {
  const all: Record<string, string | null> = {
    Host: 'gateway',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': 'mqtt',
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${value}\r\n`],
  )
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

export type Place = {
  port: number
  /** Sent before everything else, such as a header of the PROXY protocol. */
  before?: Buffer
  tls?: { ca: string; cert?: string; key?: string }
}

/** Sends the request, and resolves with its answer or the end of the connection. */
export async function openWebSocket(place: Place, request: RequestOptions = {}): Promise<WebSocketClient> {
  const { port, before = Buffer.alloc(0), tls } = place
  const carrier = connectTcp({ port, host: '127.0.0.1', noDelay: true })
  carrier.on('error', () => carrier.destroy())
  let socket: Socket = carrier
  if (tls) {
    await once(carrier, 'connect')
    if (before.length > 0) carrier.write(before)
    const secure = connectTls({ socket: carrier, servername: 'localhost', ...tls })
    secure.on('error', () => secure.destroy())
    socket = secure
    await once(socket, 'secureConnect')
  } else {
    await once(socket, 'connect')
    if (before.length > 0) socket.write(before)
  }
  return speak(socket, upgradeRequest(request), request.answersClose ?? true)
}

async function speak(socket: Socket, request: Buffer, answersClose: boolean): Promise<WebSocketClient> {
  const frames: ReceivedFrame[] = []
  const packets: Packet[] = []
  const answer = { status: 0, head: '', body: '' }
  let waiters: { met: () => boolean; done: () => void; fail: (error: Error) => void }[] = []
  let bytes = Buffer.alloc(0)
  let closed = false
  const mqtt = parser({ protocolVersion: 4 })
  mqtt.on('packet', (packet) => void packets.push(packet))
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    if (answer.status === 0) readAnswer()
    if (answer.status === 101) readFrames()
    else answer.body = bytes.toString()
    settle()
  })
  socket.on('close', () => {
    closed = true
    settle()
  })

  function readAnswer(): void {
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    answer.head = bytes.toString('latin1', 0, end)
    answer.status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer.head)?.[1])
    bytes = bytes.subarray(end + 4)
  }

  function readFrames(): void {
    for (;;) {
      const [first = 0, short = 0] = bytes
      const start = short < 126 ? 2 : short === 126 ? 4 : 10
      if (bytes.length < start) return
      const length =
        short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
      if (bytes.length < start + length) return
      const payload = Buffer.from(bytes.subarray(start, start + length))
      bytes = bytes.subarray(start + length)
      // A server must not mask, and this one asks for no extension.
      if ((first & 0x70) !== 0 || short > 127) throw new Error('the server broke the WebSocket protocol')
      frames.push({ opcode: first & 15, fin: first >= 0x80, payload })
      if ((first & 15) === 2) mqtt.parse(payload)
      if ((first & 15) === 8 && answersClose && socket.writable) socket.end(frame(payload, { opcode: 8 }))
    }
  }

  function settle(): void {
    const before = waiters
    waiters = []
    for (const waiter of before)
      if (waiter.met()) waiter.done()
      else if (closed) waiter.fail(new Error('the connection ended'))
      else waiters.push(waiter)
  }

  const client: WebSocketClient = {
    socket,
    answer,
    frames,
    packets,
    get closed() {
      return closed
    },
    closeCode() {
      const payload = frames.find(({ opcode }) => opcode === 8)?.payload
      return payload === undefined ? null : payload.length < 2 ? 1005 : payload.readUInt16BE(0)
    },
    send(...all) {
      client.sendFrame(Buffer.concat(all.map((one) => (Buffer.isBuffer(one) ? one : generate(one)))))
    },
    sendFrame: (payload, options) => client.sendBytes(frame(payload, options)),
    sendBytes(more) {
      if (socket.writable) socket.write(more)
    },
    async connect(clientId) {
      client.send(connectBytes(clientId))
      await client.until(() => packets[0]?.cmd === 'connack')
      return packets[0]!
    },
    until: (met) =>
      new Promise((done, fail) => {
        waiters.push({ met: () => met(client), done, fail })
        settle()
      }),
    acked: (count) => client.until(() => packets.filter(({ cmd }) => cmd === 'puback').length >= count),
    gone: () => client.until(() => closed),
  }
  socket.write(request)
  await client.until(() => answer.status !== 0 || closed)
  return client
}

/** The options of a gateway that listens for WebSocket alone. */
export const webSocketListener: ListenerOptions = {
  host: '127.0.0.1',
  port: 0,
  tls: null,
  webSocket: { path: '/mqtt', origins: [] },
}

/** A message of QoS 1 whose text names its identifier. */
export const published = (messageId: number, payload = `m${messageId}`) =>
  publishBytes({ topic: 't', payload, messageId })
