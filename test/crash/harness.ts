// harness.ts: a crash run. It starts one daemon after the other on the same spool, kills each at a chosen
// point, and can truncate its files to their synced size. Devices and service continue. At the end a last
// daemon runs without a kill, and all rules are checked.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom, type Random } from '../support/random.ts'
import { openPayloads, statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { points, type Mistake, type Point } from './kill-points.ts'
import { preparePower, type Power } from './power-cut.ts'
import { openCrashWorld, type CrashFindings, type CrashWorld } from './crash-world.ts'

/** Places outside of the daemon: at a random ack, and when the service has taken a batch but not answered. */
export const outsidePlaces = ['random', 'committed-before-answer'] as const

export type Place = Point | (typeof outsidePlaces)[number]

export const places: readonly Place[] = [...points, ...outsidePlaces]

export type Death = { place: Place; after: number; powerCut: boolean }

export type CrashOptions = {
  seed: number
  kills: number
  /** Kills after which the files are truncated to their synced size; the recorder must work here. */
  powerCuts: number
  /** A mistake of every daemon except the last. */
  mistake?: Mistake
  /** The point of all kills. */
  place?: Place
  /**
   * The service answers 500 to every request until the last daemon: all acknowledged data is only in the
   * spool.
   */
  serviceDown?: boolean
  progress?: (line: string) => void
}

export type CrashReport = CrashFindings & {
  seed: number
  kills: number
  powerCuts: number
  /** Bytes lost in the power cuts. */
  bytesCut: number
  killsByPlace: Record<string, number>
  /** Places that a daemon did not reach in time; it was killed from outside. */
  missed: Record<string, number>
  tookMs: number
}

/** The highest n: the daemon is killed when it reaches the point for the n-th time. */
const afterMost: Record<Place, number> = {
  'during-write': 12,
  'after-write-before-ack': 12,
  'before-seal': 10,
  'after-seal-before-send': 10,
  'after-answer': 10,
  'before-settle': 10,
  'after-settle': 10,
  'during-compaction': 3,
  'during-recovery': 12,
  random: 300,
  'committed-before-answer': 8,
}

/** Messages at once; the delivery of one burst triggers a compaction. */
const burstMessages = 450
const trickleMessages = 100
const roundBoundMs = 20_000

/** Whether power cuts can be made here; else why not. */
export async function whyNoPowerCuts(): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-power-'))
  try {
    const setup = await preparePower(folder)
    return setup.kind === 'ready' ? null : setup.why
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export function planDeaths(random: Random, options: CrashOptions): Death[] {
  const deaths: Death[] = []
  let round: Place[] = []
  const total = options.kills + options.powerCuts
  while (deaths.length < total) {
    // Uses each place once before any repeats, in a new random order each time.
    if (round.length === 0) round = options.place === undefined ? [...places] : [options.place]
    const place = round.splice(random.below(round.length), 1)[0]!
    deaths.push({ place, after: 1 + random.below(afterMost[place]), powerCut: false })
  }
  for (let cut = 0; cut < options.powerCuts; cut += 1) {
    const death = random.pick(deaths.filter(({ powerCut }) => !powerCut))
    death.powerCut = true
  }
  return deaths
}

export async function runCrashes(options: CrashOptions): Promise<CrashReport> {
  const startedAtMs = performance.now()
  const random = createRandom(options.seed)
  const powerFolder = await mkdtemp(join(tmpdir(), 'gateway-power-'))
  try {
    const power = options.powerCuts > 0 ? await powerIn(powerFolder) : null
    await using world = await openCrashWorld({ random, ...(power === null ? {} : { env: power.env }) })
    const killsByPlace: Record<string, number> = {}
    const missed: Record<string, number> = {}
    let bytesCut = 0
    if (options.serviceDown === true) world.setDown(true)
    for (const [index, death] of planDeaths(random, options).entries()) {
      const outcome = await liveAndDie(world, death, options)
      const tally = outcome === 'died' ? killsByPlace : missed
      tally[death.place] = (tally[death.place] ?? 0) + 1
      if (death.powerCut && power !== null) bytesCut += await power.cut(world.spoolPath)
      const { published, acked } = world.fleet
      const place = `${death.place} ${death.after}${death.powerCut ? ', power cut' : ''}`
      options.progress?.(`${index + 1}: ${place}: ${outcome}; ${published} published, ${acked} acked`)
    }
    world.setDown(false)
    const findings = await world.finish()
    return {
      seed: options.seed,
      kills: options.kills,
      powerCuts: options.powerCuts,
      bytesCut,
      killsByPlace,
      missed,
      ...findings,
      tookMs: Math.round(performance.now() - startedAtMs),
    }
  } finally {
    await rm(powerFolder, { recursive: true, force: true })
  }
}

async function powerIn(folder: string): Promise<Power> {
  const setup = await preparePower(folder)
  if (setup.kind === 'unavailable') throw new Error(setup.why)
  return setup.power
}

/** One daemon, from its start to its kill; `missed` if it was killed without having reached the place. */
async function liveAndDie(
  world: CrashWorld,
  { place, after }: Death,
  { mistake }: CrashOptions,
): Promise<'died' | 'missed'> {
  const point = points.find((point) => point === place)
  await using daemon = world.start({
    mistake: mistake ?? null,
    kill: point === undefined ? null : { point, after },
  })
  if (place === 'random') killAtAck(world, daemon, after)
  if (place === 'committed-before-answer') killWhenAccepted(world, daemon, after)
  const bound = setTimeout(() => void daemon.kill(), roundBoundMs)
  let reached = true
  void daemon.ended.then(() => clearTimeout(bound))
  try {
    const ready = await daemon.ready
    if (ready === null) return await deathOf(daemon)
    const startedAtMs = performance.now()
    const served = world.serve(daemon)
    await publishUntilDead(world, daemon, place === 'during-compaction')
    await served
    reached = performance.now() - startedAtMs < roundBoundMs
    await deathOf(daemon)
    return reached ? 'died' : 'missed'
  } finally {
    world.fleet.onAck = null
    world.service.onAccepted(null)
  }
}

/** Throws where the daemon ended otherwise than by signal 9: that is a fault of its own. */
async function deathOf(daemon: Daemon): Promise<'died'> {
  const end = await daemon.ended
  if (end !== 'SIGKILL') throw new Error(`the daemon ended by itself (${end}):\n${daemon.log()}`)
  return 'died'
}

function killAtAck({ fleet }: CrashWorld, daemon: Daemon, after: number): void {
  let left = after
  fleet.onAck = () => {
    left -= 1
    if (left === 0) void daemon.kill()
  }
}

function killWhenAccepted({ service }: CrashWorld, daemon: Daemon, after: number): void {
  let left = after
  service.onAccepted(() => {
    left -= 1
    // The signal is sent before this turn of the event loop ends; the answer is sent in a later one.
    if (left === 0) process.kill(daemon.pid, 'SIGKILL')
  })
}

async function publishUntilDead(world: CrashWorld, daemon: Daemon, drainBetween: boolean): Promise<void> {
  const { fleet } = world
  fleet.grant(burstMessages)
  while (daemon.running) {
    await Promise.race([fleet.quiet(), daemon.ended])
    if (drainBetween) await drained(daemon)
    if (daemon.running) fleet.grant(drainBetween ? burstMessages : trickleMessages)
  }
}

async function drained(daemon: Daemon): Promise<void> {
  const empty = statusUntil(daemon, (status) => openPayloads(status) === 0, {
    what: 'an empty spool between two bursts',
    boundMs: roundBoundMs,
  })
  // The daemon is about to be killed; then there is no answer.
  await Promise.race([empty.then(() => undefined).catch(() => undefined), daemon.ended])
}
