// app.ts: the composition root: builds everything, starts it in order, stops it in order.
//
// Start: each step may fail with a code, and nothing later has started then.
//
//   mapping   compiled, with the device table; a problem in either stops the start
//   ops       answers at once, not ready: it is needed most when the disk is full or damaged
//   spool     opens the store and recovers, without loss
//   delivery  sends the recovered batches first
//   ledger    opens its records; nothing waits for it
//   ingest    last, because a device that can connect expects acks
//   ready     /readyz, READY=1
//   then      kept messages are mapped (active-mapping.ts), files are watched (config-reload.ts)
//
// Stop: one deadline for all of it. It does not drain to empty: keeping data is what the spool is for.
//
//   not ready -> no reload -> ingest accepts nothing more -> work on kept messages ends with its slice
//   -> running submissions get most of the time, then are aborted, and their batches stay sealed
//   -> the last group is committed and acknowledged, the store is closed -> connections -> ops
//
// A second signal ends the process at once (main.ts). That is safe: what was acknowledged is on the disk, the
// rest is sent again by its device, and a sealed batch is sent again with its batchId.

import type { Writable } from 'node:stream'
import type { Clock } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId } from '../domain/ids.ts'
import type { Config } from '../config/config.ts'
import { createDelivery } from '../delivery/delivery.ts'
import { deliveryOptions } from '../delivery/config.ts'
import { createIngest, createTaps } from '../ingest/ingest.ts'
import { ingestOptions } from '../ingest/config.ts'
import { createLedger } from '../ledger/ledger.ts'
import { ledgerOptions } from '../ledger/config.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { createOps, type Ops, type ReloadReport } from '../ops/ops.ts'
import { openSpool } from '../spool/spool.ts'
import { spoolOptions } from '../spool/config.ts'
import type { Disk, OpenStore } from '../storage/storage.ts'
import { createActiveMapping, mappingOf } from './active-mapping.ts'
import { createBackfillRule } from './backfill-rule.ts'
import { createConfigReload } from './config-reload.ts'
import { startDeadLetterWork } from './dead-letter-work.ts'
import { probe } from './endpoint-probe.ts'
import type { KernelClock } from './kernel-clock.ts'
import { createOurTime, type GatewayTime } from './our-time.ts'

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
  disk: Disk
  /** Receives every event after ops; for tests and the trial. */
  observe?: Emit
}

export type Gateway = {
  /** MQTT URLs, and the base URL of ops; with the ports that the system chose where the config has 0. */
  readonly addresses: { mqtt: readonly string[]; ops: string }
  /** Resolves with the reason when the gateway cannot continue and the process should be restarted. */
  readonly broken: Promise<GatewayError>
  /** Tries now what waits for a back-off or a slow probe. */
  probe(): void
  /** Reads config, presets and device table again, and puts them in force if they are valid. */
  reload(cause: string): Promise<ReloadReport>
  status(): ReturnType<Ops['status']>
  /** Stops everything within the deadline of the config; does not reject. */
  stop(reason: string): Promise<void>
}

type Deps = GatewayDeps & {
  emit: Emit
  ops: Ops
  ourTime: GatewayTime
  /** Called with the close of each part, in the order of opening. */
  opened: (close: () => Promise<unknown>) => void
}

/** What sends, and what takes messages in. */
type Outgoing = Awaited<ReturnType<typeof openOutgoing>>
type Incoming = Awaited<ReturnType<typeof openIncoming>>

/** Share of the deadline that running submissions get; the rest is for closing. */
const submissionShare = 0.8
/** For the last copy of the ledger; what it leaves is copied after the next start. */
const lastCopyMs = 2000

export async function startGateway(
  gatewayDeps: GatewayDeps,
  config: Config,
  configPath: string,
): Promise<Gateway> {
  const { clock, version, env, stdout, observe } = gatewayDeps
  const startedAtMs = clock.monotonic()
  const ops = createOps({ clock, version, stdout, env }, { ops: config.ops, log: config.log })
  const emit: Emit = (event) => {
    ops.emit(event)
    observe?.(event)
  }
  const closes: (() => Promise<unknown>)[] = []
  const ourTime = createOurTime(
    { clock, emit, kernel: gatewayDeps.kernel },
    { trustLocal: config.clocks.trust_local },
  )
  const deps: Deps = { ...gatewayDeps, emit, ops, ourTime, opened: (close) => void closes.push(close) }
  try {
    emit({ kind: 'gateway_starting', version, pid: process.pid, config: configPath })
    const mapping = await mappingOf(config, ourTime.offsetMs)
    ops.attach({ ourTime })
    ourTime.start()
    deps.opened(async () => ourTime.stop())
    await ops.start()
    deps.opened(() => ops.stop())
    const outgoing = await openOutgoing(deps, config)
    const incoming = await openIncoming(deps, outgoing, { config, configPath, mapping })
    const addresses = { mqtt: incoming.ingest.addresses(), ops: ops.url() ?? '' }
    emit({
      kind: 'gateway_ready',
      tookMs: clock.monotonic() - startedAtMs,
      addresses: [...addresses.mqtt, addresses.ops],
    })
    ops.ready()
    return gatewayOf(deps, { ...outgoing, ...incoming }, config, addresses)
  } catch (error) {
    for (const close of closes.reverse()) await close()
    throw error
  }
}

async function openOutgoing(deps: Deps, config: Config) {
  const { clock, random, emit, env, ops, ourTime, opened } = deps
  const options = { ...deliveryOptions(config.delivery), ledger: config.ledger.enabled }
  const { max_payloads: payloadsMax, max_bytes: bytesMax } = config.delivery.batch
  const isLate = createBackfillRule({ clock, offsetMs: ourTime.wallOffsetMs }, options)
  const spool = await openSpool({ ...deps, isLate }, spoolOptions(config.spool, { payloadsMax, bytesMax }))
  opened(() => spool.close())
  ops.attach({ spool })
  const delivery = createDelivery({ spool, clock, random, emit, env }, options)
  opened(() => delivery.stop(AbortSignal.abort()))
  ops.attach({ delivery, batches: delivery.batches })
  delivery.start()
  ourTime.follow(delivery)
  const ledgerDeps = { ...deps, source: spool, clockOffsetMs: ourTime.wallOffsetMs }
  const ledger = config.ledger.enabled
    ? createLedger(ledgerDeps, ledgerOptions(config.ledger, config.spool.path))
    : null
  ledger?.start()
  opened(async () => ledger?.stop(AbortSignal.abort()))
  return { spool, delivery, ledger }
}

async function openIncoming(
  { clock, emit, env, ops, ourTime, opened }: Deps,
  { spool, delivery, ledger }: Outgoing,
  { config, configPath, mapping }: { config: Config; configPath: string; mapping: Mapping },
) {
  const activeMapping = createActiveMapping({ spool, clock, emit, ourTime }, config, mapping)
  opened(() => activeMapping.stop())
  const taps = createTaps({ clock })
  const { mapper, release, opsView, remap, decisions } = activeMapping
  const ingest = createIngest(
    { mapper, spool, clock, ourTime, emit, releaseOrder: release, tap: taps },
    ingestOptions(config.ingest),
  )
  const reload = createConfigReload(
    { clock, emit, env, swap: activeMapping.swap },
    { path: configPath, running: config },
  )
  opened(() => reload.stop())
  const deadLetters = startDeadLetterWork(
    { spool, clock, emit, delivery, remap, clockOffsetMs: ourTime.wallOffsetMs, ledger },
    { retentionMs: config.spool.dead_letters.retention },
  )
  opened(() => deadLetters.stop())
  ops.attach({
    ingest,
    taps,
    mapping: opsView,
    keptMessages: spool,
    deadLetters: deadLetters.work,
    ledger,
    control: {
      reload: reload.reload,
      probe: (signal) => probe({ delivery, clock }, signal),
      remap,
      check: spool.check,
    },
    quarantine: decisions,
  })
  await activeMapping.prepare()
  await ingest.start()
  opened(() => ingest.close())
  activeMapping.start(ingest)
  await reload.start()
  return { ingest, activeMapping, deadLetters, reload }
}

function gatewayOf(
  deps: Deps,
  stages: Outgoing & Incoming,
  config: Config,
  addresses: Gateway['addresses'],
): Gateway {
  const { spool, delivery, reload } = stages
  const broken = new Promise<GatewayError>((resolve) => {
    spool.listen({ storeUnrecoverable: resolve })
  })
  let stopped: Promise<void> | null = null
  return {
    addresses,
    broken,
    probe: () => delivery.probe(),
    reload: reload.reload,
    status: () => deps.ops.status(),
    stop(reason) {
      stopped ??= stopAll(deps, stages, { reason, deadlineMs: config.ops.stop_deadline })
      return stopped
    },
  }
}

async function stopAll(
  { clock, emit, ops, ourTime }: Deps,
  { spool, delivery, ledger, ingest, activeMapping, deadLetters, reload }: Outgoing & Incoming,
  { reason, deadlineMs }: { reason: string; deadlineMs: number },
): Promise<void> {
  const startedAtMs = clock.monotonic()
  const deadline = new AbortController()
  const cancel = clock.after(deadlineMs * submissionShare, () => deadline.abort())
  try {
    emit({ kind: 'gateway_stopping', reason, deadlineMs })
    ops.stopping(reason)
    await reload.stop()
    await ingest.stopAccepting()
    await deadLetters.stop()
    await activeMapping.stop()
    ourTime.stop()
    await delivery.stop(deadline.signal)
    // So that what was settled last can be queried while the daemon does not run.
    await ledger?.stop(AbortSignal.any([deadline.signal, AbortSignal.timeout(lastCopyMs)]))
    const pending = spool.lanes().reduce((sum, lane) => sum + lane.open, 0)
    // Commits the open group, so that devices get their last acks before their connections are closed.
    await spool.close()
    await ingest.close()
    emit({ kind: 'gateway_stopped', tookMs: clock.monotonic() - startedAtMs, pending })
  } finally {
    cancel()
    await ops.stop()
  }
}
