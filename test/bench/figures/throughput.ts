// throughput.ts: acked messages a second, end to end into the sink, as a share of what bare aedes acks; and the
// processor time of a message, as a multiple of that of bare aedes. Where other programs use the machine too, the second
// figure says more.
//
// Both servers live for the whole figure, each warmed up first; they are measured in turn, and only while the
// other one is idle. A run of the gateway ends when its last payload is in the sink.

import { makeFolder, median, rounded, runLoad, startSink, until } from '../bench.ts'
import type { BenchOptions, Figure, Sink } from '../bench.ts'
import { startServer } from '../children.ts'
import { startGateway } from '../gateway.ts'
import type { LoadResult } from '../load.ts'
import { processorMs, sampleResident } from '../resident.ts'

export type Shape = {
  name: string
  connections: number
  window: number
  messages: number
  target: number
  /** Processor time, in times of bare aedes. */
  timesMax: number
}

type EndToEnd = LoadResult & { deliveredPerS: number; lagMs: number }

export async function measureThroughput(shape: Shape, options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(shape.connections * 10, Math.round(shape.messages * options.scale))
  const warmUp = Math.round(messages / 4)
  await using folder = await makeFolder(options.dir)
  await using sink = await startSink({ closed: false })
  await using bare = await startServer('bare-aedes.ts')
  await using gateway = await startGateway({
    folder: folder.path,
    sinkPort: sink.port,
    signals: options.signals,
  })
  await using resident = sampleResident(gateway.pid)
  const { connections, window } = shape
  const load = (port: number, count: number) => runLoad({ port, connections, window, messages: count })
  await load(bare.port, warmUp)
  await endToEnd(() => load(gateway.mqttPort, warmUp), sink, warmUp)
  const bareRuns: LoadResult[] = []
  const gatewayRuns: EndToEnd[] = []
  const bareCpuUsEach: number[] = []
  const gatewayCpuUsEach: number[] = []
  const usEach = async (pid: number, work: () => Promise<void>) => {
    const beforeMs = await processorMs(pid)
    await work()
    return (((await processorMs(pid)) - beforeMs) * 1000) / messages
  }
  for (let pair = 0; pair < options.pairs; pair += 1) {
    bareCpuUsEach.push(
      await usEach(bare.pid, async () => void bareRuns.push(await load(bare.port, messages))),
    )
    gatewayCpuUsEach.push(
      await usEach(gateway.pid, async () => {
        gatewayRuns.push(await endToEnd(() => load(gateway.mqttPort, messages), sink, messages))
      }),
    )
  }
  const value = median(gatewayRuns.map(rateOf)) / median(bareRuns.map(rateOf))
  const times = median(gatewayCpuUsEach.map((us, pair) => us / (bareCpuUsEach[pair] ?? Number.NaN)))
  return [
    {
      figure: `throughput_${shape.name}`,
      value: rounded(value),
      unit: 'share of bare aedes',
      target: `>= ${shape.target}`,
      reached: value >= shape.target,
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
    },
    {
      figure: `processor_time_${shape.name}`,
      value: rounded(times),
      unit: 'processor time of a message, all threads, until it is delivered, in times of bare aedes',
      target: `<= ${shape.timesMax}`,
      reached: times <= shape.timesMax,
      detail: {
        messages,
        bareUsEach: bareCpuUsEach.map((us) => rounded(us, 2)),
        gatewayUsEach: gatewayCpuUsEach.map((us) => rounded(us, 2)),
      },
    },
  ]
}

const rateOf = (run: LoadResult) => run.ackedPerS

/** A run whose every payload must reach the sink. */
export async function endToEnd(
  load: () => Promise<LoadResult>,
  sink: Sink,
  messages: number,
): Promise<EndToEnd> {
  await sink.open()
  const result = await load()
  const ackedAtMs = performance.now()
  await until('the sink has every payload', async () => (await sink.stats()).payloads >= messages, {
    timeoutMs: 300_000,
  })
  const lagMs = performance.now() - ackedAtMs
  return { ...result, lagMs, deliveredPerS: messages / ((result.tookMs + lagMs) / 1000) }
}

/** What the generator itself can do, against a server that only acks. */
export async function measureLoadCeiling(options: BenchOptions): Promise<Figure[]> {
  await using acker = await startServer('acker.ts')
  const figures: Figure[] = []
  for (const [connections, window] of [
    [16, 64],
    [1000, 1],
  ] as const) {
    const messages = Math.max(connections * 10, Math.round(600_000 * options.scale))
    const run = await runLoad({ port: acker.port, connections, window, messages })
    figures.push({
      figure: `load_ceiling_${connections}`,
      value: Math.round(run.ackedPerS),
      unit: 'messages/s',
      target: null,
      reached: null,
      detail: { messages, window, cpuShare: rounded(run.cpuMs / run.tookMs, 2) },
    })
  }
  return figures
}
