// config-reload.ts: a changed config, preset or device table is put in force while the daemon runs, if it is right.
//
//   SIGHUP, /control/reload, or a file moved (file-watch.ts)
//     -> read everything again, aside  -> wrong: the mapping of before goes on, MAPPING_STALE says where and why
//                                      -> right: swapped between two messages (active-mapping.ts)
//
// The sections `sources`, `devices`, `defaults`, `clocks` and `privacy` are put in force, with the presets and the device
// table. What else changed is told and left for a restart: sockets, spool and delivery are not taken apart while they
// run. Every file that was read is watched, also those of `${file:...}` and those of a config that was refused.
//
// One reload at a time; what is asked for meanwhile is done once more after it. A swap that failed because the store
// was lost is tried again.

import { isDeepStrictEqual } from 'node:util'
import { resolve } from 'node:path'
import { readFile } from 'node:fs/promises'
import type { CancelTimer, Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import { loadConfig, type Config } from '../config/config.ts'
import type { ReloadReport } from '../ops/ops.ts'
import { createFileWatch, type WatchFolder } from './file-watch.ts'

export type ConfigReload = {
  /** Watches from here on. */
  start(): Promise<void>
  reload(cause: string): Promise<ReloadReport>
  stop(): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  env: NodeJS.ProcessEnv
  swap: (config: Config) => Promise<void>
  watchFolder?: WatchFolder
}

const watchOptions = { settleMs: 200, pollMs: 30_000 }
const retryMs = 5000
/** Sections that are not put in force while the daemon runs. Of their secrets no change is seen: they show nothing. */
const fixedSections = ['ingest', 'spool', 'delivery', 'ops', 'log'] as const

export function createConfigReload(
  { clock, emit, env, swap, watchFolder }: Deps,
  { path, running }: { path: string; running: Config },
): ConfigReload {
  const changed = () => void reload('a file changed')
  const watch = createFileWatch({ clock, changed, ...(watchFolder ? { watchFolder } : {}) }, watchOptions)
  /** Every file that was ever read for the config. */
  const files = new Set([resolve(path), ...filesOf(running)])
  let last: Promise<unknown> = Promise.resolve()
  let waiting: Promise<ReloadReport> | null = null
  let told: readonly string[] = []
  let cancelRetry: CancelTimer = () => {}
  let stopped = false
  return { start, reload, stop }

  async function start(): Promise<void> {
    await watch.watch([...files])
    // The presets and other files are learned by reading; what is wrong now was right a moment ago and moves again.
    await read().catch((error: unknown) => {
      if (!(error instanceof GatewayError)) throw error
    })
  }

  function reload(cause: string): Promise<ReloadReport> {
    waiting ??= inTurn(cause)
    return waiting
  }

  async function inTurn(cause: string): Promise<ReloadReport> {
    const before = last
    const turn = (async () => {
      await before
      // What is asked for from here on may have changed after we read.
      waiting = null
      return once(cause)
    })()
    last = turn.catch(() => undefined)
    return turn
  }

  async function once(cause: string): Promise<ReloadReport> {
    cancelRetry()
    if (stopped) return { kind: 'refused', fault: stoppingFault() }
    const startedAtMs = clock.monotonic()
    try {
      await watch.watch([...files])
      const config = await read()
      await swap(config)
      const tookMs = clock.monotonic() - startedAtMs
      emit({ kind: 'mapping_reloaded', cause, sources: config.sources.length, tookMs })
      const restartNeeded = tellOfOthers(config)
      return { kind: 'reloaded', sources: config.sources.length, tookMs, restartNeeded }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      emit({ kind: 'mapping_refused', cause, fault: error })
      if (isPassing(error) && !stopped)
        cancelRetry = clock.after(retryMs, () => void reload('the store is open again'))
      return { kind: 'refused', fault: error }
    }
  }

  async function read(): Promise<Config> {
    const readBefore = new Set(files)
    const recorded = (file: string) => {
      files.add(resolve(file))
      return readFile(file, 'utf8')
    }
    try {
      const { config } = await loadConfig(path, { env, readFile: recorded })
      for (const file of filesOf(config)) files.add(file)
      return config
    } finally {
      await watch.watch([...files].filter((file) => !readBefore.has(file)))
    }
  }

  function tellOfOthers(config: Config): readonly string[] {
    const sections = fixedSections.filter((name) => !isDeepStrictEqual(config[name], running[name]))
    if (!isDeepStrictEqual(sections, told)) emit({ kind: 'restart_needed', sections })
    told = sections
    return sections
  }

  async function stop(): Promise<void> {
    stopped = true
    watch.close()
    cancelRetry()
    await last
  }
}

/** The device table is read by the mapping, not with the config. */
function filesOf({ devices }: Config): string[] {
  return devices.file === undefined ? [] : [devices.file]
}

function stoppingFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'Nothing is put in force any more.',
    why: 'The daemon is stopping.',
    act: 'What the files say is read at the next start.',
  })
}

/** It is nothing that a person must mend in a file. */
function isPassing({ code }: GatewayError): boolean {
  return code === 'SPOOL_CLOSED' || code === 'SPOOL_WRITE_FAILED'
}
