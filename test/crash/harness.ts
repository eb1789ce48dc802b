// harness.ts: a crash run. It starts one daemon after the other on the same spool, kills each with signal 9 at a random
// moment, and can truncate its files to their synced size. Devices and service continue. At the end a last daemon runs
// without a kill, and all rules are checked. Moments within the daemon are those of test/simulation; here are a real
// process, a real database and a real disk.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pauseMs } from 'node:timers/promises'
import { createRandom, type Random } from '../support/random.ts'
import { openPayloads, statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { preparePower, type Power } from './power-cut.ts'
import { openCrashWorld, type CrashFindings, type CrashWorld } from './crash-world.ts'

/**
 * When the daemon is killed. Each has the highest count, of what it counts, after which that happens:
 *
 *   start    milliseconds after the process was started: while the spool is opened and recovered
 *   ack      acknowledgements that devices got
 *   answer   batches that the service has taken, the last one without an answer
 *   drained  milliseconds after a burst was delivered: while the database compacts what it held
 */
const afterMost = { start: 1500, ack: 300, answer: 8, drained: 400 } as const

export type Moment = keyof typeof afterMost

export const moments = Object.keys(afterMost) as readonly Moment[]

export type Death = { moment: Moment; after: number; powerCut: boolean }

export type CrashOptions = {
  seed: number
  kills: number
  /** Kills after which the files are truncated to their synced size; the recorder must work here. */
  powerCuts: number
  /** Of all kills. */
  moment?: Moment
  /** No daemon but the last forces its writes to the disk. */
  withoutSync?: boolean
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
  tookMs: number
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

function planDeaths(random: Random, { kills, powerCuts, moment }: CrashOptions): Death[] {
  // All moments in turn; the power cuts are the first ones.
  return Array.from({ length: kills + powerCuts }, (_, index) => {
    const chosen = moment ?? moments[index % moments.length]!
    return { moment: chosen, after: 1 + random.below(afterMost[chosen]), powerCut: index < powerCuts }
  })
}

export async function runCrashes(options: CrashOptions): Promise<CrashReport> {
  const { seed, kills, powerCuts, progress } = options
  const startedAtMs = performance.now()
  const random = createRandom(seed)
  const powerFolder = await mkdtemp(join(tmpdir(), 'gateway-power-'))
  try {
    const power = powerCuts > 0 ? await powerIn(powerFolder) : null
    await using world = await openCrashWorld({ random, ...(power === null ? {} : { env: power.env }) })
    let bytesCut = 0
    world.setDown(options.serviceDown === true)
    for (const [index, death] of planDeaths(random, options).entries()) {
      await liveAndDie(world, death, options)
      if (death.powerCut && power !== null) bytesCut += await power.cut(world.spoolPath)
      const { published, acked } = world.fleet
      const what = `${death.moment} ${death.after}${death.powerCut ? ', power cut' : ''}`
      progress?.(`${index + 1}: ${what}; ${published} published, ${acked} acked`)
    }
    world.setDown(false)
    const findings = await world.finish()
    return {
      seed,
      kills,
      powerCuts,
      bytesCut,
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

/** One daemon, from its start to its kill. Throws where it ends otherwise: that is a fault of its own. */
async function liveAndDie(world: CrashWorld, { moment, after }: Death, options: CrashOptions): Promise<void> {
  const { fleet, service } = world
  await using daemon = world.start({ withoutSync: options.withoutSync === true })
  let left = after
  const countDown = () => {
    left -= 1
    // The signal is sent before this turn of the event loop ends; an answer of the service is sent in a later one.
    if (left === 0) process.kill(daemon.pid, 'SIGKILL')
  }
  if (moment === 'ack') fleet.onAck = countDown
  if (moment === 'answer') service.onAccepted(countDown)
  const killing = moment === 'start' ? pauseMs(after).then(() => daemon.kill()) : null
  // Where fewer acknowledgements and batches come than are counted.
  const bound = setTimeout(() => void daemon.kill(), roundBoundMs)
  try {
    const served = world.serve(daemon)
    fleet.grant(burstMessages)
    if (moment === 'drained') {
      await Promise.race([fleet.quiet(), daemon.ended])
      await drained(daemon)
      await pauseMs(after)
      await daemon.kill()
    }
    while (daemon.running) {
      await Promise.race([fleet.quiet(), daemon.ended])
      if (daemon.running) fleet.grant(trickleMessages)
    }
    await Promise.all([served, killing])
    const end = await daemon.ended
    if (end !== 'SIGKILL') throw new Error(`the daemon ended by itself (${end}):\n${daemon.log()}`)
  } finally {
    clearTimeout(bound)
    fleet.onAck = null
    service.onAccepted(null)
  }
}

async function drained(daemon: Daemon): Promise<void> {
  const bound = { what: 'an empty spool after a burst', boundMs: roundBoundMs }
  const empty = statusUntil(daemon, (status) => openPayloads(status) === 0, bound)
  // A daemon that is killed by the bound, or whose service is away, has no empty spool.
  await Promise.race([empty.catch(() => undefined), daemon.ended])
}
