// daemon.ts: the daemon on the simulated machine: what `run` does (src/cli/run-command.ts), and systemd above it,
// which starts it again.

import { createRequire } from 'node:module'
import { Writable } from 'node:stream'
import type { Gateway } from '../../src/app/app.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { LoadedConfig } from '../../src/config/config.ts'
import type { SpoolOptions } from '../../src/spool/spool.ts'
import type { CheckReport } from '../../src/storage/storage.ts'
import { createRandom } from '../support/random.ts'
import { switchOn, type Machine } from './machine/machine.ts'

export type Daemon = {
  readonly gateway: Gateway | null
  /** `spool init`: an empty spool, made on purpose. */
  initSpool(): void
  /** Starts a process, if none runs. */
  start(): void
  /** SIGTERM. Resolves when the process has ended; false where something else ended it. */
  stop(): Promise<boolean>
  readonly isRunning: boolean
  /** It ends its work, and looks at no condition any more. */
  readonly isStopping: boolean
  /** It takes messages. */
  readonly isReady: boolean
  /** Why processes ended by themselves. */
  ends: string[]
  counters: { starts: number; stops: number }
}

type Deps = {
  machine: Machine
  env: NodeJS.ProcessEnv
  spoolBounds: Partial<SpoolOptions>
  log: (line: string) => void
  observe: (event: GatewayEvent) => void
  /** Whether a process may end so by itself. */
  isExcused: (why: string) => boolean
}

export const configPath = '/sim/etc/gateway.yaml'
/** systemd-timesyncd makes it. */
export const synchronizedPath = '/sim/run/synchronized'
export const spoolPath = '/sim/spool'
const checkMs = 5
/** RestartSec of the unit. */
const restartMs = 2000

// Modules ask for the time and the name of the machine while they are loaded.
switchOn(0, createRandom(0))

const { startGateway, systemKernelClock } = await import('../../src/app/app.ts')
const { loadConfig } = await import('../../src/config/config.ts')
const { newRandomId } = await import('../../src/domain/ids.ts')
const { systemClock } = await import('../../src/std/clock.ts')
const { openLevelStore, realDisk } = await import('../../src/storage/storage.ts')
const { initSpool } = await import('../../src/spool/spool.ts')
// What the daemon loads later, so that no load waits for the real disk.
for (const name of ['fastify', '@aws-sdk/credential-provider-node', 'undici']) await import(name)
await import('../../src/ingest/amqp/amqp.ts')

const undiciTimers = createRequire(import.meta.url)('undici/lib/util/timers.js') as { reset(): void }

/** Of the daemon that runs now. */
let crashed: (error: unknown) => void = () => undefined
// As a process: what nobody handles ends it, whatever it did.
process.on('uncaughtException', (error) => crashed(error))
process.on('unhandledRejection', (error) => crashed(error))

export function createDaemon({ machine, env, spoolBounds, log, observe, isExcused }: Deps): Daemon {
  const { kernel } = machine
  let gateway: Gateway | null = null
  let running: number | null = null
  let stoppingLife: number | null = null
  let known: { text: string; loaded: LoadedConfig } | null = null
  const ends: string[] = []
  const counters = { starts: 0, stops: 0 }
  kernel.uncaught = (error) => crashed(error)
  crashed = (error) => {
    if (isAlive()) ended(`uncaught: ${String(error instanceof Error ? error.stack : error)}`)
  }
  return {
    get gateway() {
      return isAlive() ? gateway : null
    },
    get isRunning() {
      return isAlive()
    },
    get isStopping() {
      return isAlive() && stoppingLife === kernel.life
    },
    get isReady() {
      return isAlive() && gateway?.status().ready === true
    },
    initSpool: () => void initSpool(spoolPath, kernel.wallMs),
    start,
    stop,
    ends,
    counters,
  }

  function isAlive(): boolean {
    return running === kernel.life
  }

  function start(): void {
    if (isAlive()) return
    running = kernel.life
    // The only state in modules that outlives a process here: a list with timers of the former one.
    undiciTimers.reset()
    gateway = null
    counters.starts += 1
    const life = kernel.life
    void run(life).catch((error: unknown) => {
      if (life !== kernel.life) return
      ended(String(error instanceof Error ? error.stack : error))
    })
  }

  async function run(life: number): Promise<void> {
    const { config, files, secretFiles } = await readConfig()
    if (life !== kernel.life) return
    const started = await startGateway(
      {
        clock: systemClock,
        kernel: systemKernelClock({
          folders: [],
          markerPath: synchronizedPath,
          commandMs: 3000,
          bootId: machine.bootId,
        }),
        random: Math.random,
        newId: newRandomId,
        env,
        stdout: new Writable({
          decodeStrings: false,
          write(line: string, _encoding, done) {
            if (life === kernel.life) log(line)
            done()
          },
        }),
        version: '0.0.0-simulation',
        openStore: openLevelStore,
        checkStore,
        disk: realDisk,
        configFiles: files,
        spoolBounds,
        secretFiles,
        observe: (event) => {
          if (life === kernel.life) observe(event)
        },
        endAtOnce: () => {
          machine.kill()
          ended('it ended itself at the deadline of its stop')
        },
      },
      config,
      configPath,
    )
    if (life !== kernel.life) return
    gateway = started
    const fault = await started.broken
    await started.stop(`${fault.code}: ${fault.why}`)
    ended(`${fault.code}: ${fault.why}`)
  }

  /** Of the same text the second time. */
  async function readConfig(): Promise<LoadedConfig> {
    const text = machine.disk.world.read(configPath).toString()
    if (known?.text !== text) known = { text, loaded: await loadConfig(configPath, { env }) }
    return known.loaded
  }

  /** The files of a database are whole here: what is damaged in real ones, other tests show. */
  async function checkStore({ path }: { path: string }): Promise<CheckReport> {
    await new Promise<void>((resolve) => {
      kernel.schedule(checkMs, resolve)
    })
    const kind = machine.disk.exists(`${path}/CURRENT`) ? 'ok' : 'empty'
    return { kind, damage: [], mendedLogs: [], verified: [], lastSequence: 0, tookMs: checkMs }
  }

  function ended(why: string): void {
    if (!isExcused(why)) ends.push(why)
    // As the end of a process: whatever it left is gone.
    machine.kill()
    running = null
    kernel.at(restartMs, start)
  }

  async function stop(): Promise<boolean> {
    const { life } = kernel
    const stopping = isAlive() ? gateway : null
    if (stopping === null) return false
    counters.stops += 1
    stoppingLife = life
    await stopping.stop('SIGTERM')
    if (life !== kernel.life) return false
    machine.kill()
    running = null
    return true
  }
}
