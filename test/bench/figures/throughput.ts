// throughput.ts: acked messages a second, end to end into the sink, as a share of what bare aedes acks; and the
// processor time of a message, as a multiple of that of bare aedes. Where other programs use the machine too, the second
// figure says more.
//
// Both servers live for the whole figure, each warmed up first; they are measured in turn, and only while the
// other one is idle. A run of the gateway ends when its last payload is in the sink.

import { figureOf, median, rounded, runLoad, until } from '../bench.ts'
import type { BenchOptions, Figure, Sink } from '../bench.ts'
import { startServer } from '../children.ts'
import { startWithSink, type Gateway } from '../gateway.ts'
import type { LoadResult } from '../load.ts'
import { measureUsEach, sampleResident } from '../resident.ts'

export type Shape = {
  name: string
  connections: number
  window: number
  messages: number
  target: number
  /** Processor time, in times of bare aedes. */
  timesMax: number
}

/** `usEach`: processor time of the gateway for each message. */
type EndToEnd = LoadResult & { deliveredPerS: number; lagMs: number; usEach: number }

export async function measureThroughput(shape: Shape, options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(shape.connections * 10, Math.round(shape.messages * options.scale))
  const warmUp = Math.round(messages / 4)
  await using started = await startWithSink(options)
  const { gateway } = started
  await using bare = await startServer('bare-aedes.ts')
  await using resident = sampleResident(gateway.pid)
  const { connections, window } = shape
  const load = (port: number, count: number) => runLoad({ port, connections, window, messages: count })
  await load(bare.port, warmUp)
  const run = (count: number) => endToEnd(started, count, () => load(gateway.mqttPort, count))
  await run(warmUp)
  const bareRuns: LoadResult[] = []
  const gatewayRuns: EndToEnd[] = []
  const bareCpuUsEach: number[] = []
  for (let pair = 0; pair < options.pairs; pair += 1) {
    const { result, usEach } = await measureUsEach(bare.pid, messages, () => load(bare.port, messages))
    bareRuns.push(result)
    bareCpuUsEach.push(usEach)
    gatewayRuns.push(await run(messages))
  }
  const value = median(gatewayRuns.map(rateOf)) / median(bareRuns.map(rateOf))
  const times = median(gatewayRuns.map(({ usEach }, pair) => usEach / (bareCpuUsEach[pair] ?? Number.NaN)))
  return [
    figureOf({
      figure: `throughput_${shape.name}`,
      value,
      unit: 'share of bare aedes',
      atLeast: shape.target,
      detail: {
        messages,
        bareAckedPerS: bareRuns.map((run) => Math.round(run.ackedPerS)),
        gatewayAckedPerS: gatewayRuns.map((run) => Math.round(run.ackedPerS)),
        gatewayDeliveredPerS: gatewayRuns.map((run) => Math.round(run.deliveredPerS)),
        deliveryLagMs: gatewayRuns.map((run) => Math.round(run.lagMs)),
        gatewayP99Ms: gatewayRuns.map((run) => rounded(run.latency.p99Ms)),
        bareP99Ms: bareRuns.map((run) => rounded(run.latency.p99Ms)),
        loadBusy: gatewayRuns.map((run) => rounded(run.cpuMs / run.tookMs, 2)),
        residentMaxMb: rounded(resident.maxBytes / 1e6, 1),
      },
    }),
    figureOf({
      figure: `processor_time_${shape.name}`,
      value: times,
      unit: 'processor time of a message, all threads, until it is delivered, in times of bare aedes',
      atMost: shape.timesMax,
      detail: {
        messages,
        bareUsEach: bareCpuUsEach.map((us) => rounded(us, 2)),
        gatewayUsEach: gatewayRuns.map(({ usEach }) => rounded(usEach, 2)),
      },
    }),
  ]
}

const rateOf = (run: LoadResult) => run.ackedPerS

/** A run whose every payload must reach the sink. */
export async function endToEnd(
  { gateway, sink }: { gateway: Gateway; sink: Sink },
  messages: number,
  load: () => Promise<LoadResult>,
): Promise<EndToEnd> {
  await sink.open()
  const { result, usEach } = await measureUsEach(gateway.pid, messages, async () => {
    const loaded = await load()
    const ackedAtMs = performance.now()
    await until('the sink has every payload', async () => (await sink.stats()).payloads >= messages, {
      timeoutMs: 300_000,
    })
    return { ...loaded, lagMs: performance.now() - ackedAtMs }
  })
  const { tookMs, lagMs } = result
  return { ...result, usEach, deliveredPerS: messages / ((tookMs + lagMs) / 1000) }
}
