// engine-fleet.ts: gateways as processes behind an engine, trucks that publish to it, and the service. What was lost, what
// was delivered twice and what came in another order, by device and number.

import { writeFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  openPayloads,
  startDaemon,
  statusUntil,
  type Daemon,
  type DaemonOptions,
} from '../crash/daemon-process.ts'
import { idIn } from '../../src/sandbox/received-payloads.ts'
import { sandboxAccount, type Sandbox } from '../../src/sandbox/sandbox.ts'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import type { Engine } from './message-engine.ts'
import { startMs, startTrucks, type TruckOptions, type Trucks } from './trucks.ts'

export const partitions = 4

/** Lines of the config of NATS: the partition of each device. */
export const natsMappings = [`mappings { "t.*": "gw.{{partition(${partitions},1)}}.t.{{wildcard(1)}}" }`]

export type FleetOptions = {
  gateways?: number
  trucks?: TruckOptions
  /** Further options of the bridge. */
  bridge?: string
  /** Of the queue of RabbitMQ. */
  queue?: string
  spoolBytes?: string
  /** Kill points of gateways, by their index. */
  kills?: Readonly<Record<number, DaemonOptions['kill']>>
}

export type Gateway = {
  /** Of its config and spool. */
  readonly folder: string
  daemon: Daemon
}

export type FleetOutcome = {
  /** Acknowledged to a truck and not at the service. */
  lost: number
  /** A gateway delivered a number of a device after a higher one. */
  wrongOrder: number
  /** One gateway delivered a payload twice. */
  twiceByOne: number
  /** Two gateways did. */
  twiceByTwo: number
}

export type EngineFleet = {
  readonly sandbox: Sandbox
  readonly gateways: readonly Gateway[]
  readonly trucks: Trucks
  kill(gateway: number): Promise<void>
  stop(gateway: number): Promise<void>
  /** Resolves when it takes messages or waits for its turn. */
  start(gateway: number): Promise<void>
  /** A new machine under the same name. */
  throwDiskAway(gateway: number): Promise<void>
  statuses(): Promise<Status[]>
  /** The gateways that have something of the service's. */
  working(): string[]
  /** Waits until the service has everything that was acknowledged and mapped; says it on stderr. */
  outcome(name: string, notMapped?: () => number): Promise<FleetOutcome>
}

export async function startEngineFleet(engine: Engine, options: FleetOptions = {}): Promise<EngineFleet> {
  const { gateways: count = 3, kills = {} } = options
  const { sandbox, url: serviceUrl } = await startSandbox({
    receivedMax: 1_000_000,
    receivedBytesMax: 2 * 1024 ** 3,
  })
  const gateways: Gateway[] = []
  for (let index = 0; index < count; index += 1) {
    const folder = await newFolder()
    await writeConfig(folder, { engine, index, serviceUrl, options })
    gateways.push({ folder, daemon: run(folder, kills[index] ?? null) })
  }
  onTestFinished(async () => {
    await Promise.all(gateways.map(({ daemon }) => daemon[Symbol.asyncDispose]()))
  })
  await Promise.all(gateways.map((gateway) => isReady(gateway)))
  const trucks = startTrucks(engine.mqttUrls, options.trucks)

  return {
    sandbox,
    gateways,
    trucks,
    async kill(index) {
      const { daemon } = gateways[index]!
      daemon.kill()
      await daemon.ended
    },
    async stop(index) {
      await gateways[index]!.daemon.stop()
    },
    async start(index) {
      const gateway = gateways[index]!
      gateway.daemon = run(gateway.folder, null)
      await isReady(gateway)
    },
    async throwDiskAway(index) {
      const { folder, daemon } = gateways[index]!
      if (daemon.running) throw new Error('the gateway runs')
      await rm(join(folder, 'spool'), { recursive: true, force: true })
    },
    async statuses() {
      const all = await Promise.all(gateways.map(({ daemon }) => daemon.status()))
      return all.filter((status) => status !== null)
    },
    working: () => [...new Set(deliveries(sandbox).map(({ gateway }) => gateway))].toSorted(),
    async outcome(name, notMapped = () => 0) {
      await trucks.stop()
      const wanted = trucks.ackedCount() - notMapped()
      await eventually(() => sandbox.stats().distinctPayloadIds >= wanted)
      // A number without an acknowledgement may have arrived, too.
      await eventually(() => judge(trucks.acked, deliveries(sandbox)).lost <= notMapped())
      await Promise.all(gateways.map((gateway) => isEmpty(gateway)))
      const outcome = judge(trucks.acked, deliveries(sandbox))
      process.stderr.write(
        `engines: ${name}: ${trucks.ackedCount()} acknowledged to trucks, ${trucks.repeated} published again, ` +
          `${JSON.stringify(outcome)}\n`,
      )
      return outcome
    },
  }
}

function run(folder: string, kill: DaemonOptions['kill']): Daemon {
  return startDaemon({
    configPath: join(folder, 'gateway.yaml'),
    kill: kill ?? null,
    env: {
      AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
      AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
    },
  })
}

/** Each partition is taken here or waits for its turn. */
async function isReady({ daemon }: Gateway): Promise<void> {
  if ((await daemon.ready) === null) throw new Error(`the gateway ended: ${daemon.log()}`)
  const isConnected = (status: Status) =>
    status.messageSources.some(({ name, connectedAt }) => name === 'engine' && connectedAt !== null)
  await statusUntil(daemon, isConnected, { what: 'a connection to the engine', boundMs: readyMs })
}

/** It has delivered all that it has, and acknowledged all that it took. */
async function isEmpty({ daemon }: Gateway): Promise<void> {
  await eventually(async () => {
    const status = await daemon.status()
    if (status === null) return !daemon.running
    const outstanding = status.messageSources.reduce((sum, source) => sum + source.outstanding, 0)
    return outstanding + openPayloads(status) === 0
  })
}

/** The machine may be busy. */
const readyMs = 90_000

type ConfigParts = { engine: Engine; index: number; serviceUrl: string; options: FleetOptions }

/** The service sees the gateway by its carrier. */
async function writeConfig(folder: string, parts: ConfigParts): Promise<void> {
  const { engine, index, serviceUrl, options } = parts
  const urls = engine.urls.map((url) => `"${url}"`).join(', ')
  const kind =
    engine.kind === 'nats'
      ? `topics: ["t/{device}"], durables: { prefix: gw, partitions: ${partitions} }`
      : `bind: { keys: ["t.*"] }, queue: { prefix: fleet, partitions: ${partitions}, ${options.queue ?? ''} }`
  const bridge =
    `{ name: engine, url: [${urls}], member: gateway-${index}, provision: true, reconnect_max: 1s, ${kind}, ` +
    `${options.bridge ?? ''} }`
  await writeFile(
    join(folder, 'gateway.yaml'),
    `
ingest: { broker: { listeners: [] }, bridges: [${bridge}] }
sources: [{ name: a, topic: "t/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]
defaults: { carrier: gateway-${index}, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: ${options.spoolBytes ?? '1GiB'}, min_free_bytes: 1MiB }
delivery: { base_url: "${serviceUrl}", max_in_flight: 1, backfill: { after: 1h }, batch: { max_payloads: 100, linger: 20ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 10s }
`,
  )
}

type Delivery = { gateway: string; device: string; number: number; payloadId: string }

/** In the order in which the service accepted them. */
function deliveries(sandbox: Sandbox): Delivery[] {
  return sandbox
    .received({ limit: Number.MAX_SAFE_INTEGER })
    .toReversed()
    .map(({ payload }) => ({
      gateway: String(payload['carrier']),
      device: String(idIn(payload['deviceIdentifier'])),
      number: Number(payload['signalTimestamp']) - startMs,
      payloadId: String(payload['payloadId']),
    }))
}

export function judge(acked: ReadonlyMap<string, number>, delivered: readonly Delivery[]): FleetOutcome {
  const arrived = new Map<string, Set<number>>()
  const last = new Map<string, number>()
  const takers = new Map<string, string>()
  const outcome: FleetOutcome = { lost: 0, wrongOrder: 0, twiceByOne: 0, twiceByTwo: 0 }
  for (const { gateway, device, number, payloadId } of delivered) {
    const numbers = arrived.get(device) ?? new Set()
    arrived.set(device, numbers.add(number))
    const taker = takers.get(payloadId)
    takers.set(payloadId, gateway)
    if (taker === gateway) outcome.twiceByOne += 1
    else if (taker !== undefined) outcome.twiceByTwo += 1
    const lane = `${gateway} ${device}`
    if (number <= (last.get(lane) ?? 0) && taker !== gateway) outcome.wrongOrder += 1
    last.set(lane, Math.max(last.get(lane) ?? 0, number))
  }
  for (const [device, to] of acked)
    for (let number = 1; number <= to; number += 1)
      if (!(arrived.get(device)?.has(number) ?? false)) outcome.lost += 1
  return outcome
}
