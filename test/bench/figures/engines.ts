// engines.ts: messages a second through bridges to RabbitMQ and NATS with 1 and 4 partitions, from a backlog in one node into
// the spool and the sink, as a share of the engine's own client that does nothing (bare-engine-consumer.ts).

import { setTimeout as wait } from 'node:timers/promises'
import { startNats, hasNats } from '../../engines/nats-engine.ts'
import { startRabbit, hasRabbit } from '../../engines/rabbit-engine.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { figureOf, makeFolder, median, rounded, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startServer } from '../children.ts'
import { startGateway } from '../gateway.ts'
import { processorMs } from '../resident.ts'

const fullMessages = 200_000
/** The rate is that behind the first of them, when all partitions are there. */
const skippedShare = 0.1
/** Each question for the state costs the gateway processor time. */
const askEveryMs = 50

type Run = { perS: number; cpuUsEach: number }
type EngineName = 'amqp' | 'nats'

const isThere: Record<EngineName, boolean> = { amqp: hasRabbit, nats: hasNats }

export async function measureEngine(engine: EngineName, options: BenchOptions): Promise<Figure[]> {
  if (!isThere[engine]) {
    process.stderr.write(`${engine} is not measured: its engine is not installed\n`)
    return []
  }
  const figures: Figure[] = []
  for (const partitions of [1, 4]) figures.push(await measurePartitions(engine, partitions, options))
  return figures
}

async function measurePartitions(
  engine: EngineName,
  partitions: number,
  options: BenchOptions,
): Promise<Figure> {
  const messages = Math.max(4000, Math.round(fullMessages * options.scale))
  const bare: Run[] = []
  const gateway: Run[] = []
  for (let pair = 0; pair < options.pairs; pair += 1) {
    bare.push(await measured({ engine, partitions, messages, isBare: true }, options))
    gateway.push(await measured({ engine, partitions, messages, isBare: false }, options))
  }
  const rates = (runs: readonly Run[]) => runs.map(({ perS }) => perS)
  return figureOf({
    figure: `${engine}_${partitions}`,
    value: median(rates(gateway)) / median(rates(bare)),
    unit: 'share of the client alone',
    detail: {
      messages,
      partitions,
      gatewayPerS: rates(gateway).map(Math.round),
      barePerS: rates(bare).map(Math.round),
      gatewayCpuUsEach: gateway.map(({ cpuUsEach }) => rounded(cpuUsEach, 2)),
      bareCpuUsEach: bare.map(({ cpuUsEach }) => rounded(cpuUsEach, 2)),
    },
  })
}

type Case = { engine: EngineName; partitions: number; messages: number; isBare: boolean }

async function measured({ engine, partitions, messages, isBare }: Case, options: BenchOptions): Promise<Run> {
  const ends: (() => Promise<void>)[] = []
  const atEnd = (end: () => Promise<void>) => void ends.unshift(end)
  try {
    const server = engine === 'amqp' ? await startRabbit({ atEnd }) : await startNatsOf(partitions, atEnd)
    await using folder = await makeFolder(options.dir)
    await using sink = await startSink({ closed: false })
    const start = () =>
      startGateway({
        folder: folder.path,
        sinkPort: sink.port,
        signals: options.signals,
        bridge: { text: bridgeText(engine, server, partitions) },
      })
    // It creates queues or durables.
    const first = await start()
    const sourceOf = async ({ status }: typeof first) =>
      (await status()).messageSources.find(({ name }) => name === 'depot')
    const isProvisioned = async () => {
      const { connections = [], partitions: own = [] } = (await sourceOf(first)) ?? {}
      const states = connections.map(({ state }) => state)
      return own.length === partitions && states.length > 0 && states.every((state) => state === 'connected')
    }
    while (!(await isProvisioned())) await wait(20)
    await first.end()
    await runLoad({ port: server.nodes[0]!.mqttPort, messages, connections: 16, window: 64 })
    if (isBare) {
      const args = ['--port', String(server.nodes[0]!.port), '--partitions', String(partitions)]
      await using bare = await startServer('bare-engine-consumer.ts', [
        ...args,
        '--nats',
        engine === 'nats' ? '1' : '0',
      ])
      const taken = async () => Number(await (await fetch(`http://127.0.0.1:${bare.port}/`)).text())
      return await drained(bare.pid, messages, taken)
    }
    await using gateway = await start()
    return await drained(gateway.pid, messages, async () => (await sourceOf(gateway))?.acked ?? 0)
  } finally {
    for (const end of ends) await end()
  }
}

async function drained(pid: number, messages: number, taken: () => Promise<number>): Promise<Run> {
  let begin = 0
  while ((begin = await taken()) < messages * skippedShare) await wait(askEveryMs)
  if (begin >= messages)
    throw new Error('the backlog was taken before it could be measured; use a larger --scale')
  const [cpuMs, startedAtMs] = [await processorMs(pid), performance.now()]
  while ((await taken()) < messages) await wait(askEveryMs)
  const tookMs = performance.now() - startedAtMs
  const count = messages - begin
  return { perS: (count * 1000) / tookMs, cpuUsEach: (((await processorMs(pid)) - cpuMs) * 1000) / count }
}

function startNatsOf(partitions: number, atEnd: (end: () => Promise<void>) => void): Promise<Engine> {
  const subject = `bench.{{partition(${partitions},1)}}.telemetry.v1.{{wildcard(1)}}`
  return startNats({ lines: partitions === 1 ? [] : [`mappings { "telemetry.v1.*": "${subject}" }`], atEnd })
}

function bridgeText(engine: EngineName, { urls }: Engine, partitions: number): string {
  const url = `url: "${urls[0]!}", provision: true`
  return engine === 'nats'
    ? `${url}, topics: ["telemetry/v1/{device}"], durables: { prefix: bench, partitions: ${partitions} }`
    : `${url}, queue: { prefix: bench, partitions: ${partitions} }, bind: { keys: ["telemetry.v1.*"] }`
}
