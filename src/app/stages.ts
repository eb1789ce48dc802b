// stages.ts: the stages over an open spool: opens them in order, closes them in order.
//
// Start: delivery sends the recovered batches first; the ledger opens its records, and nothing waits for it;
// ingest is last, because a device that can connect expects acks. Then kept messages are mapped
// (active-mapping.ts) and files are watched (config-reload.ts).
//
// Stop: the parts are closed by a stack, which each joins when it is open; so a start that fails closes what
// is open in the same order. One deadline for all of it. It does not drain to empty: keeping data is what the
// spool is for.
//
//   no reload -> ingest accepts nothing more -> work on kept messages ends with its slice
//   -> running submissions get most of the time, then are aborted, and their batches stay sealed
//   -> the last group is committed and acknowledged, the store is closed -> connections

import { dirname, join } from 'node:path'
import type { Alerts } from '../alerts/alerts.ts'
import { type Clock, pause } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import { addListed, connectionsWithin, type Config } from '../config/config.ts'
import { createDelivery, type SenderWorker, type Delivery } from '../delivery/delivery.ts'
import { deliveryOptions, sectionProxy } from '../delivery/config.ts'
import { createIngest, createTaps, type Ingest, type MoreSources } from '../ingest/ingest.ts'
import { ingestOptions, liveLimitOptions } from '../ingest/config.ts'
import type { Mapping, LostFields } from '../mapping/mapping.ts'
import type { Ops, ProbeReport } from '../ops/ops.ts'
import type { Spool } from '../spool/spool.ts'
import type { CheckStore, OpenStore } from '../storage/storage.ts'
import { createActiveMapping } from './active-mapping.ts'
import type { BackfillRule } from './backfill-rule.ts'
import { startBridgeSessions, withFormerFilters } from './bridge-sessions/bridge-sessions.ts'
import { createCertificateWatch } from './certificate-watch/certificate-watch.ts'
import { createConfigReload } from './config-reload/config-reload.ts'
import { custodyDeps } from './custody-wiring/custody-wiring.ts'
import { startDeadLetterWork } from './dead-letter-work.ts'
import type { StartHeapWork } from './heap-work.ts'
import type { KernelClock } from './kernel-clock.ts'
import type { GatewayTime } from './our-time.ts'
import { openRecords } from './records.ts'
import { closedSources, isReachable } from './traffic-watch/reachability.ts'
import { startTrafficWatch } from './traffic-watch/traffic-watch.ts'

export type StagesDeps = {
  clock: Clock
  random: () => number
  env: NodeJS.ProcessEnv
  openStore: OpenStore
  checkStore?: CheckStore
  startHeapWork?: StartHeapWork
  emit: Emit
  ops: Ops
  ourTime: GatewayTime
  kernel: Pick<KernelClock, 'bootId'>
  lostFields: LostFields
  alerts: Alerts
  backfillRule: BackfillRule
  /** Those that were read for the config. They are watched. */
  configFiles: readonly string[]
  /** Message sources beside those of the config; for tests. */
  moreSources?: MoreSources
  /** The thread that sends, where several gateways share it. */
  senderWorker?: SenderWorker
}

/** The config of the start with its path, and the mapping in force with the config that it was made from. */
export type StagesConfig = {
  config: Config
  configPath: string
  inForce: { mapping: Mapping; config: Config }
}

export type Stages = Awaited<ReturnType<typeof openStages>>

/** What closes each part, the last one first. `deadline`: of a start that fails it is over. */
type Closing = { stack: AsyncDisposableStack; deadline: AbortController }

/** Share of the deadline that running submissions get; the rest is for closing. */
const submissionShare = 0.8
/** For the last copy of the ledger; what it leaves is copied after the next start. */
const lastCopyMs = 2000

/** Takes over the spool: closes it, too, where a stage cannot be opened. */
export async function openStages(deps: StagesDeps, spool: Spool, config: StagesConfig) {
  const closing: Closing = { stack: new AsyncDisposableStack(), deadline: new AbortController() }
  const { stack, deadline } = closing
  let ingest: Ingest | null = null
  let pending = 0
  try {
    // The last: devices get the acknowledgements of the open group before their connections are closed.
    stack.defer(async () => ingest?.close())
    stack.defer(async () => {
      pending = spool.lanes().reduce((sum, lane) => sum + lane.open, 0)
      await spool.close()
    })
    const broken = new Promise<GatewayError>((resolve) => {
      spool.listen({ storeUnrecoverable: resolve })
    })
    // Before the first write: an engine delivers again what it has no acknowledgement for, however old it is.
    if (ingestOptions(config.config.ingest).custody) spool.holdKeys(0)
    const outgoing = openOutgoing(deps, spool, { config: config.config, closing })
    const incoming = await openIncoming(deps, outgoing, {
      ...config,
      closing,
      made: (one) => (ingest = one),
    })
    return { ...outgoing, ...incoming, broken, close }
  } catch (error) {
    deadline.abort()
    await stack.disposeAsync()
    throw error
  }

  /** Closes everything within the deadline. Returns the number of payloads that the spool keeps. */
  async function close(deadlineMs: number): Promise<number> {
    const cancel = deps.clock.after(deadlineMs * submissionShare, () => deadline.abort())
    try {
      await stack.disposeAsync()
      return pending
    } finally {
      cancel()
    }
  }
}

function openOutgoing(
  deps: StagesDeps,
  spool: Spool,
  { config, closing: { stack, deadline } }: { config: Config; closing: Closing },
) {
  const { clock, random, emit, env, ops, ourTime, senderWorker } = deps
  ops.attach({ spool })
  const options = { ...deliveryOptions(config.delivery), ledger: config.ledger.enabled }
  const records = openRecords(deps, spool, config)
  // So that what was settled last can be queried while the daemon does not run, and after the start.
  stack.defer(async () => {
    const enough = new AbortController()
    const cancel = clock.after(lastCopyMs, () => enough.abort())
    await records.stop(AbortSignal.any([deadline.signal, enough.signal])).finally(cancel)
  })
  const { settled } = records.devices.notes
  const delivery = createDelivery(
    { spool, clock, random, emit, env, settled, ...(senderWorker && { senderWorker }) },
    options,
  )
  stack.defer(() => ops.saveHistory())
  stack.defer(() => delivery.stop(deadline.signal))
  ops.attach({ delivery, batches: delivery.batches, records: records.store })
  delivery.start()
  ourTime.follow(delivery)
  records.start()
  return { spool, delivery, records }
}

async function openIncoming(
  deps: StagesDeps,
  { spool, delivery, records }: ReturnType<typeof openOutgoing>,
  {
    config,
    configPath,
    inForce,
    closing: { stack },
    made,
  }: StagesConfig & { closing: Closing; made: (ingest: Ingest) => void },
) {
  const { clock, random, emit, env, ops, ourTime } = deps
  const { lostFields, alerts, backfillRule, configFiles, moreSources, startHeapWork } = deps
  const { ledger, devices } = records
  const mappingDeps = { spool, clock, emit, ourTime, lostFields, records: devices, ledger }
  const activeMapping = createActiveMapping(mappingDeps, inForce.config, inForce.mapping)
  records.follow(activeMapping)
  stack.defer(() => activeMapping.stop())
  const taps = createTaps({ clock })
  const { mapper, release, opsView, remap, forget, decisions } = activeMapping
  const configured = ingestOptions(config.ingest).bridges ?? []
  const sessionOptions = {
    spoolPath: config.spool.path,
    bridges: configured.filter((bridge) => bridge.kind === 'mqtt'),
  }
  const withSessions = await withFormerFilters(sessionOptions)
  // Only a broker of MQTT keeps a session for the gateway.
  const bridges = [...withSessions, ...configured.filter((bridge) => bridge.kind !== 'mqtt')]
  const ingest = await createIngest(
    {
      mapper,
      spool,
      clock,
      random,
      ourTime,
      emit,
      releaseOrder: release,
      tap: taps,
      notePayload: devices.notes.payload,
      moreSources,
      custody: custodyDeps({ spool, delivery, activeMapping }, config.spool.path),
    },
    {
      ...ingestOptions(config.ingest),
      bridges,
      connectionsMax: connectionsWithin(config),
    },
  )
  // Before its start: one that fails leaves timers that write to the spool.
  made(ingest)
  records.followClients(ingest.clients)
  const certificates = createCertificateWatch({ clock, clients: () => ingest.clients.admitted() }, config)
  ops.attach({ certificates })
  let present = config
  const reload = createConfigReload(
    {
      clock,
      emit,
      env,
      nextMapping: activeMapping.next,
      renew: (next, confirmed) => ingest.renew(ingestOptions(next.ingest), confirmed),
      renewOps: ops.renew,
      renewDelivery(next) {
        const options = deliveryOptions(next.delivery)
        backfillRule.use(options)
        delivery.renew(options)
      },
      renewOptions(next) {
        alerts.use(alertsOptions(next))
        ops.use(next)
        present = next
        ingest.use(liveLimitOptions(next.ingest))
      },
      renewed: certificates.use,
    },
    { path: configPath, running: config, read: configFiles },
  )
  ops.attach({ reload, lostFields })
  const deadLetters = startDeadLetterWork(
    { spool, clock, emit, delivery, remap, ourTime, ledger },
    { retentionMs: config.spool.dead_letters.retention },
  )
  stack.defer(() => deadLetters.stop())
  stack.defer(() => ingest.stopAccepting())
  ops.attach({
    ingest,
    taps,
    mapping: opsView,
    keptMessages: spool,
    deadLetters: deadLetters.work,
    ledger,
    control: {
      // As with SIGHUP: who has corrected what the service refused expects it to be tried.
      reload(cause, confirmed) {
        delivery.probe()
        return reload.reload(cause, confirmed)
      },
      probe: (signal) => probe({ delivery, clock }, signal),
      remap,
      forget,
      now: ourTime.now,
      mute: devices.mute,
      kick: ingest.kick,
      async accept(row) {
        const file = await addListed(present, row)
        return { file, reload: await reload.reload('a device was accepted') }
      },
      snapshotsFolder: join(dirname(config.spool.path), 'snapshots'),
      check: spool.check,
    },
    quarantine: decisions,
    spoolWork: spool,
  })
  await activeMapping.prepare()
  await ingest.start()
  const heapWork = startHeapWork?.(clock, () => ingest.counters().received)
  stack.defer(() => heapWork?.stop())
  const waysIn = () => ({
    isListening: ingest.addresses().length > 0,
    sources: ingest.messageSources(),
    custody: ingest.custody(),
  })
  const traffic = await startTrafficWatch(
    {
      // The times of messages and devices are compared with it.
      clock: { ...clock, now: ourTime.now },
      counters: ingest.counters,
      notListening: devices.notListening,
      addressOf: ({ sender }) =>
        (sender && ingest.clients.find(sender.clientId, sender.identity)?.address) ?? null,
      closed: () => closedSources(ingest.messageSources()),
      takesIn: () => spool.holdReason() === null && spool.writeState() !== 'hanging' && isReachable(waysIn()),
      lanes: spool.lanes,
      providers: delivery.providers,
    },
    { spoolPath: config.spool.path, silence: () => present.ops.silence },
  )
  stack.defer(() => traffic.stop())
  ops.attach({ traffic })
  activeMapping.start(ingest, traffic.silentDevices)
  const bridgeSessions = await startBridgeSessions(
    { clock, messageSources: ingest.messageSources },
    sessionOptions,
  )
  stack.defer(() => bridgeSessions.stop())
  ops.attach({ bridgeSessions })
  // The first: nothing comes into force while the others close.
  stack.defer(() => reload.stop())
  await reload.start()
  return { ingest, activeMapping, reload, taps }
}

/** Of a config; a reload puts other receivers in force. */
export function alertsOptions({ alerts, delivery }: Config) {
  return { alerts, proxy: sectionProxy(delivery) }
}

// Retries waiting batches and endpoints at once, and waits for the outcome.

const checkEveryMs = 50
/** After it the caller gets the present state; the attempt continues. */
const waitMaxMs = 20_000

async function probe(
  { delivery, clock }: { delivery: Pick<Delivery, 'probe' | 'providers'>; clock: Clock },
  signal: AbortSignal,
): Promise<ProbeReport> {
  const closed = new Set<string>()
  for (const { name, endpoint } of delivery.providers()) if (endpoint !== 'available') closed.add(name)
  delivery.probe()
  const untilMs = clock.monotonic() + waitMaxMs
  while (clock.monotonic() < untilMs && delivery.providers().some(isTrying))
    if (!(await pause(clock, checkEveryMs, signal))) break
  return { now: clock.now(), providers: delivery.providers() }

  /** A provider that was available may always have submissions in flight: it is not waited for. */
  function isTrying({ name, endpoint, inFlight }: ReturnType<Delivery['providers']>[number]): boolean {
    return closed.has(name) && endpoint !== 'available' && inFlight > 0
  }
}
