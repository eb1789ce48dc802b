// app.ts: the composition root: builds everything, starts it in order, stops it in order. The door of this
// folder.
//
// Start: each step may fail with a code, and nothing later has started then.
//
//   mapping   compiled, with the device table: what is wrong there stops the start
//   ops       answers at once, not ready: it is needed most when the disk is full or damaged
//   spool     opens the store and recovers; forgets nothing
//   delivery  the recovered batches first
//   ledger    opens its records beside the others; nothing waits for it
//   ingest    last: whoever can connect gets acks
//   ready     /readyz, READY=1
//   beside    what was kept for its device or its expression goes on (active-mapping.ts), files are watched (config-reload.ts)
//
// Stop: one deadline for all of it. It does not drain to empty: the spool is the point.
//
//   not ready -> nothing is reloaded -> ingest closes its doors -> what maps kept messages ends its slice -> running submissions get most of the time, then are aborted, their
//   batches stay sealed -> the last group commits and acks, the store is closed -> connections -> ops ends
//
// A second signal ends the process at once (main.ts). That is safe: what was acknowledged is on the disk, the
// rest is sent again by who sent it, and a sealed batch goes again under its batchId.

import type { Writable } from 'node:stream'
import type { Clock } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { NewId } from '../domain/ids.ts'
import type { Config } from '../config/config.ts'
import { createDelivery, type Delivery } from '../delivery/delivery.ts'
import { deliveryOptions } from '../delivery/config.ts'
import { createIngest, createTaps, type Ingest } from '../ingest/ingest.ts'
import { ingestOptions } from '../ingest/config.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { ledgerOptions } from '../ledger/config.ts'
import { createOps, type Ops, type ReloadReport } from '../ops/ops.ts'
import { openSpool, type Spool } from '../spool/spool.ts'
import { spoolOptions } from '../spool/config.ts'
import type { Disk, OpenStore } from '../storage/storage.ts'
import { createClockOffset, type ClockOffset } from './clock-offset.ts'
import { startDeadLetterWork, type DeadLetterWork } from './dead-letter-work.ts'
import { createBackfillRule } from './backfill-rule.ts'
import { createActiveMapping, mappingOf, type ActiveMapping } from './active-mapping.ts'
import { probe } from './endpoint-probe.ts'
import { createConfigReload, type ConfigReload } from './config-reload.ts'

export type GatewayDeps = {
  clock: Clock
  random: () => number
  newId: NewId
  env: NodeJS.ProcessEnv
  /** Where the log goes. */
  stdout: Writable
  version: string
  openStore: OpenStore
  disk: Disk
  /** Sees every event after ops did; for tests and the trial. */
  observe?: Emit
}

export type Gateway = {
  /** MQTT URLs, and the base URL of ops; with the ports that the system chose where the config says 0. */
  readonly addresses: { mqtt: readonly string[]; ops: string }
  /** Resolves with the reason when the gateway cannot go on and the process should end and be restarted. */
  readonly broken: Promise<GatewayError>
  /** Tries now what waits for a back-off or a slow probe. */
  probe(): void
  /** Reads config, presets and device table again, and puts them in force if they are right. */
  reload(cause: string): Promise<ReloadReport>
  status(): ReturnType<Ops['status']>
  /** Ends everything within the deadline of the config; never rejects for what others left open. */
  stop(reason: string): Promise<void>
}

type Running = {
  ops: Ops
  spool: Spool
  delivery: Delivery
  ingest: Ingest
  offset: ClockOffset
  inForce: ActiveMapping
  letters: DeadLetterWork
  /** Null where none is kept. */
  ledger: Ledger | null
  reload: ConfigReload
}

/** Share of the deadline that running submissions get; the rest is for closing. */
const submissionShare = 0.8
/** For the ledger's last copy; what it leaves is copied after the next start. */
const lastCopyMs = 2000

export async function startGateway(deps: GatewayDeps, config: Config, configPath: string): Promise<Gateway> {
  const { clock, version, env } = deps
  const startedAtMs = clock.monotonic()
  const ops = createOps({ clock, version, stdout: deps.stdout, env }, { ops: config.ops, log: config.log })
  const emit: Emit = (event) => {
    ops.emit(event)
    deps.observe?.(event)
  }
  const opened: (() => Promise<unknown>)[] = []
  try {
    emit({ kind: 'gateway_starting', version, pid: process.pid, config: configPath })
    const offset = createClockOffset({ clock })
    const mapping = await mappingOf(config, offset.offsetMs)
    await ops.start()
    opened.push(() => ops.stop())
    const limits = {
      payloadsMax: config.delivery.batch.max_payloads,
      bytesMax: config.delivery.batch.max_bytes,
    }
    const sending = { ...deliveryOptions(config.delivery), ledger: config.ledger.enabled }
    const isLate = createBackfillRule({ clock, offsetMs: offset.offsetMs }, sending)
    const spool = await openSpool({ ...deps, emit, isLate }, spoolOptions(config.spool, limits))
    opened.push(() => spool.close())
    ops.attach({ spool })
    const delivery = createDelivery({ spool, clock, random: deps.random, emit, env }, sending)
    opened.push(() => delivery.stop(AbortSignal.abort()))
    ops.attach({ delivery })
    delivery.start()
    offset.follow(delivery)
    opened.push(async () => offset.stop())
    const ledger = config.ledger.enabled
      ? createLedger(
          { ...deps, emit, source: spool, clockOffsetMs: offset.offsetMs },
          ledgerOptions(config.ledger, config.spool.path),
        )
      : null
    ledger?.start()
    opened.push(async () => ledger?.stop(AbortSignal.abort()))
    const inForce = createActiveMapping(
      { spool, clock, emit, clockOffsetMs: offset.offsetMs },
      config,
      mapping,
    )
    opened.push(() => inForce.stop())
    const taps = createTaps({ clock })
    const { mapper, release, opsView: part } = inForce
    const ingest = createIngest(
      { mapper, spool, clock, emit, releaseOrder: release, tap: taps },
      ingestOptions(config.ingest),
    )
    const reload = createConfigReload(
      { clock, emit, env, swap: inForce.swap },
      { path: configPath, running: config },
    )
    opened.push(() => reload.stop())
    const probeNow = (signal: AbortSignal) => probe({ delivery, clock }, signal)
    const control = { reload: reload.reload, probe: probeNow, remap: inForce.remap, check: spool.check }
    const retentionMs = config.spool.dead_letters.retention
    const letters = startDeadLetterWork({ spool, clock, emit, delivery, inForce, offset }, { retentionMs })
    opened.push(() => letters.stop())
    ops.attach({
      ingest,
      taps,
      mapping: part,
      keptMessages: spool,
      deadLetters: letters.work,
      ledger,
      control,
      quarantine: inForce.decisions,
    })
    await inForce.prepare()
    await ingest.start()
    opened.push(() => ingest.close())
    inForce.start(ingest)
    await reload.start()
    const url = ops.url()
    const addresses = { mqtt: ingest.addresses(), ops: url ?? '' }
    emit({
      kind: 'gateway_ready',
      tookMs: clock.monotonic() - startedAtMs,
      addresses: [...addresses.mqtt, addresses.ops],
    })
    ops.ready()
    const running = { ops, spool, delivery, ingest, offset, inForce, letters, ledger, reload }
    return gatewayOf(running, { ...deps, emit }, config, addresses)
  } catch (error) {
    for (const close of opened.reverse()) await close()
    throw error
  }
}

function gatewayOf(
  running: Running,
  { clock, emit }: Pick<GatewayDeps, 'clock'> & { emit: Emit },
  config: Config,
  addresses: Gateway['addresses'],
): Gateway {
  const { ops, spool, delivery, reload } = running
  const broken = new Promise<GatewayError>((resolve) => {
    spool.listen({ storeUnrecoverable: resolve })
  })
  let stopped: Promise<void> | null = null
  return {
    addresses,
    broken,
    probe: () => delivery.probe(),
    reload: reload.reload,
    status: () => ops.status(),
    stop(reason) {
      stopped ??= stopAll(running, { clock, emit, reason, deadlineMs: config.ops.stop_deadline })
      return stopped
    },
  }
}

async function stopAll(
  { ops, spool, delivery, ingest, offset, inForce, letters, ledger, reload }: Running,
  { clock, emit, reason, deadlineMs }: { clock: Clock; emit: Emit; reason: string; deadlineMs: number },
): Promise<void> {
  const startedAtMs = clock.monotonic()
  const deadline = new AbortController()
  const cancel = clock.after(deadlineMs * submissionShare, () => deadline.abort())
  try {
    emit({ kind: 'gateway_stopping', reason, deadlineMs })
    ops.stopping(reason)
    await reload.stop()
    await ingest.stopAccepting()
    await letters.stop()
    await inForce.stop()
    offset.stop()
    await delivery.stop(deadline.signal)
    // What was settled last can then be asked for while the daemon is down.
    await ledger?.stop(AbortSignal.any([deadline.signal, AbortSignal.timeout(lastCopyMs)]))
    const pending = spool.lanes().reduce((sum, lane) => sum + lane.open, 0)
    // Commits what is open, so the devices get their last acks before their connections are closed.
    await spool.close()
    await ingest.close()
    emit({ kind: 'gateway_stopped', tookMs: clock.monotonic() - startedAtMs, pending })
  } finally {
    cancel()
    await ops.stop()
  }
}
