// status-latency.ts: how long the daemon takes to answer /status while it takes in all that it can, from 5,000
// devices, beside the same daemon at rest. /metrics and /devices are requested meanwhile, as Prometheus and a page
// do. The processor time of one status is measured at rest.

import { setTimeout as wait } from 'node:timers/promises'
import { createLatency } from '../../../src/simulate/ack-latency.ts'
import type { Latency, LatencySummary } from '../../../src/simulate/ack-latency.ts'
import { figureOf, rounded, runLoad, until } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startWithSink } from '../gateway.ts'
import type { Gateway } from '../gateway.ts'
import { processorMs } from '../resident.ts'

const connections = 16
const devicesEach = 313
const targetMs = 100

type Path = { path: string; everyMs: number }

/** Ten requests a second for the status, one for the others. */
const paths: readonly Path[] = [
  { path: '/status', everyMs: 100 },
  { path: '/metrics', everyMs: 1000 },
  { path: '/devices?limit=100', everyMs: 1000 },
]

export async function measureStatusLatency(options: BenchOptions): Promise<Figure[]> {
  const { scale } = options
  const spanMs = Math.max(3000, 30_000 * scale)
  await using started = await startWithSink(options)
  const { gateway } = started
  const load = (messages: number) =>
    runLoad({ port: gateway.mqttPort, messages, connections, devices: devicesEach })
  const first = await load(Math.round(Math.max(50_000, 300_000 * scale)))
  const isEmpty = async () => (await gateway.open()).payloads === 0
  await until('the spool is empty', isEmpty, { timeoutMs: 120_000 })
  const atRest = await requestFor(gateway, () => wait(spanMs))
  const statusCpuMs = await processorTime(gateway, '/status', 200)
  const metricsCpuMs = await processorTime(gateway, '/metrics', 50)
  const devicesCpuMs = await processorTime(gateway, '/devices?limit=100', 20)
  let ackedPerS = 0
  const busy = await requestFor(gateway, async () => {
    ackedPerS = (await load(Math.round((first.ackedPerS * spanMs) / 1000))).ackedPerS
  })
  const status = busy.get('/status')!
  return [
    figureOf({
      figure: 'status_latency',
      value: status.p99Ms,
      unit: 'ms, p99 of /status at full ingest',
      atMost: targetMs,
      detail: {
        devices: connections * devicesEach,
        busyMs: shown(busy),
        atRestMs: shown(atRest),
        cpuMsOfOne: {
          status: rounded(statusCpuMs),
          metrics: rounded(metricsCpuMs),
          devices: rounded(devicesCpuMs),
        },
        statusBytes: (await (await fetch(`${gateway.url}/status`)).text()).length,
        ackedPerS: { withRequests: Math.round(ackedPerS), without: Math.round(first.ackedPerS) },
      },
    }),
  ]
}

/** All paths at their rates, until `work` is done. A request is not made while the one before waits. */
async function requestFor(
  { url }: Gateway,
  work: () => Promise<unknown>,
): Promise<Map<string, LatencySummary>> {
  const isDone = new AbortController()
  const found = new Map<string, Latency>()
  const asking = paths.map(async ({ path, everyMs }) => {
    const latency = createLatency()
    found.set(path, latency)
    for (
      let dueMs = performance.now();
      !isDone.signal.aborted;
      dueMs = Math.max(dueMs + everyMs, performance.now())
    ) {
      await wait(Math.max(0, dueMs - performance.now()))
      const startedMs = performance.now()
      const answer = await fetch(url + path)
      await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`)
      latency.record(performance.now() - startedMs)
    }
  })
  // Ends with an error of either.
  await Promise.race([work(), Promise.all(asking)])
  isDone.abort()
  await Promise.all(asking)
  return new Map([...found].map(([path, latency]) => [path, latency.summary()]))
}

/** Of one request, in ms, by the kernel's account of the whole process: counted in steps of 10 ms. */
async function processorTime({ pid, url }: Gateway, path: string, requests: number): Promise<number> {
  const before = await processorMs(pid)
  const startedMs = performance.now()
  for (let n = 0; n < requests; n += 1) await (await fetch(url + path)).arrayBuffer()
  const tookMs = performance.now() - startedMs
  const usedMs = (await processorMs(pid)) - before
  // What it uses without requests meanwhile.
  const restBefore = await processorMs(pid)
  await wait(tookMs)
  return Math.max(0, usedMs - ((await processorMs(pid)) - restBefore)) / requests
}

function shown(latencies: ReadonlyMap<string, LatencySummary>) {
  return Object.fromEntries(
    [...latencies].map(([path, { count, p50Ms, p99Ms, maxMs }]) => [
      path,
      { count, p50: rounded(p50Ms, 1), p99: rounded(p99Ms, 1), max: rounded(maxMs, 1) },
    ]),
  )
}
