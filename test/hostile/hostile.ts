// hostile.ts: runs attackers against the real daemon, beside honest clients, and judges. Entry file of this folder.
//
//   hostile-world    the daemon, its config, its service
//   route            TCP, TLS or WebSocket, and the version of MQTT
//   honest-client    a process: 50 messages a second, one at a time, and newcomers
//   attacker         a process: one of attackers/
//
// Each row has two honest clients: one of MQTT 3.1.1 over TCP and one of MQTT 5 over WebSocket, both with TLS where
// the attacker has it. A row has three times: alone (the honest clients without an attacker), attacked, and settled
// (until the memory is back and the service has what was acknowledged). What must hold is in `judgeDaemon` and
// `judgeClient`. The machine is shared with the attacker and with others: where an honest client alone is slow, more is
// allowed beside the attacker.

import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { residentBytes, sampleResident } from '../bench/resident.ts'
import type { Attack, AttackCounts, AttackTarget } from './attackers/attack-kit.ts'
import { judge, type Findings } from '../support/driver/oracle.ts'
import type { HonestOptions, HonestReport } from './honest-client.ts'
import { fleetUser, openHostileWorld, type HostileWorld } from './hostile-world.ts'
import { isSecure, routeText, urlOf, type Route } from './route.ts'

export type RowOptions = Route & {
  seconds: number
  seed: number
  packets: number
  /** Until the code is compiled and the heap has its size. */
  warmUpSeconds: number
  /** How long the honest client is measured without an attacker. */
  aloneSeconds: number
  /** How long the memory may take to come back, and the service to get what was acknowledged. */
  settleSeconds: number
  /**
   * The times that are allowed, as a multiple of `limits`: more than 1 where the machine is shared with others. Then
   * the memory may be twice as much, too.
   */
  slack: number
}

export type HonestRow = {
  route: Route
  alone: HonestReport
  attacked: HonestReport
  /** Messages that were acknowledged and are not at the service, and those that it accepted twice. */
  missing: number
  twice: number
}

export type Row = {
  name: string
  route: Route
  honest: readonly HonestRow[]
  attacker: AttackCounts
  residentMb: { quiet: number; peak: number; after: number }
  /** The slowest answer of /healthz; null: it gave none. */
  healthMs: number | null
  logLines: number
  violations: readonly string[]
}

export const limits = {
  p99Ms: 100,
  growthMb: 100,
  /** Of the growth that stays. V8 and malloc keep some of what they once had. */
  keptMb: 50,
  /** A single message. */
  worstMs: 1000,
  /** Of the messages that are acknowledged in the same time without an attacker. */
  ackedShare: 0.8,
  newcomerMs: 5000,
  healthMs: 1000,
} as const

export async function runAttack(folder: string, attack: Attack, options: RowOptions): Promise<Row> {
  const { transport, version } = options
  const route: Route = { transport, version }
  const own = join(folder, `${attack.name}-${transport}-${version}`)
  await using world = await openHostileWorld(own)
  const routes = isSecure(transport) ? secureRoutes : plainRoutes
  const [first, second] = [startHonestClient(world, routes[0], 0), startHonestClient(world, routes[1], 1)]
  await using one = await first
  await using other = await second
  const reports = () => Promise.all([one.report(), other.report()])
  await pause(options.warmUpSeconds * 1000)
  const warm = await reports()
  await pause(options.aloneSeconds * 1000)
  const alone = await reports()
  const quietBytes = (await residentBytes(world.pid)) ?? 0
  const linesBefore = world.gateway.lineCount
  await using sampler = sampleResident(world.pid)
  const health = watchHealth(world)
  const attacker = await attackWorld(world, attack, options)
  const attacked = await reports()
  const healthMs = await health.end()
  const afterBytes = await settled(world, quietBytes, options.settleSeconds)
  const acked = warm.map((report, index) =>
    [report, alone[index], attacked[index]].flatMap((each) => each?.acked ?? []),
  )
  const found = await undelivered(world, acked, options.settleSeconds)
  const mb = (bytes: number) => bytes / 1e6
  const seen = {
    name: attack.name,
    route,
    honest: routes.map((each, index) => ({
      route: each,
      alone: alone[index]!,
      attacked: attacked[index]!,
      missing: found[index]?.lost.length ?? 0,
      twice: found[index]?.twice.length ?? 0,
    })),
    attacker,
    residentMb: { quiet: mb(quietBytes), peak: mb(sampler.maxBytes), after: mb(afterBytes) },
    healthMs,
    logLines: world.gateway.lineCount - linesBefore,
  }
  const kind = isSecure(transport) ? 'tls' : 'plain'
  const memory = {
    growthMbMax: attack.growthMbMax?.[kind] ?? limits.growthMb,
    keptMbMax: attack.keptMbMax?.[kind] ?? limits.keptMb,
  }
  const { slack } = options
  return {
    ...seen,
    violations: [
      ...seen.honest.flatMap((client) => judgeClient(client, slack)),
      ...judgeDaemon(seen, { ...memory, running: world.gateway.running, slack }),
    ],
  }
}

const plainRoutes = [
  { transport: 'tcp', version: 4 },
  { transport: 'ws', version: 5 },
] as const
const secureRoutes = [
  { transport: 'tls', version: 4 },
  { transport: 'wss', version: 5 },
] as const

function judgeDaemon(
  { residentMb, healthMs, attacker }: Omit<Row, 'violations'>,
  {
    growthMbMax,
    keptMbMax,
    running,
    slack,
  }: { growthMbMax: number; keptMbMax: number; running: boolean; slack: number },
): string[] {
  const { quiet, peak, after } = residentMb
  const memorySlack = slack > 1 ? 2 : 1
  const [growthMb, keptMb] = [growthMbMax * memorySlack, keptMbMax * memorySlack]
  const { round } = Math
  return [
    ...(running ? [] : ['the daemon ended']),
    ...(attacker.opened > 0 ? [] : ['the attacker opened no connection, so nothing was attacked']),
    ...(peak - quiet <= growthMb ? [] : [`RssAnon grew by ${round(peak - quiet)} MB, at most ${growthMb}`]),
    ...(after - quiet <= keptMb ? [] : [`RssAnon stays ${round(after - quiet)} MB above quiet`]),
    ...(healthMs !== null && healthMs <= limits.healthMs * slack
      ? []
      : [`/healthz took ${healthMs === null ? 'too long' : `${round(healthMs)} ms`}`]),
  ]
}

function judgeClient({ route, alone, attacked, missing, twice }: HonestRow, slack: number): string[] {
  const { latency, lost, due, newcomers } = attacked
  const p99MsMax = Math.max(limits.p99Ms * slack, 4 * alone.latency.p99Ms)
  const worstMsMax = Math.max(limits.worstMs * slack, 4 * alone.latency.maxMs)
  const { round } = Math
  const acked = latency.count / Math.max(1, due)
  const ackedMin = (limits.ackedShare / slack) * Math.min(1, alone.latency.count / Math.max(1, alone.due))
  return [
    ...(latency.p99Ms < p99MsMax ? [] : [`p99 ${round(latency.p99Ms)} ms, at most ${round(p99MsMax)}`]),
    ...(latency.maxMs <= worstMsMax ? [] : [`a message waited ${round(latency.maxMs)} ms`]),
    ...(lost === 0 ? [] : [`the honest client lost ${lost} connections`]),
    ...(acked >= ackedMin ? [] : [`${latency.count} of ${due} messages acknowledged`]),
    ...(newcomers.failed === 0
      ? []
      : [`${newcomers.failed} of ${newcomers.tried} newcomers could not publish`]),
    ...(newcomers.worstMs <= limits.newcomerMs * slack
      ? []
      : [`a newcomer took ${round(newcomers.worstMs)} ms`]),
    ...(missing === 0 ? [] : [`${missing} acknowledged messages are not at the service`]),
    ...(twice === 0 ? [] : [`${twice} acknowledged messages came twice`]),
  ].map((violation) => `${routeText(route)}: ${violation}`)
}

type HonestClient = AsyncDisposable & { report(): Promise<HonestReport> }

async function startHonestClient(world: HostileWorld, route: Route, index: number): Promise<HonestClient> {
  const newcomers = [20, 21, 22, 23].map((number) => `truck-${number + 4 * index}`)
  const options: HonestOptions = {
    version: route.version,
    url: urlOf(route.transport, world.port(route.transport)),
    ca: world.ca,
    // Before the time of all attackers, so that a message of an attacker is never taken for one of these.
    firstTime: world.firstTime - (index + 1) * timesOfClient,
    login: { userName: fleetUser.name, password: fleetUser.password },
    device: `truck-${index + 1}`,
    newcomers,
  }
  const child = forkScript('honest-client.ts', [JSON.stringify(options)])
  await messageOf(child)
  return {
    async report() {
      child.send('report')
      return (await messageOf(child)) as HonestReport
    },
    [Symbol.asyncDispose]: () => ended(child),
  }
}

/** Milliseconds before the start of the world, which are the numbers of the messages of one client. */
const timesOfClient = 1_000_000

/** By client, what is wrong with its messages, when the time is over or all are at the service. */
async function undelivered(
  { service }: HostileWorld,
  acked: readonly (readonly number[])[],
  seconds: number,
): Promise<Findings[]> {
  const deadlineMs = performance.now() + seconds * 1000
  for (;;) {
    const came = service.arrivals.map(({ ts }) => ({ name: String(ts) }))
    const found = acked.map((times) =>
      judge(
        times.map((time) => ({ name: String(time), isAcked: true })),
        came,
      ),
    )
    if (found.every(({ lost }) => lost.length === 0) || performance.now() > deadlineMs) return found
    await pause(250)
  }
}

async function attackWorld(world: HostileWorld, attack: Attack, options: RowOptions): Promise<AttackCounts> {
  const target: AttackTarget = {
    transport: options.transport,
    version: options.version,
    port: world.port(options.transport),
    sitePort: world.sitePort,
    opsPort: Number(new URL(world.opsUrl).port),
    seconds: options.seconds,
    seed: options.seed,
    packets: options.packets,
  }
  const child = forkScript('attacker.ts', [attack.name, JSON.stringify(target)])
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the attacker ${attack.name} ended with ${code ?? 'a signal'}`)
  return JSON.parse(text) as AttackCounts
}

function forkScript(script: string, args: readonly string[]): ChildProcess {
  const child = fork(join(import.meta.dirname, script), [...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: [],
  })
  const end = () => void child.kill('SIGKILL')
  process.once('exit', end)
  child.once('exit', () => process.removeListener('exit', end))
  return child
}

async function messageOf(child: ChildProcess): Promise<unknown> {
  const message = once(child, 'message').then(([value]) => value as unknown)
  return Promise.race([message, once(child, 'exit').then(() => Promise.reject(new Error('a process ended')))])
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** RssAnon when it is back, or when the time is over. */
async function settled({ pid }: HostileWorld, quietBytes: number, seconds: number): Promise<number> {
  const deadlineMs = performance.now() + seconds * 1000
  for (;;) {
    const bytes = (await residentBytes(pid)) ?? 0
    if (bytes - quietBytes <= limits.keptMb * 1e6 || performance.now() > deadlineMs) return bytes
    await pause(250)
  }
}

/** Asks for /healthz twice a second. */
function watchHealth(world: HostileWorld): { end(): Promise<number | null> } {
  const stop = new AbortController()
  const watched = (async () => {
    let worstMs = 0
    while (!stop.signal.aborted) {
      const startedMs = performance.now()
      const answer = await fetch(`${world.opsUrl}/healthz`, { signal: AbortSignal.timeout(5000) }).catch(
        () => null,
      )
      await answer?.text().catch(() => '')
      if (answer?.status !== 200) return null
      worstMs = Math.max(worstMs, performance.now() - startedMs)
      await pause(500)
    }
    return worstMs
  })()
  return {
    end() {
      stop.abort()
      return watched
    },
  }
}
