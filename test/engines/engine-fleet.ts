// engine-fleet.ts: gateways as processes behind an engine, trucks that publish to it, and the service. What was lost, what
// was delivered twice and what came in another order, by device and number.

import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openPayloads, statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { startKillable, type KillableOptions } from '../support/driver/killable.ts'
import { idIn } from '../../src/sandbox/received-payloads.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
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
  kills?: Readonly<Record<number, KillableOptions['kill']>>
}

export type Gateway = {
  /** Of its config and spool. */
  readonly folder: string
  daemon: Daemon
}

export type FleetOutcome = {
  /** Acknowledged to a truck and not at the service. */
  lost: number
  /** A gateway took a number of a truck after a higher one. */
  wrongOrder: number
  /** One gateway delivered a payload twice. */
  twiceByOne: number
  /** Two gateways did. */
  twiceByTwo: number
}

export type OutcomeOptions = {
  /** Messages that become dead letters. */
  notMapped?: () => number
  /** Without it something may be lost: it waits until nothing waits anywhere. */
  isWhole?: boolean
}

export type EngineFleet = {
  readonly sandbox: Sandbox
  readonly gateways: readonly Gateway[]
  readonly trucks: Trucks
  kill(gateway: number): Promise<void>
  stop(gateway: number): Promise<void>
  /** Resolves when it takes messages or waits for its turn. */
  start(gateway: number): Promise<void>
  /** A new machine: the same member at the engine, another carrier. */
  throwDiskAway(gateway: number): Promise<void>
  statuses(): Promise<Status[]>
  /** The gateways that have something of the service's. */
  working(): string[]
  /** Waits until the service has everything that was acknowledged and mapped; says it on stderr. */
  outcome(name: string, options?: OutcomeOptions): Promise<FleetOutcome>
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
      await daemon.kill()
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
      // The service sees another gateway: what the lost one had delivered, this one may deliver again.
      const config = join(folder, 'gateway.yaml')
      await writeFile(config, (await readFile(config, 'utf8')).replace(/carrier: [^,]+/, '$&-again'))
    },
    async statuses() {
      const all = await Promise.all(gateways.map(({ daemon }) => daemon.status()))
      return all.filter((status) => status !== null)
    },
    working: () => [...new Set(deliveries(sandbox).map(({ gateway }) => gateway))].toSorted(),
    async outcome(name, { notMapped = () => 0, isWhole = true } = {}) {
      await trucks.stop()
      const isThere = () =>
        sandbox.stats().distinctPayloadIds >= trucks.ackedCount() - notMapped() &&
        // A number without an acknowledgement may have arrived, too.
        judge(trucks.acked, deliveries(sandbox)).lost <= notMapped()
      if (isWhole) await eventually(isThere)
      await Promise.all(gateways.map((gateway) => isEmpty(gateway)))
      const delivered = deliveries(sandbox)
      const outcome = judge(trucks.acked, delivered)
      process.stderr.write(
        `engines: ${name}: ${trucks.ackedCount()} acknowledged to trucks, ${trucks.repeated} published again, ` +
          `${acceptedLate(delivered)} accepted late, ${JSON.stringify(outcome)}\n`,
      )
      return outcome
    },
  }
}

function run(folder: string, kill: KillableOptions['kill']): Daemon {
  return startKillable({ configPath: join(folder, 'gateway.yaml'), kill: kill ?? null })
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
    const waiting = status.messageSources.reduce((sum, { outstanding, partitions }) => {
      const lags = partitions.map(({ lag, role }) => (role === 'active' ? (lag ?? 0) : 0))
      return lags.reduce((all, lag) => all + lag, sum + outstanding)
    }, 0)
    return waiting + openPayloads(status) === 0
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

type Delivery = { gateway: string; batch: string; device: string; number: number; payloadId: string }

/** In the order in which the service accepted them. */
function deliveries(sandbox: Sandbox): Delivery[] {
  return sandbox
    .received({ limit: Number.MAX_SAFE_INTEGER })
    .toReversed()
    .map(({ payload, batchId, requestId }) => ({
      gateway: String(payload['carrier']),
      batch: batchId ?? requestId,
      device: String(idIn(payload['deviceIdentifier'])),
      number: Number(payload['signalTimestamp']) - startMs,
      payloadId: String(payload['payloadId']),
    }))
}

export function judge(acked: ReadonlyMap<string, number>, delivered: readonly Delivery[]): FleetOutcome {
  const arrived = new Map<string, Set<number>>()
  const takers = new Map<string, string>()
  const outcome: FleetOutcome = { lost: 0, wrongOrder: 0, twiceByOne: 0, twiceByTwo: 0 }
  for (const { gateway, device, number, payloadId } of delivered) {
    arrived.set(device, (arrived.get(device) ?? new Set()).add(number))
    const taker = takers.get(payloadId)
    takers.set(payloadId, gateway)
    if (taker === gateway) outcome.twiceByOne += 1
    else if (taker !== undefined) outcome.twiceByTwo += 1
  }
  for (const gateway of new Set(delivered.map((one) => one.gateway)))
    outcome.wrongOrder += wrongOrderIn(delivered.filter((one) => one.gateway === gateway))
  for (const [device, to] of acked)
    for (let number = 1; number <= to; number += 1)
      if (!(arrived.get(device)?.has(number) ?? false)) outcome.lost += 1
  return outcome
}

type Run = { batch: string; first: number; last: number }

/**
 * Numbers of one gateway that were not taken in their order: within a batch, and of batches that cannot be put in an order
 * in which the numbers of every truck ascend. This is what partitions promise, and it needs no word of the engine: a batch
 * has what was taken, in the order of taking, and never changes. The service accepts batches in another order where what
 * waited is backfill and fresh messages go first, as after a start, and where a submission had no answer: its batch is sent
 * again, as a whole. `acceptedLate` counts that.
 */
function wrongOrderIn(delivered: readonly Delivery[]): number {
  let wrong = 0
  const runs = new Map<string, Map<string, Run>>()
  for (const { batch, device, number } of delivered) {
    const ofDevice = runs.get(device) ?? new Map<string, Run>()
    runs.set(device, ofDevice)
    const run = ofDevice.get(batch) ?? { batch, first: number, last: 0 }
    ofDevice.set(batch, run)
    if (number <= run.last) wrong += 1
    run.last = Math.max(run.last, number)
    run.first = Math.min(run.first, number)
  }
  const after = new Map<string, Set<string>>()
  const before = new Map<string, number>(delivered.map(({ batch }) => [batch, 0]))
  for (const ofDevice of runs.values()) {
    const sorted = [...ofDevice.values()].toSorted((one, other) => one.first - other.first)
    for (const [index, { batch, last }] of sorted.entries()) {
      const next = sorted[index + 1]
      if (next === undefined) continue
      if (next.first <= last) wrong += 1
      const following = after.get(batch) ?? new Set()
      after.set(batch, following)
      if (following.has(next.batch)) continue
      following.add(next.batch)
      before.set(next.batch, before.get(next.batch)! + 1)
    }
  }
  const ready = [...before].filter(([, count]) => count === 0).map(([batch]) => batch)
  for (let batch = ready.pop(); batch !== undefined; batch = ready.pop()) {
    before.delete(batch)
    for (const next of after.get(batch) ?? []) {
      before.set(next, before.get(next)! - 1)
      if (before.get(next) === 0) ready.push(next)
    }
  }
  return wrong + before.size
}

/** Numbers that the service accepted of a gateway after a higher one of the same truck. */
function acceptedLate(delivered: readonly Delivery[]): number {
  const highest = new Map<string, number>()
  let late = 0
  for (const { gateway, device, number } of delivered) {
    const key = `${gateway} ${device}`
    const before = highest.get(key) ?? 0
    if (number < before) late += 1
    else highest.set(key, number)
  }
  return late
}
