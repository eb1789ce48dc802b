// crash-world.ts: the environment of the daemons of a crash run: folder, config, service, devices, and the rules, which are
// checked with sources other than the gateway: what the devices saw, what the service has, the spool after the last stop.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { FaultsInput } from '../../src/sandbox/sandbox.ts'
import { messageOf } from '../../src/std/gateway-error.ts'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { openPayloads, runCommand, statusUntil, type Daemon, type LogLine } from '../support/driver/daemon.ts'
import type { Fleet } from '../support/driver/fleet.ts'
import { startKillable, type KillableOptions } from '../support/driver/killable.ts'
import { judge, type Findings } from '../support/driver/oracle.ts'
import { openService, type Service } from '../support/driver/service.ts'
import type { Random } from '../support/random.ts'
import {
  cameOf,
  contentOf,
  createCrashFleet,
  deadLetterOf,
  doomedDevice,
  expectedOf,
  urlOf,
} from './crash-fleet.ts'

export type CrashFindings = {
  published: number
  acked: number
  resent: number
  accepted: number
  deadLetters: number
  batches: number
  /** Submissions of a batchId that the service had already accepted. */
  repeats: number
  /** Copies that nothing tells from their message. */
  repeated: number
  violations: string[]
}

type StartOptions = Omit<KillableOptions, 'configPath' | 'onLine'>

export type CrashWorld = AsyncDisposable & {
  spoolPath: string
  service: Service
  fleet: Fleet
  /** The service answers 500 to every request, or normally again. */
  setDown(down: boolean): void
  /** Events of all daemons, counted by kind. */
  events: ReadonlyMap<string, number>
  /** Resolves at the next such event of a daemon. */
  eventOf(...kinds: string[]): Promise<string>
  start(options?: StartOptions): Daemon
  /** Until the daemon has ended. */
  serve(daemon: Daemon): Promise<void>
  /**
   * With a daemon that is left alone, by default a new one: all acknowledged, all delivered or dead, the sums add up, a
   * stop in order. Then all rules are checked.
   */
  finish(daemon?: Daemon): Promise<CrashFindings>
}

export type WorldOptions = {
  random: Random
  /** Directory of the spool; by default in the folder of the run. */
  spoolPath?: string
  spool?: { max_bytes: string; min_free_bytes: string }
  /** For every daemon. */
  env?: Record<string, string>
}

/** Batches are sent again and payloads are retried while daemons are killed. */
const usualFaults: FaultsInput = {
  latency: { min: 0, max: 4 },
  cut: { before_reading: 0.02, after_reading: 0.02 },
  status: { '500': 0.05, '503': 0.02, '429': 0.01 },
  after_commit: { cut: 0.06, error: 0.03 },
  body: { truncated: 0.02, html: 0.01 },
  fail: [
    { device: doomedDevice, error_type: 'Validation', field: 'gps.latitude' },
    { rate: 0.03, error_type: 'Busy', message: 'Later, please.' },
  ],
}
const drainBoundMs = 60_000
const commandMs = 60_000
/** The most messages of each rule that are reported; further ones add no information. */
const reportedMax = 5

export async function openCrashWorld(options: WorldOptions): Promise<CrashWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-crash-'))
  const service = await openService({ faults: usualFaults, random: options.random.next, contentOf })
  const spoolPath = options.spoolPath ?? join(folder, 'spool')
  const configPath = join(folder, 'gateway.yaml')
  await writeFile(configPath, configText({ spoolPath, serviceUrl: service.url, spool: options.spool }))
  const fleet = createCrashFleet()
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

  function start(more: StartOptions = {}): Daemon {
    return startKillable({ ...more, configPath, onLine, env: { ...options.env, ...more.env } })
  }

  async function serve(daemon: Daemon): Promise<void> {
    const ports = await daemon.ready
    if (ports !== null)
      await fleet.serve(
        (plan) => urlOf(plan, ports),
        () => daemon.running,
      )
  }

  async function finish(running?: Daemon): Promise<CrashFindings> {
    await using daemon = running ?? start()
    if ((await daemon.ready) === null) throw new Error(`the last daemon ended:\n${daemon.log()}`)
    const served = running === undefined ? serve(daemon) : null
    await Promise.race([fleet.quiet(), daemon.ended])
    await drained(daemon)
    const end = await daemon.stop()
    if (end !== 'exit 0') violations.push(`SIGTERM ended in ${end}:\n${daemon.log()}`)
    await served
    return findings()
  }

  async function drained(daemon: Daemon): Promise<void> {
    // Between two lanes a payload is in neither for the time of a write, so the sums are waited for as well.
    const isEmpty = (status: Status) => openPayloads(status) === 0 && addsUp(status)
    const bound = { what: 'an empty spool whose sums add up', boundMs: drainBoundMs }
    try {
      const { totals } = await statusUntil(daemon, isEmpty, bound)
      if (totals.dropped + totals.damaged > 0)
        violations.push(`dropped or damaged: ${JSON.stringify(totals)}`)
    } catch (error) {
      violations.push(messageOf(error))
    }
  }

  async function findings(): Promise<CrashFindings> {
    const deadLetters = await exportedLetters()
    const { arrivals } = service
    const found = judge(expectedOf(fleet.messages()), [...cameOf(arrivals), ...deadLetters])
    const { batches, repeats } = service.stats()
    const { published, acked, resent } = fleet
    return {
      published,
      acked,
      resent,
      accepted: arrivals.length,
      deadLetters: deadLetters.length,
      batches,
      repeats,
      repeated: arrivals.length + deadLetters.length - published,
      violations: [
        ...violations.map((what) => `noticed: ${what}`),
        ...(acked < published ? [`never acked: ${published - acked} messages`] : []),
        ...linesOf({ answers: fleet.wrong, service: service.wrong() }),
        ...linesOf(found),
      ],
    }
  }

  /** As the files have them, which `spool verify` must find in order. */
  async function exportedLetters() {
    const verified = await runCommand(['spool', 'verify', '--path', spoolPath], { timeoutMs: commandMs })
    const to = join(folder, 'letters.ndjson')
    const words = ['dead-letters', 'export', '--path', spoolPath, '--to', to]
    const exported = await runCommand(words, { timeoutMs: commandMs })
    for (const { status, stdout, stderr } of [verified, exported])
      if (status !== 'exit 0') violations.push(`${status}: ${stdout.slice(0, 1000)}${stderr}`)
    return (await readFile(to, 'utf8')).split('\n').filter(Boolean).map(deadLetterOf)
  }

  return {
    spoolPath,
    service,
    fleet,
    setDown: (down) => service.setFaults(down ? { always: 500 } : usualFaults),
    events,
    eventOf: (...kinds) =>
      new Promise((resolve) => {
        waiters.push({ kinds, resolve })
      }),
    start,
    serve,
    finish,
    async [Symbol.asyncDispose]() {
      fleet.disconnect()
      await service[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** One for each rule that is broken. */
function linesOf(found: Findings | Record<string, string[]>): string[] {
  return Object.entries(found)
    .filter(([, names]) => names.length > 0)
    .map(([rule, names]) => `${rule} (${names.length}): ${names.slice(0, reportedMax).join('; ')}`)
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
