// hostile.ts: runs attackers against the real daemon, beside an honest client, and judges. Entry file of this folder.
//
//   hostile-world    the daemon, its config, its service
//   honest-client    a process: 50 messages a second, one at a time, and newcomers
//   attacker         a process: one of attackers/
//   attempts/        what is tried once, with its expected result
//
// A row has three times: alone (the honest client without an attacker), attacked, and settled (until the memory is
// back). What must hold is in `judge`. The machine is shared with the attacker and with others: where the honest
// client alone is slow, more is allowed beside the attacker.

import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { residentBytes, sampleResident } from '../bench/resident.ts'
import type { Attack, AttackCounts, AttackTarget } from './attackers/attack-kit.ts'
import type { HonestOptions, HonestReport } from './honest-client.ts'
import { fleetUser, openHostileWorld, type HostileWorld } from './hostile-world.ts'

export type RowOptions = {
  tls: boolean
  seconds: number
  seed: number
  packets: number
  /** Until the code is compiled and the heap has its size. */
  warmUpSeconds: number
  /** How long the honest client is measured without an attacker. */
  aloneSeconds: number
  /** How long the memory may take to come back. */
  settleSeconds: number
  /**
   * The times that are allowed, as a multiple of `limits`: more than 1 where the machine is shared with others. Then
   * the memory may be twice as much, too.
   */
  slack: number
}

export type Row = {
  name: string
  tls: boolean
  alone: HonestReport
  attacked: HonestReport
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
  const { tls } = options
  const own = join(folder, `${attack.name}-${tls ? 'tls' : 'plain'}`)
  await using world = await openHostileWorld(own, join(folder, 'compiled'))
  await using honest = await startHonestClient(world, tls)
  await pause(options.warmUpSeconds * 1000)
  await honest.report()
  await pause(options.aloneSeconds * 1000)
  const alone = await honest.report()
  const quietBytes = (await residentBytes(world.pid)) ?? 0
  const linesBefore = world.gateway.lineCount
  await using sampler = sampleResident(world.pid)
  const health = watchHealth(world)
  const attacker = await attackWorld(world, attack, options)
  const attacked = await honest.report()
  const healthMs = await health.end()
  const afterBytes = await settled(world, quietBytes, options.settleSeconds)
  const mb = (bytes: number) => bytes / 1e6
  const seen = {
    name: attack.name,
    tls,
    alone,
    attacked,
    attacker,
    residentMb: { quiet: mb(quietBytes), peak: mb(sampler.maxBytes), after: mb(afterBytes) },
    healthMs,
    logLines: world.gateway.lineCount - linesBefore,
  }
  const kind = tls ? 'tls' : 'plain'
  const memory = {
    growthMbMax: attack.growthMbMax?.[kind] ?? limits.growthMb,
    keptMbMax: attack.keptMbMax?.[kind] ?? limits.keptMb,
  }
  return {
    ...seen,
    violations: judge(seen, { ...memory, running: world.gateway.running, slack: options.slack }),
  }
}

function judge(
  { alone, attacked, residentMb, healthMs, attacker }: Omit<Row, 'violations'>,
  {
    growthMbMax,
    keptMbMax,
    running,
    slack,
  }: { growthMbMax: number; keptMbMax: number; running: boolean; slack: number },
): string[] {
  const { latency, lost, due, newcomers } = attacked
  const p99MsMax = Math.max(limits.p99Ms * slack, 4 * alone.latency.p99Ms)
  const worstMsMax = Math.max(limits.worstMs * slack, 4 * alone.latency.maxMs)
  const { quiet, peak, after } = residentMb
  const memorySlack = slack > 1 ? 2 : 1
  const [growthMb, keptMb] = [growthMbMax * memorySlack, keptMbMax * memorySlack]
  const round = Math.round
  const acked = latency.count / Math.max(1, due)
  const ackedMin = (limits.ackedShare / slack) * Math.min(1, alone.latency.count / Math.max(1, alone.due))
  return [
    ...(running ? [] : ['the daemon ended']),
    ...(attacker.opened > 0 ? [] : ['the attacker opened no connection, so nothing was attacked']),
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
    ...(peak - quiet <= growthMb ? [] : [`RssAnon grew by ${round(peak - quiet)} MB, at most ${growthMb}`]),
    ...(after - quiet <= keptMb ? [] : [`RssAnon stays ${round(after - quiet)} MB above quiet`]),
    ...(healthMs !== null && healthMs <= limits.healthMs * slack
      ? []
      : [`/healthz took ${healthMs === null ? 'too long' : `${round(healthMs)} ms`}`]),
  ]
}

type HonestClient = AsyncDisposable & { report(): Promise<HonestReport> }

export async function startHonestClient(world: HostileWorld, tls: boolean): Promise<HonestClient> {
  const options: HonestOptions = {
    port: world.port(tls),
    ca: tls ? world.ca : null,
    userName: fleetUser.name,
    password: fleetUser.password,
    device: 'truck-1',
    newcomers: ['truck-20', 'truck-21', 'truck-22', 'truck-23'],
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

async function attackWorld(world: HostileWorld, attack: Attack, options: RowOptions): Promise<AttackCounts> {
  const target: AttackTarget = {
    port: world.port(options.tls),
    opsPort: Number(new URL(world.opsUrl).port),
    tls: options.tls,
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
