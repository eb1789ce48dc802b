// crash-world.ts: the environment of the daemons of a crash run: folder, config, service, devices, and the
// violations found during the run.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { messageOf } from '../../src/std/gateway-error.ts'
import { keepCompiledCode } from '../support/compiled-code.ts'
import type { Random } from '../support/random.ts'
import { openPayloads, statusUntil, type Daemon, type LogLine } from '../support/driver/daemon.ts'
import { startKillable, type KillableOptions } from '../support/driver/killable.ts'
import { createFleet, type Fleet } from './crash-devices.ts'
import { createUntimedFleet, type UntimedFleet } from './untimed-fleet.ts'
import { openService, type Service } from './crash-service.ts'

export type CrashWorld = AsyncDisposable & {
  folder: string
  spoolPath: string
  service: Service
  fleet: Fleet
  untimed: UntimedFleet
  /** Broken rules, in the order in which they are found. */
  violations: string[]
  /** Events of all daemons, counted by kind. */
  events: ReadonlyMap<string, number>
  /** Resolves at the next such event of a daemon. */
  eventOf(...kinds: string[]): Promise<string>
  start(options?: Omit<KillableOptions, 'configPath' | 'onLine'>): Daemon
  /**
   * With a daemon that is left alone: all acknowledged, all delivered or dead, the sums add up, a stop in
   * order.
   */
  finish(): Promise<void>
  /** The same with a daemon that runs already. */
  finishWith(daemon: Daemon): Promise<void>
}

export type WorldOptions = {
  random: Random
  devices?: number
  window?: number
  /** Directory of the spool; by default in the folder of the run. */
  spoolPath?: string
  spool?: { max_bytes: string; min_free_bytes: string }
  /** For every daemon. */
  env?: Record<string, string>
}

const drainBoundMs = 60_000

export async function openCrashWorld(options: WorldOptions): Promise<CrashWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-crash-'))
  const service = await openService(folder, options.random.next)
  const spoolPath = options.spoolPath ?? join(folder, 'spool')
  const configPath = join(folder, 'gateway.yaml')
  await writeFile(configPath, configText({ spoolPath, serviceUrl: service.url, spool: options.spool }))
  const fleet = createFleet({ devices: options.devices ?? 8, window: options.window ?? 4 })
  const untimed = createUntimedFleet(() => fleet.busy)
  const violations: string[] = []
  const events = new Map<string, number>()
  const waiters: { kinds: string[]; resolve: (event: string) => void }[] = []
  keepCompiledCode()

  function onLine(line: LogLine): void {
    const { observed: event } = line
    if (event === undefined) return
    events.set(event, (events.get(event) ?? 0) + 1)
    if (event === 'chunk_damaged' || event === 'conservation_broken') violations.push(JSON.stringify(line))
    for (let index = waiters.length - 1; index >= 0; index -= 1) {
      const waiter = waiters[index]
      if (waiter === undefined || !waiter.kinds.includes(event)) continue
      waiters.splice(index, 1)
      waiter.resolve(event)
    }
  }

  function start(more: Omit<KillableOptions, 'configPath' | 'onLine'> = {}): Daemon {
    return startKillable({ ...more, configPath, onLine, env: { ...options.env, ...more.env } })
  }

  async function finish(): Promise<void> {
    await using daemon = start()
    const ready = await daemon.ready
    if (ready === null) throw new Error(`the last daemon ended:\n${daemon.log()}`)
    const alive = () => daemon.running
    const served = [fleet.serve(ready, alive), untimed.serve(ready, alive)]
    await finishWith(daemon)
    await Promise.all(served)
  }

  async function finishWith(daemon: Daemon): Promise<void> {
    await Promise.race([Promise.all([fleet.quiet(), untimed.finish()]), daemon.ended])
    await drained(daemon)
    const end = await daemon.stop()
    if (end !== 'exit 0') violations.push(`SIGTERM ended in ${end}:\n${daemon.log()}`)
  }

  async function drained(daemon: Daemon): Promise<void> {
    try {
      // Between two lanes a payload is in neither for the time of a write, so the sums are waited for as
      // well.
      const bound = { what: 'an empty spool whose sums add up', boundMs: drainBoundMs }
      const status = await statusUntil(
        daemon,
        (status) => openPayloads(status) === 0 && addsUp(status),
        bound,
      )
      if (status.totals.dropped + status.totals.damaged > 0)
        violations.push(`dropped or damaged: ${JSON.stringify(status.totals)}`)
    } catch (error) {
      violations.push(messageOf(error))
    }
  }

  return {
    folder,
    spoolPath,
    service,
    fleet,
    untimed,
    violations,
    events,
    eventOf: (...kinds) =>
      new Promise((resolve) => {
        waiters.push({ kinds, resolve })
      }),
    start,
    finish,
    finishWith,
    async [Symbol.asyncDispose]() {
      fleet.disconnect()
      untimed.disconnect()
      await service[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function addsUp({ internals }: Status): boolean {
  const { messages, payloads, lanes } = internals.conservation
  return [messages, payloads, ...lanes].every(({ difference }) => difference === 0)
}

/** Constant signals that make a payload about 2.5 KB, so that delivered data soon triggers a compaction. */
const padding = Array.from(
  { length: 9 },
  (_, index) =>
    `        - { type: ${'PADDING_'.repeat(11)}${index}, value: 1, value_unit: ${'UNIT_'.repeat(18)} }`,
).join('\n')

function configText({ spoolPath, serviceUrl, spool }: ConfigParts): string {
  const { max_bytes, min_free_bytes } = spool ?? { max_bytes: '1GiB', min_free_bytes: '64MiB' }
  return `ingest:
  broker:
    listeners: [{ url: "mqtt://127.0.0.1:0" }, { url: "ws://127.0.0.1:0/mqtt" }]
    access: { anonymous: true }
    limits: { max_messages_per_s: 1000000, max_in_flight: 8 }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
      speed: { path: gps.speed, unit: km/h }
      heading: { path: gps.heading }
      in_motion: { path: gps.moving }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer.value, unit: km }
        - { type: TRIP, path: $properties.trip }
${padding}
  - name: parked
    topic: parked/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: tanks
    topic: tanks/{device}/{field}
    coalesce: { name: "{field}", complete: [level, heat], window: 100ms }
    map:
      signals:
        - { type: LEVEL, path: level }
        - { type: HEAT, path: heat }
  - name: plants
    preset: sparkplug-b
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { allow_in_memory: true, path: ${JSON.stringify(spoolPath)}, max_bytes: ${max_bytes}, min_free_bytes: ${min_free_bytes} }
delivery:
  base_url: ${serviceUrl}
  batch: { max_payloads: 20, linger: 20ms }
  timeout: 5s
  errors: { Validation: [30ms, 60ms], default: [20ms, 20ms, 20ms, 20ms, 20ms, 20ms, 20ms, 20ms] }
  backoff: { min: 10ms, max: 80ms, probe_every: 1s }
ops: { listen: "127.0.0.1:0" }
log: { level: info }
`
}

type ConfigParts = {
  spoolPath: string
  serviceUrl: string
  spool: { max_bytes: string; min_free_bytes: string } | undefined
}
