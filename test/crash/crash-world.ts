// crash-world.ts: the environment of the daemons of a crash run: folder, config, service, devices, and the rules, which are
// checked with sources other than the gateway: what the devices saw, what the service has, the spool after the last stop.
//
//   truck-1 to truck-3   exactly once, over both versions, both QoS, TCP and WebSocket, stored and clean sessions
//   doomed               every payload is refused by the service: dead letters

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { FaultsInput } from '../../src/sandbox/sandbox.ts'
import { messageOf } from '../../src/std/gateway-error.ts'
import { keepCompiledCode } from '../support/compiled-code.ts'
import {
  openPayloads,
  runCommand,
  startDaemon,
  statusUntil,
  type Daemon,
  type LogLine,
} from '../support/driver/daemon.ts'
import type { DevicePlan } from '../support/driver/device.ts'
import { Fleet, type Sent } from '../support/driver/fleet.ts'
import { startKillable } from '../support/driver/killable.ts'
import { judge, nameOf, type Came, type Expected } from '../support/driver/oracle.ts'
import { openService, type Payload, type Service } from '../support/driver/service.ts'
import type { Random } from '../support/random.ts'

export type CrashFindings = {
  published: number
  acked: number
  resent: number
  accepted: number
  deadLetters: number
  batches: number
  /** Submissions of a batchId that the service had already accepted. */
  repeats: number
  violations: string[]
}

export type CrashWorld = AsyncDisposable & {
  spoolPath: string
  service: Service
  fleet: Fleet
  /** The service answers 500 to every request, or normally again. */
  setDown(down: boolean): void
  /** Kinds of events of all daemons, as their logs have them. */
  events: ReadonlySet<string>
  /** Resolves at the next such event of a daemon. */
  eventOf(...kinds: string[]): Promise<LogLine>
  start(options?: { withoutSync?: boolean }): Daemon
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

const doomedDevice = 'doomed'
const stored = { version: 5, window: 16, clean: false, expiryS: 86_400 } as const

const plans: readonly Omit<DevicePlan, 'message'>[] = [
  // Slower than the others: its payloads are retried.
  { name: doomedDevice },
  { name: 'truck-1', ...stored },
  { name: 'truck-2', window: 4 },
  { name: 'truck-3', ...stored, qos: 2 },
]
/** Of this device. */
const overWebSocket = 'truck-3'

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
const drainBoundMs = 120_000
const commandMs = 60_000
/** The most messages of each rule that are reported; further ones add no information. */
const reportedMax = 5

export async function openCrashWorld(options: WorldOptions): Promise<CrashWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-crash-'))
  const service = await openService({ faults: usualFaults, random: options.random.next, contentOf })
  const spoolPath = options.spoolPath ?? join(folder, 'spool')
  const configPath = join(folder, 'gateway.yaml')
  await writeFile(configPath, configText({ spoolPath, serviceUrl: service.url, spool: options.spool }))
  // The times of the messages count from here: two days are late, and not too late.
  const firstTs = Date.now() - 2 * 86_400_000
  const tsOf = (n: number) => firstTs + n * 10
  const message = (name: string) => (n: number) => ({
    topic: `telemetry/v1/${name}`,
    payload: JSON.stringify({ ts: tsOf(n), ...valuesOf(n) }),
  })
  const fleet = new Fleet(plans.map((plan) => ({ ...plan, message: message(plan.name) })))
  const violations: string[] = []
  const events = new Set<string>()
  const waiters = new Map<(line: LogLine) => void, readonly string[]>()
  keepCompiledCode()

  function onLine(line: LogLine): void {
    const { event = '' } = line
    events.add(event)
    if (event === 'chunk_damaged' || event === 'conservation_broken') violations.push(JSON.stringify(line))
    for (const [resolve, kinds] of waiters)
      if (kinds.includes(event) && waiters.delete(resolve)) resolve(line)
  }

  function start({ withoutSync = false } = {}): Daemon {
    const { env = {} } = options
    return withoutSync
      ? startKillable({ configPath, env, withoutSync })
      : startDaemon(configPath, { env, onLine })
  }

  async function serve(daemon: Daemon): Promise<void> {
    const ports = await daemon.ready
    if (ports === null) return
    const urlOf = ({ name }: DevicePlan) =>
      name === overWebSocket ? `ws://127.0.0.1:${ports.wsPort}/mqtt` : `mqtt://127.0.0.1:${ports.mqttPort}`
    await fleet.serve(urlOf, () => daemon.running)
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
    const came = arrivals.map(({ device, ts, content }) => ({ name: nameOf(device, ts), content }))
    const expected = ({ plan: { name }, n, isAcked }: Sent): Expected => ({
      name: nameOf(name, tsOf(n)),
      isAcked,
      ...(name === doomedDevice ? { end: 'dead letter' } : { content: textOf(valuesOf(n)) }),
    })
    const found = judge([...fleet.messages()].map(expected), [...came, ...deadLetters])
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
      violations: [
        ...violations.map((what) => `noticed: ${what}`),
        ...(acked < published ? [`never acked: ${published - acked} messages`] : []),
        ...linesOf({ answers: fleet.wrong, service: service.wrong(), ...found }),
      ],
    }
  }

  /** As the files have them, which `spool verify` must find in order. */
  async function exportedLetters(): Promise<Came[]> {
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
        waiters.set(resolve, kinds)
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

const valuesOf = (n: number) => ({ latitude: (n % 18_000) / 100 - 90, longitude: (n % 36_000) / 100 - 180 })
const textOf = ({ latitude, longitude }: ReturnType<typeof valuesOf>) => `${latitude} ${longitude}`
const contentOf = ({ gps }: Payload) => (gps === undefined ? '' : textOf(gps))

/** A line of `dead-letters export`. */
function deadLetterOf(line: string): Came {
  const { payload } = JSON.parse(line) as {
    payload?: { signalTimestamp: number; deviceIdentifier: { id: string } }
  }
  // A message that was not mapped is none that a device sent.
  if (payload === undefined) return { name: line, end: 'dead letter' }
  return { name: nameOf(payload.deviceIdentifier.id, payload.signalTimestamp), end: 'dead letter' }
}

/** One for each rule that is broken. */
function linesOf(found: Record<string, string[]>): string[] {
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
      latitude: { path: latitude }
      longitude: { path: longitude }
      signals:
${padding}
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
