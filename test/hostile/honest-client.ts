// honest-client.ts: a device of the fleet, in a process of its own: 50 messages a second with QoS 1, one at a time.
// Beside it, newcomers: twice a second a listed device connects, publishes one message and disconnects.
//
// Each message has a time of its own. It reports those that were acknowledged: the service must get them all.
//
// The parent asks for a report with `report`, which also starts the next period. The process ends with its parent.

import { performance } from 'node:perf_hooks'
import { setInterval as every } from 'node:timers/promises'
import { createLatency, type LatencySummary } from '../../src/simulate/ack-latency.ts'
import type { DevicePlan } from '../support/driver/device.ts'
import { Fleet } from '../support/driver/fleet.ts'
import type { Route } from './route.ts'

export type HonestOptions = Pick<Route, 'version'> & {
  /** Of the listener, and PEM of its authority. */
  url: string
  ca: string
  /** The time of its first message. */
  firstTime: number
  login: { userName: string; password: string }
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
/** The times of the newcomers are this far behind those of the steady client. */
const newcomerTimes = 500_000

const options = JSON.parse(process.argv[2] ?? '{}') as HonestOptions
let latency = createLatency()
let newcomerLatency = createLatency()
let [endedBefore, due, tried, failed] = [0, 0, 0, 0]
let acked: number[] = []
/** When each newcomer began that is not done. */
const waiting = new Set<number>()

/** The message number n has the time `time + n`. */
function planOf(name: string, clientId: string, time: number): DevicePlan {
  const { version, login, ca } = options
  const message = (n: number) => {
    const gps = { lat: 51 + ((time + n) % 100_000) / 1e5, lon: 9.5 }
    return { topic: `telemetry/v1/${name}`, payload: JSON.stringify({ ts: time + n, gps }) }
  }
  return { name, clientId, message, version, login, ca }
}

const steadyPlan = planOf(options.device, `honest-${options.device}`, options.firstTime)
const steady = new Fleet([{ ...steadyPlan, everyMs: periodMs }])
steady.onAck = ({ n, tookMs }) => {
  if (n === 1) process.send?.('connected')
  latency.record(tookMs)
  acked.push(options.firstTime + n)
}
steady.grant(Infinity)
// It ends with the process.
void steady.serve(
  () => options.url,
  () => true,
)
void bringNewcomers()
setInterval(() => {
  due += 1
}, periodMs)

process.on('message', () => {
  const { p50Ms, maxMs } = newcomerLatency.summary()
  const waitingMs = [...waiting].map((startedMs) => performance.now() - startedMs)
  const report: HonestReport = {
    latency: latency.summary(),
    due,
    lost: steady.ended - endedBefore,
    acked,
    newcomers: { tried, failed, p50Ms, worstMs: Math.max(maxMs, ...waitingMs) },
  }
  latency = createLatency()
  newcomerLatency = createLatency()
  acked = []
  ;[endedBefore, due, tried, failed] = [steady.ended, 0, 0, 0]
  process.send?.(report)
})
process.on('disconnect', () => process.exit(0))

async function bringNewcomers(): Promise<void> {
  let turn = 0
  for await (const _ of every(newcomerMs)) {
    const device = options.newcomers[turn % options.newcomers.length] ?? options.device
    turn += 1
    tried += 1
    void bringNewcomer(device, turn)
  }
}

async function bringNewcomer(device: string, turn: number): Promise<void> {
  const startedMs = performance.now()
  const time = options.firstTime + newcomerTimes + turn
  const newcomer = new Fleet([planOf(device, `newcomer-${turn}`, time)])
  let isOver = false
  const end = () => {
    isOver = true
    newcomer.disconnect()
  }
  newcomer.onAck = () => {
    newcomerLatency.record(performance.now() - startedMs)
    acked.push(time + 1)
    end()
  }
  waiting.add(startedMs)
  newcomer.grant(1)
  const timer = setTimeout(end, newcomerMaxMs)
  await newcomer.serve(
    () => options.url,
    () => !isOver,
  )
  clearTimeout(timer)
  waiting.delete(startedMs)
  if (newcomer.acked === 0) failed += 1
}
