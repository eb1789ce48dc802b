// config-reload.ts: puts a changed config, preset or device table in force while the daemon runs, if it is
// valid.
//
//   SIGHUP, /control/reload, or a changed file (file-watch.ts)
//     -> read everything again -> invalid: the previous mapping stays in force, MAPPING_STALE says where and
//     why
//                              -> valid: swapped between two messages (active-mapping.ts), and then the rest
//
// What is in force then, and what waits for a restart: config-in-force.ts. What waits is named option by
// option (RESTART_NEEDED), and all else is in force. Where secrets or certificates cannot be used, the former
// ones stay in force (ACCESS_STALE).
//
// Everything that can fail for the mapping is built before anything is put in force: a reload that is refused
// changes nothing. Nothing in memory is lost by a reload: a stage takes new options between two decisions,
// and keeps its queues, sessions, waits and sealed batches.
//
// Where bridges changed, and no new source takes what a bridge that runs still delivers, its messages would
// become dead letters: the new mapping is refused (RESTART_REQUIRED) until the restart, which applies both.
// Every file that was read is watched, also those of `${file:...}` and those of a config that was refused.
//
// One reload at a time; requests during a reload are answered by one more reload after it, those during the
// start when it is over: before, the intake has no mapping that could be swapped. A swap that failed because
// the store was lost, or a disk that did not answer, is tried again.

import { resolve } from 'node:path'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import { createBoundedUtf8Reader } from '../../std/file-system/utf8-text.ts'
import { codeOf, GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import {
  certificateWarnings,
  loadConfig,
  type CertificateSections,
  type Config,
} from '../../config/config.ts'
import { untakenTopics } from '../../mapping/mapping.ts'
import type { ReloadReport } from '../../ops/ops.ts'
import { createFileWatch, type WatchFolder } from '../../std/file-watch/file-watch.ts'
import {
  areSameBridges,
  configInForce,
  differingOptions,
  isSameBroker,
  isSameOps,
  isSameService,
} from './config-in-force.ts'

export type ConfigReload = StateSource & {
  /** Watches the files from here on. */
  start(): Promise<void>
  /** `isConfirmed`: also where it ends the connections of most clients. */
  reload(cause: string, confirmed?: { isConfirmed: boolean }): Promise<ReloadReport>
  /** What is in force; the stages of a spool that is opened again begin with it. */
  inForce(): Config
  stop(): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  env: NodeJS.ProcessEnv
  /** Reads what the mapping needs; what it returns puts it in force. */
  nextMapping: (config: Config) => Promise<() => Promise<void>>
  /** Puts users, tokens and certificates of the broker in force. */
  renew: (config: Config, confirmed: { isConfirmed: boolean }) => Promise<void>
  /** The same for ops. */
  renewOps: (config: Config['ops']) => void
  /** Certificates, keys and options of delivery. */
  renewDelivery: (config: Config) => void
  /** Puts what cannot fail in force: receivers of alerts, the log, options of the stages. */
  renewOptions: (config: Config) => void
  /** The certificates of these sections are in force. */
  renewed: (sections: Partial<CertificateSections>) => void
  watchFolder?: WatchFolder
}

type Part = keyof CertificateSections

const watchOptions = { settleMs: 200, pollMs: 30_000 }
const retryMs = 5000
const shownMax = 3

export function createConfigReload(
  { clock, emit, env, nextMapping, renew, renewOps, renewDelivery, renewOptions, renewed, watchFolder }: Deps,
  { path, running, read: readBefore }: { path: string; running: Config; read: readonly string[] },
): ConfigReload {
  const changed = () => void reload('a file changed')
  const watch = createFileWatch({ clock, changed, ...(watchFolder ? { watchFolder } : {}) }, watchOptions)
  /** Every file that was ever read for the config. */
  const files = new Set([...readBefore, ...filesOf(running)])
  const readText = createBoundedUtf8Reader()
  const begun = Promise.withResolvers<void>()
  let last: Promise<unknown> = begun.promise
  let waiting: Promise<ReloadReport> | null = null
  /** A person confirmed what the next reload withdraws. */
  let isConfirmedNext = false
  let present = running
  /** The same, with secrets and certificates that could be used. */
  let usable = running
  /** Why the last reload was refused; null where it was not. */
  let refusal: GatewayError | null = null
  let restartNeeded: readonly string[] = []
  let cancelRetry: CancelTimer = () => {}
  /** Of each part whose files could not be used when they were last read. */
  const accessFaults = new Map<Part, GatewayError>()
  let stopped = false
  return { start, reload, inForce: () => usable, states, stop }

  async function start(): Promise<void> {
    await watch.watch([...files])
    begun.resolve()
  }

  function reload(cause: string, { isConfirmed } = { isConfirmed: false }): Promise<ReloadReport> {
    isConfirmedNext ||= isConfirmed
    waiting ??= inTurn(cause)
    return waiting
  }

  async function inTurn(cause: string): Promise<ReloadReport> {
    const before = last
    const turn = (async () => {
      await before
      // A file that changes from here on may have been read already, so a later request needs a reload of its
      // own.
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
    const isConfirmed = isConfirmedNext
    isConfirmedNext = false
    try {
      await watch.watch([...files])
      const config = await read()
      refuseStranded(config)
      const swap = await nextMapping(config)
      await swap()
      const before = present
      present = configInForce(config, before)
      renewOptions(present)
      await renewAccess(config, before, isConfirmed)
      const tookMs = clock.monotonic() - startedAtMs
      emit({ kind: 'mapping_reloaded', cause, sources: config.sources.length, tookMs })
      refusal = null
      restartNeeded = differingOptions(config, present)
      const warnings = [
        ...[...accessFaults.values()].map(({ what, why, act }) => `${what} ${why} ${act}`),
        ...certificateWarnings(config, clock.now()).map(({ what, act }) => `${what} ${act}`),
      ]
      return { kind: 'reloaded', sources: config.sources.length, tookMs, restartNeeded, warnings }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      refusal = error
      if (isTransient(error) && !stopped)
        cancelRetry = clock.after(retryMs, () => void reload('it failed before'))
      return { kind: 'refused', fault: error }
    }
  }

  /** The bridges of the start deliver until the restart. */
  function refuseStranded(config: Config): void {
    if (areSameBridges(config, present)) return
    const { bridges } = present.ingest
    const before = untakenTopics(present.sources, bridges)
    const stranded = untakenTopics(config.sources, bridges).filter((topic) => !before.includes(topic))
    if (stranded.length > 0) throw restartRequired(stranded)
  }

  /** A problem there does not keep a new mapping from being put in force. */
  async function renewAccess(config: Config, before: Config, isConfirmed: boolean): Promise<void> {
    const attempt = async (sections: Partial<CertificateSections>, renewal: () => Promise<void> | void) => {
      const [part] = Object.keys(sections) as [Part]
      try {
        await renewal()
        renewed(sections)
        accessFaults.delete(part)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        accessFaults.set(part, error)
      }
    }
    const { ingest, ops, delivery } = config
    if (isSameBroker(config, before)) await attempt({ ingest }, () => renew(config, { isConfirmed }))
    if (isSameOps(config, before)) await attempt({ ops }, () => renewOps(ops))
    if (isSameService(config, before)) await attempt({ delivery }, () => renewDelivery(config))
    const keptOf = <Name extends Part>(name: Name) => (accessFaults.has(name) ? usable : present)[name]
    usable = { ...present, ingest: keptOf('ingest'), ops: keptOf('ops'), delivery: keptOf('delivery') }
  }

  async function read(): Promise<Config> {
    const watched = new Set(files)
    const recorded = (file: string) => {
      files.add(resolve(file))
      return readText(file)
    }
    try {
      const { config } = await loadConfig(path, { env, readFile: recorded })
      for (const file of filesOf(config)) files.add(file)
      return config
    } finally {
      await watch.watch([...files].filter((file) => !watched.has(file)))
    }
  }

  function* states(): Generator<State> {
    if (refusal !== null) yield { code: 'MAPPING_STALE', fault: refusal }
    for (const fault of accessFaults.values()) yield { code: 'ACCESS_STALE', fault }
    if (restartNeeded.length > 0) yield { code: 'RESTART_NEEDED', options: restartNeeded }
  }

  async function stop(): Promise<void> {
    stopped = true
    begun.resolve()
    watch.close()
    cancelRetry()
    await last
  }
}

/** The device table is read by the mapping, password files by the broker: not with the config. */
function filesOf({ devices, ingest: { broker } }: Config): string[] {
  const rules = [broker.access, ...broker.listeners.map(({ access }) => access)]
  return [devices.file, ...rules.map((one) => one?.password_file)].filter((file) => file !== undefined)
}

function restartRequired(topics: readonly string[]): GatewayError {
  const shown = topics.slice(0, shownMax).map((topic) => quote(topic, 120))
  const more = topics.length > shownMax ? ` and ${topics.length - shownMax} more` : ''
  return new GatewayError('RESTART_REQUIRED', {
    what: 'The config changed in bridges and in sources that belong together.',
    why:
      `Bridges change at a restart only. Until then the one that runs delivers what no new source takes ` +
      `(${shown.join(', ')}${more}): the messages would become dead letters.`,
    act: 'Restart the gateway: it applies bridges and sources together.',
  })
}

function stoppingFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The config is not reloaded.',
    why: 'The daemon is stopping.',
    act: 'The files are read at the next start.',
  })
}

/** A fault that no change of a file can cure. */
function isTransient({ code, cause }: GatewayError): boolean {
  if (code === 'SPOOL_CLOSED' || code === 'SPOOL_WRITE_FAILED') return true
  return /^(EIO|ESTALE|ETIMEDOUT|EMFILE|ENFILE|ENOMEM)$/.test(codeOf(cause) ?? '')
}
