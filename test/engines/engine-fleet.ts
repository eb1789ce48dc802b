// engine-fleet.ts: gateways as processes behind an engine, trucks that publish to it, and the service. What was lost, what
// was delivered twice and what came in another order, by device and number.

import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openPayloads, statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { startKillable, type KillableOptions } from '../support/driver/killable.ts'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import type { DevicePlan } from '../support/driver/device.ts'
import { Fleet } from '../support/driver/fleet.ts'
import { judge, nameOf, wrongOrders } from '../support/driver/oracle.ts'
import { openService, type Service } from '../support/driver/service.ts'
import type { Engine } from './message-engine.ts'

export const partitions = 4

/** Lines of the config of NATS: the partition of each device. */
export const natsMappings = [`mappings { "t.*": "gw.{{partition(${partitions},1)}}.t.{{wildcard(1)}}" }`]

export type TruckOptions = {
  count?: number
  /** Between two messages of a truck, at least. */
  pauseMs?: number
  /** What a truck publishes in place of a position; undefined for a position. */
  content?: (device: string, number: number) => string | undefined
}

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

/** Of messages that the engine acknowledged to a truck, as the oracle counts them. */
type FleetOutcome = { lost: number; twice: number; byTwo: number; unknown: number; wrongOrder: number }

export type EngineFleet = {
  readonly service: Service
  readonly gateways: readonly Gateway[]
  readonly trucks: Fleet
  kill(gateway: number): Promise<void>
  stop(gateway: number): Promise<void>
  /** Resolves when it takes messages or waits for its turn. */
  start(gateway: number): Promise<void>
  /** A new machine: the same member at the engine, another carrier. */
  throwDiskAway(gateway: number): Promise<void>
  statuses(): Promise<Status[]>
  /** The gateways that have something of the service's. */
  working(): string[]
  /** Waits until the service has everything that was acknowledged; says it on stderr. */
  outcome(name: string): Promise<FleetOutcome>
}

export async function startEngineFleet(engine: Engine, options: FleetOptions = {}): Promise<EngineFleet> {
  const { gateways: count = 3, kills = {} } = options
  const service = await openService()
  onTestFinished(() => service[Symbol.asyncDispose]())
  const gateways: Gateway[] = []
  for (let index = 0; index < count; index += 1) {
    const folder = await newFolder()
    await writeConfig(folder, { engine, index, serviceUrl: service.url, options })
    gateways.push({ folder, daemon: run(folder, kills[index] ?? null) })
  }
  onTestFinished(async () => {
    await Promise.all(gateways.map(({ daemon }) => daemon[Symbol.asyncDispose]()))
  })
  await Promise.all(gateways.map((gateway) => isReady(gateway)))
  const trucks = startTrucks(engine.mqttUrls, options.trucks)

  return {
    service,
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
    working: () => [...new Set(service.arrivals.map(({ gateway }) => gateway))].toSorted(),
    async outcome(name) {
      await trucks.hold()
      // A number without an acknowledgement may have arrived, too.
      await eventually(() => service.arrivals.length >= trucks.acked && outcomeOf(trucks, service).lost === 0)
      await Promise.all(gateways.map((gateway) => isEmpty(gateway)))
      const outcome = outcomeOf(trucks, service)
      process.stderr.write(
        `engines: ${name}: ${trucks.acked} acknowledged to trucks, ${trucks.resent} published again, ` +
          `${JSON.stringify(outcome)}\n`,
      )
      return outcome
    },
  }
}

/** Device time of the number 0; one millisecond for each number. */
const startMs = Date.now()
const answerMsMax = 20_000

/** Each truck begins at another node, and tries the next one when its connection ends. */
function startTrucks(mqttUrls: readonly string[], options: TruckOptions = {}): Fleet {
  const { count = 20, pauseMs = 20, content = () => undefined } = options
  const plans = Array.from({ length: count }, (_, index): DevicePlan => {
    const name = `truck-${index}`
    const position = (n: number) => JSON.stringify({ t: startMs + n, x: 52 + n / 1e6, y: 13 })
    const message = (n: number) => ({ topic: `t/${name}`, payload: content(name, n) ?? position(n) })
    return { name, message, everyMs: pauseMs, answerMsMax, login: { userName: 'guest', password: 'guest' } }
  })
  const trucks = new Fleet(plans)
  let isOver = false
  const served = trucks.serve(
    (_plan, turn, index) => mqttUrls[(index + turn) % mqttUrls.length]!,
    () => !isOver,
  )
  trucks.grant(Infinity)
  onTestFinished(async () => {
    isOver = true
    trucks.disconnect()
    await served
  })
  return trucks
}

function outcomeOf(trucks: Fleet, { arrivals }: Service): FleetOutcome {
  const sent = [...trucks.messages()].map(({ plan, n, isAcked }) => ({
    name: nameOf(plan.name, startMs + n),
    isAcked,
  }))
  const came = arrivals.map(({ device, ts, gateway }) => ({ name: nameOf(device, ts), gateway }))
  const { lost, twice, byTwo, unknown } = judge(sent, came)
  return {
    lost: lost.length,
    twice: twice.length,
    byTwo: byTwo.length,
    unknown: unknown.length,
    wrongOrder: wrongOrders(arrivals),
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
