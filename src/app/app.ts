// app.ts: the composition root: builds everything, starts it in order, stops it in order.
//
// Start: each step may fail with a code, and nothing later has started then.
//
//   mapping   compiled, with the device table; a problem in either stops the start
//   ops       answers at once, not ready: it is needed most when the disk is full or damaged
//   spool     checks the files, opens the store and recovers, without loss (refused-spool.ts)
//   stages    delivery, ledger, ingest (stages.ts)
//   ready     /readyz, READY=1
//
// A spool that cannot be opened is refused: the daemon stays up without listeners, and opens the spool and
// the stages when it can. That also follows where files turn out to be damaged while it runs:
//
//   opening -> running -> (the store is lost, its files are damaged) -> stages closed -> opening
//      '-> refused -> (the files changed, or a retry) -> opening
//
// Stop: not ready -> the stages close within one deadline -> ops. A second signal ends the process at once
// (main.ts), and so does a stop that passes its deadline. That is safe: what was acknowledged is on the disk,
// the rest is sent again by its device, and a sealed batch is sent again with its batchId.

import type { Writable } from 'node:stream'
import { assert } from '../std/assert.ts'
import { createAlerts, type Alerts } from '../alerts/alerts.ts'
import { whenAborted, type Clock, type CancelTimer } from '../std/clock.ts'
import { fileSystemWarnings } from '../std/file-system/file-system.ts'
import { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId } from '../domain/ids.ts'
import { configWarnings, openFilesWarnings, secretFileWarnings, type Config } from '../config/config.ts'
import { deliveryOptions } from '../delivery/config.ts'
import type { SenderWorker } from '../delivery/delivery.ts'
import { createLostFields, doubtfulWords, type LostFields } from '../mapping/mapping.ts'
import type { MoreSources, Taps } from '../ingest/ingest.ts'
import { createOps, type Ops, type ReloadReport } from '../ops/ops.ts'
import type { SpoolOptions, StoreMemory } from '../spool/spool.ts'
import {
  makePrivate,
  type CheckStore,
  type Disk,
  type OpenStore,
  type ReadTables,
} from '../storage/storage.ts'
import { mappingOf } from './active-mapping.ts'
import { createBackfillRule, type BackfillRule } from './backfill-rule.ts'
import type { StartHeapWork } from './heap-work.ts'
import type { KernelClock } from './kernel-clock.ts'
import { lastWriteIn } from './last-run.ts'
import { createOurTime, type GatewayTime } from './our-time.ts'
import { isSpoolFault, openSpoolOf, openSpoolOrWait } from './refused-spool.ts'
import { alertsOptions, openStages, type Stages, type StagesConfig } from './stages.ts'

export { startHeapWork } from './heap-work.ts'
export { realPlaces, systemKernelClock } from './kernel-clock.ts'

export type GatewayDeps = {
  clock: Clock
  kernel: KernelClock
  random: () => number
  newId: NewId
  env: NodeJS.ProcessEnv
  /** The log is written here. */
  stdout: Writable
  version: string
  openStore: OpenStore
  /** Checks the files of a database before it is opened. Without it nothing is checked. */
  checkStore?: CheckStore
  /** Reads tables of the open spool in the background. Without it none is read. */
  readTables?: ReadTables
  disk: Disk
  /** Works on the heap of the process while the spool is open. Without it nothing does. */
  startHeapWork?: StartHeapWork
  /** Receives every event after ops; for tests and the trial. */
  observe?: Emit
  /** Message sources beside those of the config; for tests. */
  moreSources?: MoreSources
  /** The thread that sends, shared by several gateways of one process; for tests. The creator closes it. */
  senderWorker?: SenderWorker
  /** Those that were read for the config. They are watched. */
  configFiles: readonly string[]
  /** In place of the bounds of the spool that no option sets; for tests. */
  spoolBounds?: Partial<SpoolOptions>
  /** Files with secrets of the config: a warning where other users can read one. */
  secretFiles?: readonly string[]
  /** Ends a start that takes long. The gateway is then returned, and is stopped as usual. */
  stop?: AbortSignal
  /** Ends the process, whatever its threads do. Called where a stop passes its deadline. */
  endAtOnce?: () => void
}

export type Gateway = {
  /**
   * MQTT URLs, the base URL of ops, and `unix:` with the path of the control socket; with the ports that the
   * system chose where the config has 0.
   */
  readonly addresses: { mqtt: readonly string[]; ops: string; control: string }
  /** Resolves with the reason when the gateway cannot continue and the process should be restarted. */
  readonly broken: Promise<GatewayError>
  /** Tries now what waits for a back-off or a slow probe. */
  probe(): void
  /** Reads config, presets and device table again, and puts them in force if they are valid. */
  reload(cause: string, confirmed?: { isConfirmed: boolean }): Promise<ReloadReport>
  status(): ReturnType<Ops['status']>
  /** Shows messages as they arrive. Null while the spool is not open. */
  readonly taps: Taps | null
  /** Stops everything within the deadline of the config; does not reject. */
  stop(reason: string): Promise<void>
}

type Deps = GatewayDeps & {
  emit: Emit
  ops: Ops
  ourTime: GatewayTime
  lostFields: LostFields
  alerts: Alerts
  backfillRule: BackfillRule
  bound: StopBound
}

/** Resolves when devices can publish, or when the spool is refused. */
export async function startGateway(
  gatewayDeps: GatewayDeps,
  config: Config,
  configPath: string,
): Promise<Gateway> {
  const { clock, version, env, stdout, observe } = gatewayDeps
  const ops = createOps(
    { clock, version, stdout, env, ...(observe && { observe }) },
    { ops: config.ops, log: config.log, spoolPath: config.spool.path },
  )
  const { emit } = ops
  const bound = createStopBound({ ...gatewayDeps, emit }, config.ops.stop_deadline)
  gatewayDeps.stop?.addEventListener('abort', bound.begin, { once: true })
  const ourTime = createOurTime(
    { clock, emit, kernel: gatewayDeps.kernel },
    { trustLocal: config.clocks.trust_local },
  )
  const alerts = createAlerts(
    { ...gatewayDeps, emit, situation: ops.situation, clockOffsetMs: ourTime.wallOffsetMs },
    alertsOptions(config),
    config.spool.path,
  )
  ops.attach({ alerts: alerts.stage })
  try {
    emit({ kind: 'gateway_starting', version, pid: process.pid, config: configPath })
    const warnings = [
      ...configWarnings(config),
      ...doubtfulWords(config, config.devices.file === undefined ? new Map() : null),
      ...(await fileSystemWarnings(config.spool.path)),
      ...openFilesWarnings(config),
      ...(await secretFileWarnings(gatewayDeps.secretFiles ?? [], env)),
    ]
    for (const { what, act } of warnings) emit({ kind: 'config_warning', what, advice: act })
    const lostFields = createLostFields()
    const mapping = await mappingOf(config, { clockOffsetMs: ourTime.offsetMs, emit, lostFields })
    ops.attach({ ourTime })
    ourTime.start()
    await makeSpoolPrivate(config.spool.path, emit)
    await ops.start()
    await alerts.start()
    const ruleDeps = { clock, offsetMs: ourTime.wallOffsetMs }
    const backfillRule = createBackfillRule(ruleDeps, deliveryOptions(config.delivery))
    const deps = { ...gatewayDeps, emit, ops, ourTime, lostFields, alerts, backfillRule, bound }
    const gateway = gatewayOf(deps, { config, configPath, inForce: { mapping, config } })
    await gateway.begun
    return gateway
  } catch (error) {
    await alerts.stop()
    ourTime.stop()
    await ops.stop()
    throw error
  }
}

function gatewayOf(deps: Deps, start: StagesConfig): Gateway & { begun: Promise<void> } {
  const { clock, emit, ops } = deps
  const startedAtMs = clock.monotonic()
  const stopping = new AbortController()
  const signals = deps.stop === undefined ? [stopping.signal] : [stopping.signal, deps.stop]
  const signal = AbortSignal.any(signals)
  const begun = Promise.withResolvers<void>()
  const broken = Promise.withResolvers<GatewayError>()
  let { config, inForce } = start
  let stages: Stages | null = null
  let refusal: GatewayError | null = null
  let stopped: Promise<void> | null = null
  let hasBegun = false
  /** The spool was opened before by this process. */
  let hasRun = false
  const memory: StoreMemory = { known: null, markFailedAtMs: null, markFailure: null }
  void begun.promise.then(
    () => (hasBegun = true),
    () => undefined, // The caller of the start gets it.
  )
  const life = live().then(begun.resolve, ended)

  return {
    begun: begun.promise,
    get addresses() {
      return { mqtt: stages?.ingest.addresses() ?? [], ops: ops.url() ?? '', control: ops.control() ?? '' }
    },
    broken: broken.promise,
    probe: () => stages?.delivery.probe(),
    reload: async (cause, confirmed) =>
      stages?.reload.reload(cause, confirmed) ?? { kind: 'refused', fault: notOpen() },
    status: () => ops.status(),
    get taps() {
      return stages?.taps ?? null
    },
    stop(reason) {
      stopped ??= stopAll(reason)
      return stopped
    },
  }

  /** Ends when the stop begins. Rejects where the gateway cannot start or continue. */
  async function live(): Promise<void> {
    for (;;) {
      const wait = { clock, emit, open: openAll, refused }
      const opened = await openSpoolOrWait(wait, { path: config.spool.path, isStart: !hasRun }, signal)
      if (opened === null) return
      const fault = await run(opened)
      if (fault === null) return
      if (!isSpoolFault(fault)) throw fault
    }
  }

  /** The spool with the stages over it: a disk that fails while they start is like one that fails before. */
  async function openAll(): Promise<Stages> {
    // Before the opening writes there.
    const openedAt = clock.now()
    const lastWriteAt = hasRun ? null : await lastWriteIn(config.spool.path)
    const spool = await openSpoolOf({ ...deps, memory }, config, signal)
    if (signal.aborted) await spool.close()
    signal.throwIfAborted()
    const { previousEnd: end } = spool
    if (end !== 'clean' && !hasRun) {
      const downMs = lastWriteAt === null ? null : Math.max(0, openedAt - lastWriteAt)
      emit({ kind: 'gateway_ended_unclean', end, lastWriteAt, downMs })
    }
    hasRun = true
    try {
      return await openStages(deps, spool, { ...start, config, inForce })
    } catch (error) {
      ops.detach()
      throw error
    }
  }

  /** From open stages to their end. Null where that is the stop. */
  async function run(opened: Stages): Promise<GatewayError | null> {
    const wasRefused = refusal !== null
    stages = opened
    refusal = null
    await ops.ready()
    const addresses = [...stages.ingest.addresses(), ops.url(), ops.control()].filter((one) => one !== null)
    emit({ kind: 'gateway_ready', tookMs: clock.monotonic() - startedAtMs, addresses })
    begun.resolve()
    // The files may have changed while nothing watched them. Never rejects: a problem is a condition.
    if (wasRefused) void stages.reload.reload('the spool was opened')
    const fault = await Promise.race([stages.broken, whenAborted(signal)])
    if (fault === undefined) return null
    if (isSpoolFault(fault)) await closeBroken(stages, fault)
    return fault
  }

  async function closeBroken(open: Stages, fault: GatewayError): Promise<void> {
    refusal = fault
    ops.refusing(fault)
    inForce = open.activeMapping.inForce()
    config = open.reload.inForce()
    await open.close(config.ops.stop_deadline)
    stages = null
    ops.detach()
  }

  function refused(fault: GatewayError): void {
    refusal = fault
    ops.refusing(fault)
    begun.resolve()
  }

  function ended(error: unknown): void {
    if (!hasBegun) begun.reject(error)
    else if (error instanceof GatewayError) broken.resolve(error)
    // A programming error ends the process: the caller that waits for the end gets it.
    else broken.reject(error)
  }

  function notOpen(): GatewayError {
    assert(refusal !== null, 'without stages the spool is refused')
    return refusal
  }

  async function stopAll(reason: string): Promise<void> {
    const stopStartedAtMs = clock.monotonic()
    const deadlineMs = config.ops.stop_deadline
    let pending: number | null = null
    deps.bound.begin()
    try {
      emit({ kind: 'gateway_stopping', reason, deadlineMs })
      ops.stopping(reason)
      stopping.abort()
      await deps.alerts.stop()
      await life
      deps.ourTime.stop()
      if (stages !== null) pending = await stages.close(deadlineMs)
      emit({ kind: 'gateway_stopped', tookMs: clock.monotonic() - stopStartedAtMs, pending })
    } finally {
      await ops.stop()
      deps.bound.end()
    }
  }
}

/** Version 0.1.0 made files that other users can read, and so do commands with another umask. */
async function makeSpoolPrivate(path: string, emit: Emit): Promise<void> {
  const { changed, failed } = await makePrivate(path)
  if (changed + failed > 0) emit({ kind: 'spool_files_private', path, changed, failed })
}

// Ends the process where a stop passes its deadline. A thread that hangs in the disk keeps the
// stop from ending, and `process.exit` as well.

type StopBound = { begin(this: void): void; end(): void }

/** Closing takes a moment after the deadline, where nothing hangs. */
const overdueMs = 2000

function createStopBound(
  { clock, emit, endAtOnce }: { clock: Clock; emit: Emit; endAtOnce?: () => void },
  deadlineMs: number,
): StopBound {
  let cancel: CancelTimer | null = null
  return {
    begin() {
      cancel ??= clock.after(deadlineMs + overdueMs, () => {
        emit({ kind: 'gateway_stop_overdue', deadlineMs })
        endAtOnce?.()
      })
    },
    end: () => cancel?.(),
  }
}
