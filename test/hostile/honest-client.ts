// honest-client.ts: a device of the fleet, in a process of its own: 50 messages a second with QoS 1, one at a time.
// Beside it, newcomers: twice a second a listed device connects, publishes one message and disconnects.
//
// Each message has a number of its own, which is its time. It reports those that were acknowledged: the service must
// get them all.
//
// The parent asks for a report with `report`, which also starts the next period. The process ends with its parent.

import { connect as connectTcp } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setInterval as every, setTimeout as pause } from 'node:timers/promises'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { generate, parser, type Packet } from 'mqtt-packet'
import { createWebSocketStream, WebSocket } from 'ws'
import { createLatency, type LatencySummary } from '../../src/simulate/ack-latency.ts'
import { isSecure, isWebSocket, schemes, type Route } from './route.ts'

export type HonestOptions = Route & {
  port: number
  /** PEM of the authority of the listener. */
  ca: string
  /** The time of its first message. */
  firstTime: number
  userName: string
  password: string
  /** Listed names: that of the steady client, and those of the newcomers. */
  device: string
  newcomers: readonly string[]
}

export type HonestReport = {
  /** From the write of a message to the read of its PUBACK. */
  latency: LatencySummary
  /** Messages that were due in the period. Less are acknowledged where one waits for long. */
  due: number
  /** Ends of the connection of the steady client. */
  lost: number
  /** Times of the messages that were acknowledged, those of newcomers included. */
  acked: readonly number[]
  newcomers: { tried: number; failed: number; p50Ms: number; worstMs: number }
}

const periodMs = 20
const newcomerMs = 500
/** A newcomer tries again until then, as devices do. */
const newcomerMaxMs = 8000
const retryMs = 250

const options = JSON.parse(process.argv[2] ?? '{}') as HonestOptions
let latency = createLatency()
let newcomerLatency = createLatency()
let [lost, due, tried, failed] = [0, 0, 0, 0]
let serial = 0
let acked: number[] = []
/** When each newcomer began that is not done. */
const waiting = new Set<number>()

process.on('message', () => {
  const { p50Ms, maxMs } = newcomerLatency.summary()
  const waitingMs = [...waiting].map((startedMs) => performance.now() - startedMs)
  const report: HonestReport = {
    latency: latency.summary(),
    due,
    lost,
    acked,
    newcomers: { tried, failed, p50Ms, worstMs: Math.max(maxMs, ...waitingMs) },
  }
  latency = createLatency()
  newcomerLatency = createLatency()
  acked = []
  ;[lost, due, tried, failed] = [0, 0, 0, 0]
  process.send?.(report)
})
process.on('disconnect', () => process.exit(0))
void publishSteadily()
void bringNewcomers()
setInterval(() => {
  due += 1
}, periodMs)

async function publishSteadily(): Promise<never> {
  for (let connections = 0; ; connections += 1) {
    if (connections > 0) {
      lost += 1
      await pause(100)
    }
    const link = await openLink(`honest-${options.device}`, 5000)
    if (link === null) continue
    if (connections === 0) process.send?.('connected')
    let nextAtMs = performance.now()
    while (!link.ended) {
      const startedMs = performance.now()
      await link.publish(options.device, Infinity)
      if (!link.ended) latency.record(performance.now() - startedMs)
      nextAtMs = Math.max(nextAtMs + periodMs, performance.now() - periodMs)
      const restMs = nextAtMs - performance.now()
      if (restMs > 0) await pause(restMs)
    }
  }
}

async function bringNewcomers(): Promise<void> {
  let turn = 0
  for await (const _ of every(newcomerMs)) {
    const device = options.newcomers[turn % options.newcomers.length] ?? options.device
    turn += 1
    tried += 1
    void bringNewcomer(device, `newcomer-${turn}`)
  }
}

async function bringNewcomer(device: string, clientId: string): Promise<void> {
  const startedMs = performance.now()
  waiting.add(startedMs)
  const restMs = () => newcomerMaxMs - (performance.now() - startedMs)
  while (restMs() > 0) {
    const link = await openLink(clientId, restMs())
    const published = link !== null && (await link.publish(device, restMs()))
    link?.end()
    if (published) {
      newcomerLatency.record(performance.now() - startedMs)
      waiting.delete(startedMs)
      return
    }
    await pause(retryMs)
  }
  waiting.delete(startedMs)
  failed += 1
}

type Link = {
  readonly ended: boolean
  /** True when the PUBACK came. */
  publish(device: string, timeoutMs: number): Promise<boolean>
  end(): void
}

function openStream(): Duplex {
  const { port, ca, transport } = options
  if (isWebSocket(transport)) {
    const url = `${schemes[transport]}://localhost:${port}/mqtt`
    return createWebSocketStream(new WebSocket(url, 'mqtt', { ca, family: 4, perMessageDeflate: false }))
  }
  const to = { port, host: '127.0.0.1', noDelay: true }
  return isSecure(transport) ? connectTls({ ...to, ca, servername: 'localhost' }) : connectTcp(to)
}

/** A connection with CONNACK 0; null where it is refused, ends or is not answered in time. */
async function openLink(clientId: string, timeoutMs: number): Promise<Link | null> {
  const socket = openStream()
  const { version: protocolVersion, userName: username, password } = options
  let ended = false
  let onPacket: (packet: Packet | null) => void = () => undefined
  const parse = parser({ protocolVersion })
  parse.on('packet', (packet) => onPacket(packet))
  socket.on('data', (chunk) => parse.parse(chunk))
  // The stream of a WebSocket waits for both directions.
  socket.on('end', () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    ended = true
    onPacket(null)
  })
  const answer = (bytes: Buffer, boundMs: number) =>
    new Promise<Packet | null>((resolve) => {
      const timer = Number.isFinite(boundMs) ? setTimeout(() => socket.destroy(), boundMs) : undefined
      onPacket = (packet) => {
        clearTimeout(timer)
        resolve(packet)
      }
      if (ended) onPacket(null)
      else socket.write(bytes)
    })
  const connack = await answer(
    generate({
      cmd: 'connect',
      protocolVersion,
      clientId,
      clean: true,
      keepalive: 30,
      username,
      password: Buffer.from(password),
    }),
    Math.max(1, timeoutMs),
  )
  if (connack?.cmd !== 'connack' || (connack.reasonCode ?? connack.returnCode) !== 0) {
    socket.destroy()
    return null
  }
  /** With MQTT 5 it has an alias from its first message on. */
  let aliased: string | null = null
  return {
    get ended() {
      return ended
    },
    async publish(device, boundMs) {
      const { number, payload } = messageOf(device)
      const messageId = (number % 65_535) + 1
      const topic = aliased === device ? '' : `telemetry/v1/${device}`
      aliased = options.version === 5 ? device : null
      const properties = options.version === 5 ? { properties: { topicAlias: 1 } } : {}
      const packet = await answer(
        generate(
          { cmd: 'publish', topic, payload, qos: 1, dup: false, retain: false, messageId, ...properties },
          { protocolVersion },
        ),
        boundMs,
      )
      if (packet?.cmd !== 'puback' || packet.messageId !== messageId || (packet.reasonCode ?? 0) !== 0)
        return false
      acked.push(options.firstTime + number)
      return true
    },
    end: () => void socket.end(),
  }
}

/** Each message is another one. */
function messageOf(device: string): { number: number; payload: string } {
  serial += 1
  const ts = options.firstTime + serial
  const latitude = 51 + (serial % 100_000) / 1e5
  return {
    number: serial,
    payload: JSON.stringify({ device, seq: serial, ts, gps: { lat: latitude, lon: 9.5 } }),
  }
}
