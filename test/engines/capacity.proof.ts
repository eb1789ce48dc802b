// The plan of `capacity` against three real nodes and a real gateway: the figures of a small fleet (what a message costs)
// are measured, the plan of a fleet three times as large is computed from them, and compared with what that fleet needs.
//
// Fleets publish as fast as the nodes take it, so processor time is compared as a sum, not as a rate. On a machine that
// does other work, too, processor time differs from run to run.

import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { figuresOf, planCapacity, type CapacityFigures } from '../../src/capacity/capacity.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { createSandbox, sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { systemClock } from '../../src/std/clock.ts'
import { runLoad } from '../bench/bench.ts'
import { processorMs } from '../bench/resident.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/mosquitto.ts'
import { startSpawnedDaemon, type SpawnedDaemon } from '../support/spawned-daemon.ts'
import type { Engine } from './message-engine.ts'
import { hasNatsCluster, startNats } from './nats-engine.ts'
import { hasRabbitCluster, startRabbit } from './rabbit-engine.ts'

const messageBytes = 320
const partitions = 4

/** What a fleet needed, while its service was away and afterwards. */
type Measured = {
  inCpuS: number
  outCpuS: number
  gatewayCpuS: number
  storedBytes: number
  spoolBytes: number
  requests: number
}

/** How far plan and measurement may be apart. */
const factors: Record<keyof Measured, number> = {
  inCpuS: 2,
  outCpuS: 2,
  gatewayCpuS: 2.5,
  storedBytes: 1.5,
  spoolBytes: 1.5,
  requests: 2,
}

type EngineCase = {
  name: 'nats' | 'rabbitmq'
  isThere: boolean
  start(): Promise<Engine>
  /** Files of messages, below the folder of the engine. */
  stored: string
  bridge(engine: Engine): string
}

const engines: readonly EngineCase[] = [
  {
    name: 'nats',
    isThere: hasNatsCluster,
    // Beside the log of its Raft group, which NATS shortens now and then.
    stored: '*/jetstream/*/streams/$MQTT_msgs/msgs',
    start: () =>
      startNats({
        nodes: 3,
        syncInterval: '"10s"',
        lines: [
          `mappings { "telemetry.v1.*": "fleet.{{partition(${partitions},1)}}.telemetry.v1.{{wildcard(1)}}" }`,
        ],
      }),
    bridge: ({ urls }) =>
      `url: ${JSON.stringify(urls)}, topics: ["telemetry/v1/{device}"], durables: { prefix: fleet, partitions: ${partitions} }`,
  },
  {
    name: 'rabbitmq',
    isThere: hasRabbitCluster,
    stored: '*/data/*/quorum',
    start: () => startRabbit({ nodes: 3 }),
    bridge: ({ urls }) =>
      `url: ${JSON.stringify(urls)}, queue: { prefix: fleet, partitions: ${partitions} }, bind: { keys: ["telemetry.v1.*"] }`,
  },
]

async function configOf(bridge: string, servicePort: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-capacity-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const map = 'time: { path: ts, format: ms }, latitude: { path: gps.lat }, longitude: { path: gps.lon }'
  const config = [
    'ingest:',
    '  broker: { listeners: [] }',
    `  bridges: [{ name: fleet, member: gateway-1, provision: true, ${bridge} }]`,
    `sources: [{ name: a, topic: "telemetry/v1/{device}", map: { ${map} } }]`,
    'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
    `spool: { path: ${folder}/spool, max_bytes: 1GiB, min_free_bytes: 1MiB }`,
    `delivery: { base_url: "http://127.0.0.1:${servicePort}" }`,
    'ops: { listen: "127.0.0.1:0" }',
  ]
  await writeFile(join(folder, 'gateway.yaml'), config.join('\n'), { mode: 0o600 })
  return join(folder, 'gateway.yaml')
}

const statusOf = async ({ url }: SpawnedDaemon) => (await (await fetch(`${url}/status`)).json()) as Status

async function fleetOf(daemon: SpawnedDaemon) {
  const { messageSources } = await statusOf(daemon)
  return messageSources.find(({ name }) => name === 'fleet')!
}

async function openPayloads(daemon: SpawnedDaemon): Promise<number> {
  const { lanes } = await statusOf(daemon)
  return lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
}

async function processorS(engine: Engine): Promise<number> {
  const times = await Promise.all(engine.nodes.map((_, node) => processorMs(engine.pid(node)!)))
  return times.reduce((sum, ms) => sum + ms, 0) / 1000
}

/** Of all nodes, as files say it: a file that grows in steps has its size, not its blocks. */
function bytesIn(pattern: string, folder: string): number {
  const places = globSync(pattern, { cwd: folder })
  const lines = places.map((place) => execFileSync('du', ['-sb', join(folder, place)], { encoding: 'utf8' }))
  return lines.reduce((sum, line) => sum + Number(line.split('\t')[0]), 0)
}

/** A new engine for each fleet, so that nothing of another one is on its disk. */
async function measure(engineCase: EngineCase, devices: number, messages: number): Promise<Measured> {
  const engine = await engineCase.start()
  const servicePort = await freePort()
  const config = await configOf(engineCase.bridge(engine), servicePort)
  // It creates queues or durables, and is not there while the fleet publishes.
  const first = await startSpawnedDaemon(config)
  await eventually(async () => {
    const { connections, partitions: own } = await fleetOf(first)
    return connections.every(({ state }) => state === 'connected') && own.length === partitions
  })
  await first.stop()

  const [cpuBefore, bytesBefore] = [await processorS(engine), bytesIn(engineCase.stored, engine.folder)]
  await runLoad({ port: engine.nodes[0]!.mqttPort, messages, connections: devices, window: 4 })
  const [cpuStored, bytesStored] = [await processorS(engine), bytesIn(engineCase.stored, engine.folder)]

  // The service is away: the spool has everything.
  const gateway = await startSpawnedDaemon(config)
  const gatewayBefore = await processorMs(gateway.pid)
  await eventually(async () => (await openPayloads(gateway)) === messages)
  const { acked } = await fleetOf(gateway)
  expect(acked).toBe(messages)
  const cpuTaken = await processorS(engine)
  const spoolBytes = bytesIn('spool/store', dirname(config))

  const sandbox = createSandbox(
    { clock: systemClock, newId: newRandomId, random: Math.random },
    { accounts: [sandboxAccount] },
  )
  onTestFinished(() => sandbox.close())
  await sandbox.listen({ host: '127.0.0.1', port: servicePort })
  process.kill(gateway.pid, 'SIGHUP')
  await eventually(async () => (await openPayloads(gateway)) === 0)
  const gatewayCpuS = ((await processorMs(gateway.pid)) - gatewayBefore) / 1000
  const { requests } = sandbox.stats()
  await gateway.kill()
  await engine.killAll()
  return {
    inCpuS: cpuStored - cpuBefore,
    outCpuS: cpuTaken - cpuStored,
    gatewayCpuS,
    storedBytes: (bytesStored - bytesBefore) / engine.nodes.length,
    spoolBytes,
    requests,
  }
}

function figuresFrom(measured: Measured, messages: number, engine: EngineCase['name']): CapacityFigures {
  return {
    // The spool of a small fleet is a log that LevelDB has not compressed yet, so its figure is that of the table.
    ...figuresOf(engine),
    in_cpu_us: (measured.inCpuS * 1e6) / messages,
    out_cpu_us: (measured.outCpuS * 1e6) / messages,
    gateway_cpu_us: (measured.gatewayCpuS * 1e6) / messages,
    stored_bytes: measured.storedBytes / messages - messageBytes,
    batch_payloads: messages / measured.requests,
  }
}

/** Each vehicle sends a message a second; the service is away for as long as the messages take. */
function planned(
  figures: CapacityFigures,
  engine: EngineCase['name'],
  devices: number,
  messages: number,
): Measured {
  const outageMs = (messages * 1000) / devices
  const demand = (custody: 'spool' | 'delivered') =>
    planCapacity({
      vehicles: devices,
      everyMs: 1000,
      messageBytes,
      peak: 1,
      outageMs,
      drainMs: outageMs,
      engine,
      flushesEach: false,
      custody,
      gateways: 1,
      partitions,
      machines: {
        nodes: 3,
        nodeCores: 2,
        nodeMemoryBytes: 1e9,
        nodeDiskBytes: 1e9,
        gatewayCores: 2,
        spoolBytes: 1e9,
      },
      servicePerS: null,
      uploadBitsPerS: null,
      figures,
    })
  const inEngine = demand('delivered')
  const inSpool = demand('spool')
  const seconds = outageMs / 1000
  return {
    inCpuS: inEngine.engine.coresIn * seconds,
    outCpuS: inEngine.engine.coresOut * seconds,
    gatewayCpuS: inEngine.gateways.coresEach * seconds,
    storedBytes: inEngine.engine.diskBytesPerNode,
    spoolBytes: inSpool.gateways.spoolBytesEach,
    requests: inEngine.delivery.requestsPerS * seconds,
  }
}

describe.each(engines)('the plan for $name', (engineCase) => {
  test.skipIf(!engineCase.isThere)('of a fleet is what it needs, within the stated factors', async () => {
    // Enough that the start of connections and consumers costs little beside them.
    const [small, large] = [
      { devices: 40, messages: 12_000 },
      { devices: 120, messages: 36_000 },
    ]
    const measuredSmall = await measure(engineCase, small.devices, small.messages)
    const figures = figuresFrom(measuredSmall, small.messages, engineCase.name)
    const plan = planned(figures, engineCase.name, large.devices, large.messages)
    const measured = await measure(engineCase, large.devices, large.messages)
    const rows = (Object.keys(factors) as (keyof Measured)[]).map((what) => ({
      what,
      planned: plan[what],
      measured: measured[what],
      ratio: measured[what] / plan[what],
    }))
    process.stderr.write(
      `${JSON.stringify({ engine: engineCase.name, small: measuredSmall, figures, rows })}\n`,
    )
    for (const { what, ratio } of rows) {
      expect(ratio, what).toBeLessThan(factors[what])
      expect(ratio, what).toBeGreaterThan(1 / factors[what])
    }
  })
})
