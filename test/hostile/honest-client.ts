// honest-client.ts: a device of the fleet, in a process of its own: 50 messages a second with QoS 1, one at a time.
// Beside it, newcomers: twice a second a listed device connects, publishes one message and disconnects.
//
// The parent asks for a report with `report`, which also starts the next period. The process ends with its parent.

import { connect as connectTcp, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setInterval as every, setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { generate, parser, type Packet } from 'mqtt-packet'
import { createLatency, type LatencySummary } from '../../src/simulate/ack-latency.ts'

export type HonestOptions = {
  port: number
  /** PEM of the authority of the listener; null for plain TCP. */
  ca: string | null
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
/** When each newcomer began that is not done. */
const waiting = new Set<number>()

process.on('message', () => {
  const { p50Ms, maxMs } = newcomerLatency.summary()
  const waitingMs = [...waiting].map((startedMs) => performance.now() - startedMs)
  const report: HonestReport = {
    latency: latency.summary(),
    due,
    lost,
    newcomers: { tried, failed, p50Ms, worstMs: Math.max(maxMs, ...waitingMs) },
  }
  latency = createLatency()
  newcomerLatency = createLatency()
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

/** A connection with CONNACK 0; null where it is refused, ends or is not answered in time. */
async function openLink(clientId: string, timeoutMs: number): Promise<Link | null> {
  const to = { port: options.port, host: '127.0.0.1', noDelay: true }
  const socket: Socket =
    options.ca === null ? connectTcp(to) : connectTls({ ...to, ca: options.ca, servername: 'localhost' })
  let ended = false
  let onPacket: (packet: Packet | null) => void = () => undefined
  const parse = parser({ protocolVersion: 4 })
  parse.on('packet', (packet) => onPacket(packet))
  socket.on('data', (chunk) => parse.parse(chunk))
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
  const { userName: username, password } = options
  const connack = await answer(
    generate({
      cmd: 'connect',
      protocolVersion: 4,
      clientId,
      clean: true,
      keepalive: 30,
      username,
      password: Buffer.from(password),
    }),
    Math.max(1, timeoutMs),
  )
  if (connack?.cmd !== 'connack' || connack.returnCode !== 0) {
    socket.destroy()
    return null
  }
  return {
    get ended() {
      return ended
    },
    async publish(device, boundMs) {
      const messageId = (serial % 65_535) + 1
      const payload = messageOf(device)
      const topic = `telemetry/v1/${device}`
      const packet = await answer(
        generate({ cmd: 'publish', topic, payload, qos: 1, dup: false, retain: false, messageId }),
        boundMs,
      )
      return packet?.cmd === 'puback' && packet.messageId === messageId
    },
    end: () => void socket.end(),
  }
}

/** Each message is another one. */
function messageOf(device: string): string {
  serial += 1
  const latitude = 51 + (serial % 100_000) / 1e5
  return JSON.stringify({ device, seq: serial, ts: Date.now(), gps: { lat: latitude, lon: 9.5 } })
}
