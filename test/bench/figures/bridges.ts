// bridges.ts: messages a second through a bridge with 1, 4 and 16 connections, from a Mosquitto into the spool, as a
// share of mqtt.js alone that acknowledges after an fdatasync for each group (bare-consumer.ts). Both take the same
// messages of the same load generator, one after the other, each while nothing else subscribes.

import { setTimeout as wait } from 'node:timers/promises'
import { figureOf, makeFolder, median, rounded, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startServer } from '../children.ts'
import { startGateway } from '../gateway.ts'
import { hasMosquitto, startMosquitto } from '../mosquitto-child.ts'
import { measureUsEach } from '../resident.ts'

const fullMessages = 200_000
/** mqtt.js alone is slow: it gets fewer messages. */
const bareShare = 0.1

type Run = { perS: number; cpuUsEach: number }

export async function measureBridges(options: BenchOptions): Promise<Figure[]> {
  if (!hasMosquitto) {
    process.stderr.write('bridges are not measured: Mosquitto is not installed\n')
    return []
  }
  const figures: Figure[] = []
  for (const connections of [1, 4, 16]) figures.push(await measureConnections(connections, options))
  return figures
}

async function measureConnections(connections: number, options: BenchOptions): Promise<Figure> {
  const messages = Math.max(2000, Math.round(fullMessages * options.scale))
  const bare: Run[] = []
  const gateway: Run[] = []
  for (let pair = 0; pair < options.pairs; pair += 1) {
    bare.push(await bareRun(connections, Math.round(messages * bareShare), options))
    gateway.push(await gatewayRun(connections, messages, options))
  }
  const rates = (runs: readonly Run[]) => runs.map(({ perS }) => perS)
  return figureOf({
    figure: `bridge_${connections}`,
    value: median(rates(gateway)) / median(rates(bare)),
    unit: 'times mqtt.js alone',
    detail: {
      messages,
      connections,
      gatewayPerS: rates(gateway).map(Math.round),
      barePerS: rates(bare).map(Math.round),
      gatewayCpuUsEach: gateway.map(({ cpuUsEach }) => rounded(cpuUsEach, 2)),
      bareCpuUsEach: bare.map(({ cpuUsEach }) => rounded(cpuUsEach, 2)),
    },
  })
}

async function bareRun(connections: number, messages: number, { dir }: BenchOptions): Promise<Run> {
  await using folder = await makeFolder(dir)
  await using mosquitto = await startMosquitto(folder.path)
  process.env['BENCH_DIR'] = folder.path
  const args = ['--broker', String(mosquitto.port), '--connections', String(connections)]
  await using consumer = await startServer('bare-consumer.ts', args)
  const acked = async () => Number(await (await fetch(`http://127.0.0.1:${consumer.port}/`)).text())
  return await measured({ port: mosquitto.port, messages, pid: consumer.pid, acked })
}

async function gatewayRun(connections: number, messages: number, options: BenchOptions): Promise<Run> {
  await using folder = await makeFolder(options.dir)
  await using mosquitto = await startMosquitto(folder.path)
  await using sink = await startSink({ closed: false })
  await using gateway = await startGateway({
    folder: folder.path,
    sinkPort: sink.port,
    signals: options.signals,
    bridge: { port: mosquitto.port, connections },
  })
  const bridge = async () => (await gateway.status()).messageSources.find(({ name }) => name === 'depot')
  while (typeof (await bridge())?.connectedAt !== 'string') await wait(20)
  const acked = async () => (await bridge())?.acked ?? 0
  return await measured({ port: mosquitto.port, messages, pid: gateway.pid, acked })
}

/** From the first message of the load generator to the last acknowledgement of the consumer. */
async function measured(run: {
  port: number
  messages: number
  pid: number
  acked: () => Promise<number>
}): Promise<Run> {
  const { port, messages, pid, acked } = run
  const { result: tookMs, usEach } = await measureUsEach(pid, messages, async () => {
    const startedAtMs = performance.now()
    const load = runLoad({ port, messages, connections: 16, window: 64 })
    while ((await acked()) < messages) await wait(10)
    const took = performance.now() - startedAtMs
    await load
    return took
  })
  return { perS: (messages * 1000) / tookMs, cpuUsEach: usEach }
}
