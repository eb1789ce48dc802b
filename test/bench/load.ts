// load.ts: the load generator, a process of its own.
//
//   node test/bench/load.ts --port P [--connections 16] [--window 64] [--messages 600000] [--bytes 320] [--rate 0]
//     [--live 0] [--tls 0] [--devices 1]
//
// Opens all connections first, then publishes: with `--rate 0` each connection keeps `window` messages unacked,
// otherwise the connections take turns at `rate` messages a second. Each message is another one, and each PUBACK
// must name a message that is under way. Prints one JSON line (LoadResult). Ends with status 1 when a connection
// is lost, an ack makes no sense, or nothing is acked for 30 s.

import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createLatency } from '../../src/simulate/ack-latency.ts'
import type { LatencySummary } from '../../src/simulate/ack-latency.ts'
import { numbersOf, writeLine } from './script.ts'
import { answerBytes, connackPacket, connectPacket, createPublisher, pubackIdAt } from './wire.ts'
import type { Publisher } from './wire.ts'

export type LoadResult = {
  messages: number
  connections: number
  window: number
  payloadBytes: number
  /** From the first publish to the last ack. */
  tookMs: number
  ackedPerS: number
  /** From the write of a message to the read of its ack. */
  latency: LatencySummary
  /** Processor time of this process meanwhile: near `tookMs`, the generator itself was the limit. */
  cpuMs: number
}

const options = numbersOf({
  port: 0,
  connections: 16,
  window: 64,
  messages: 600_000,
  bytes: 320,
  rate: 0,
  /** 1: devices named live-*, whose device time is the moment of publishing, so that the sink can tell how old it is. */
  live: 0,
  /** 1: over TLS, with any certificate. */
  tls: 0,
  /** Devices of each connection: it publishes for them in turn. */
  devices: 1,
})
const silenceMaxMs = 30_000
/** A paced run has no window: an identifier is used again after more time than acks may take. */
const pacedIds = Math.ceil((options.rate / options.connections) * 2 * (silenceMaxMs / 1000))
const idsOfEach = options.rate > 0 ? Math.min(20_000, Math.max(64, pacedIds)) : options.window * 2
/** All connections read into it, one after the other. */
const readBuffer = Buffer.allocUnsafe(64 * 1024)

type Connection = {
  socket: Socket
  publishers: readonly Publisher[]
  /** Messages that were published. */
  published: number
  /** When each packet identifier was sent; 0 where it is free. */
  sentAtMs: Float64Array
  nextId: number
  partial: Buffer
}

const latency = createLatency()
let sent = 0
let acked = 0
let startedAtMs = 0
let progressAtMs = 0
let cpuAtStart = process.cpuUsage()
const connections = await openConnections()
startedAtMs = progressAtMs = performance.now()
cpuAtStart = process.cpuUsage()
const watch = setInterval(() => {
  if (performance.now() - progressAtMs > silenceMaxMs) fail(`nothing was acked for ${silenceMaxMs} ms`)
}, 1000)
if (options.rate > 0) publishPaced()
else for (const connection of connections) publish(connection, options.window)

async function openConnections(): Promise<Connection[]> {
  const runDigits = String(Math.floor(Math.random() * 1e6)).padStart(6, '0')
  // The last message's device time is about now: nothing comes from the future, nothing is old.
  const firstTimeMs = Date.now() - Math.ceil(options.messages / options.connections)
  const opened: Connection[] = []
  // In groups, so that the listen queue of the broker is not the thing that is measured.
  for (let first = 1; first <= options.connections; first += 50) {
    const last = Math.min(first + 49, options.connections)
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index)
    opened.push(...(await Promise.all(numbers.map((number) => open(number, { runDigits, firstTimeMs })))))
  }
  return opened
}

function open(number: number, run: { runDigits: string; firstTimeMs: number }): Promise<Connection> {
  const kind = options.live > 0 ? 'live' : 'truck'
  const first = (number - 1) * options.devices + 1
  const devices = Array.from(
    { length: options.devices },
    (_, index) => `${kind}-${String(first + index).padStart(5, '0')}`,
  )
  const device = devices[0]!
  const publishers = devices.map((name) =>
    createPublisher({ device: name, payloadBytes: options.bytes, ...run }),
  )
  return new Promise((resolve) => {
    const to = { port: options.port, host: '127.0.0.1', noDelay: true }
    const callback = (length: number) => {
      onBytes(readBuffer.subarray(0, length))
      return true
    }
    const onread = { buffer: readBuffer, callback }
    const isTls = options.tls > 0
    const socket: Socket = isTls
      ? connectTls({ ...to, rejectUnauthorized: false })
      : connect({ ...to, onread })
    const connection: Connection = {
      socket,
      publishers,
      published: 0,
      sentAtMs: new Float64Array(idsOfEach + 1),
      nextId: 1,
      partial: Buffer.alloc(0),
    }
    let accepted = false
    socket.on(isTls ? 'secureConnect' : 'connect', () => void socket.write(connectPacket(device)))
    socket.on('error', (error) => fail(`${device}: ${error.message}`))
    socket.on('close', () => fail(`${device}: the broker closed the connection`))
    if (isTls) socket.setNoDelay(true).on('data', onBytes)

    function onBytes(bytes: Buffer): void {
      if (accepted) {
        readAcks(connection, bytes)
        return
      }
      if (!bytes.equals(connackPacket)) fail(`${device}: no CONNACK but ${bytes.toString('hex')}`)
      accepted = true
      resolve(connection)
    }
  })
}

function readAcks(connection: Connection, chunk: Buffer): void {
  const bytes = connection.partial.length > 0 ? Buffer.concat([connection.partial, chunk]) : chunk
  const nowMs = performance.now()
  let at = 0
  for (; at + answerBytes <= bytes.length; at += answerBytes) {
    const id = pubackIdAt(bytes, at)
    const sentAtMs = connection.sentAtMs[id] ?? 0
    if (sentAtMs === 0) fail(`an ack that belongs to no message: ${bytes.toString('hex', at, at + 4)}`)
    connection.sentAtMs[id] = 0
    latency.record(nowMs - sentAtMs)
  }
  // A copy: the chunk's memory is read into again.
  connection.partial = Buffer.from(bytes.subarray(at))
  const count = at / answerBytes
  acked += count
  progressAtMs = nowMs
  if (acked === options.messages) finish(nowMs)
  else if (options.rate === 0) publish(connection, count)
}

/** Writes the next `count` messages of a connection at once, or what is left of the run. */
function publish(connection: Connection, count: number): void {
  const now = Math.min(count, options.messages - sent)
  if (now <= 0) return
  const { publishers, sentAtMs } = connection
  // The names of the devices have one length, and so have their packets.
  const packetBytes = publishers[0]!.packetBytes
  const bytes = Buffer.allocUnsafe(now * packetBytes)
  const nowMs = performance.now()
  let end = 0
  for (let index = 0; index < now; index += 1) {
    const id = connection.nextId
    if (sentAtMs[id] !== 0) fail(`packet identifier ${id} is still under way: acks come out of order`)
    sentAtMs[id] = nowMs
    connection.nextId = id + 1 < sentAtMs.length ? id + 1 : 1
    const publisher = publishers[connection.published % publishers.length]!
    connection.published += 1
    if (options.live > 0) publisher.setTime(Date.now())
    end = publisher.writeNext(bytes, end, id)
  }
  sent += now
  connection.socket.write(bytes.subarray(0, end))
}

function publishPaced(): void {
  const gapMs = 1000 / options.rate
  let dueMs = startedAtMs
  let turn = 0
  const tick = () => {
    for (; dueMs <= performance.now() && sent < options.messages; dueMs += gapMs) {
      const connection = connections[turn]
      turn = (turn + 1) % connections.length
      if (connection) publish(connection, 1)
    }
    if (sent < options.messages) setTimeout(tick, 1)
  }
  tick()
}

function finish(nowMs: number): void {
  clearInterval(watch)
  const tookMs = nowMs - startedAtMs
  const { user, system } = process.cpuUsage(cpuAtStart)
  const result: LoadResult = {
    messages: acked,
    connections: connections.length,
    window: options.window,
    payloadBytes: connections[0]?.publishers[0]?.payloadBytes ?? 0,
    tookMs,
    ackedPerS: acked / (tookMs / 1000),
    latency: latency.summary(),
    cpuMs: (user + system) / 1000,
  }
  writeLine(result)
  for (const { socket } of connections) socket.removeAllListeners('close').destroy()
}

function fail(why: string): never {
  process.stderr.write(`load: ${why} (${acked} of ${options.messages} acked)\n`)
  process.exit(1)
}
