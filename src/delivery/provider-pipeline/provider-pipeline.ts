// provider-pipeline.ts: the entry file of the delivery of one provider: queue, sealed batches, endpoint.
//
//   pump -> choose -> [p-queue: batch-sender.ts: seal, send, verdict, settle or hold]
//     ^                                       |
//     '-- timer, new payloads, end of a task -'
//
// pump() is the only place that starts something. It ends when no place is free, nothing is due, or the
// endpoint allows no submission. Then one timer waits for what is due first (next-look.ts).
//
// A session is one opening of the spool. When it is lost, running submissions are aborted, their results
// ignored. The next one starts with the batches that the spool has.

import PQueue from 'p-queue'
import { GatewayError } from '../../std/gateway-error.ts'
import { createKeyring } from '../credentials/keyring.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { createPacing } from '../pacing/pacing.ts'
import { createBackfillPolicy } from '../policy/backfill-policy.ts'
import { createEndpoint, type Pass, type Report } from '../policy/endpoint.ts'
import { Refusals } from '../policy/refusals.ts'
import { createScheduler, type Choice } from '../policy/scheduler.ts'
import { createRate } from '../delivery-counters.ts'
import { createAcceptance } from '../watch/acceptance.ts'
import { createServiceClock } from '../transport/service-clock.ts'
import { transportOptions } from '../transport/transport-options.ts'
import { createLaneReturns } from '../returns/lane-returns.ts'
import type { ProviderView } from '../types.ts'
import { createOptionsRenewal } from './options-renewal.ts'
import { createBatchSender, newPipelineSession, type PipelineSession } from './batch-sender.ts'
import { NextLook } from './next-look.ts'
import { createBatchControl } from './batch-control.ts'
import { mustWaitForRoom, createBatchPlaces } from './batch-places.ts'
import type { PipelineDeps, ProviderPipeline } from './types.ts'
import { Watch, type Sight } from '../watch/watch.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Batch, Spool } from '../../spool/spool.ts'
import type { BatchTable } from '../policy/batch-table.ts'

export function createProviderPipeline(deps: PipelineDeps, options: ProviderOptions): ProviderPipeline {
  const { spool, clock, random, emit } = deps
  const { name: provider } = options
  const serviceClock = createServiceClock({ clock }, options)
  const keyring = createKeyring({ ...deps, offsetMs: serviceClock.offsetMs }, options)
  const transport = deps.senderWorker.open(transportOptions(options, deps.env))
  const endpoint = createEndpoint({ clock, random, emit }, { provider, backoff: options.backoff })
  const pacing = createPacing({ clock }, options)
  const places = deps.total.open()
  const refusals = new Refusals()
  const scheduler = createScheduler({ ...deps, pacing }, options)
  const watch = new Watch({ clock, look }, options)
  const acceptance = createAcceptance({ clock }, { provider })
  const rate = createRate({ clock })
  const backfillPolicy = createBackfillPolicy(
    { spool, clock, emit, rotated: pump, rejected: (error) => spoolRejected(error, session) },
    options,
  )
  // They bound the tasks of the queue.
  const batchPlaces = createBatchPlaces(limitNow, options.backfill)
  const queue = new PQueue()
  const nextLook = new NextLook({ clock }, pump)
  const sender = createBatchSender(
    {
      ...deps,
      places,
      keyring,
      transport,
      endpoint,
      pacing,
      scheduler,
      serviceClock,
      refusals,
      acceptance,
      watch,
      rate,
      isCurrent,
      isStopping: () => stopping,
      changed: pump,
    },
    options,
  )
  const signingAt = () => serviceClock.signingAt()
  const laneReturns = createLaneReturns({ ...deps, scheduler, provider, signingAt, changed: pump })
  const batchControl = createBatchControl({
    ...deps,
    provider,
    signingAt,
    session: () => session,
    isCurrent,
    ended: (own, inFlight) => sender.ended(own.batches, inFlight),
    changed: pump,
    rejected: spoolRejected,
  })
  const newSession = () => newPipelineSession(deps, options)
  const accessRenewed = () => void (endpoint.view().state !== 'available' && probe())
  const renew = createOptionsRenewal({ ...deps, transport, keyring, accessRenewed, renewed: pump }, options)
  let session = newSession()
  let unwatch = () => {}
  let [started, stopping] = [false, false]
  /** A request succeeded since the start. */
  let reached = false

  const signals = { payloadsAdded, lost, reopened, deadLettersHaveRoom: pump }
  const clockOffsetMs = serviceClock.offsetMs
  return { start, stop, probe, renew, ...signals, view, states, clockOffsetMs, batchControl, laneReturns }

  function start(): void {
    started = true
    unwatch = keyring.watch(credentialsChanged)
    startSession()
  }

  function startSession(): void {
    session = newSession()
    refusals.reset()
    recoverBatches(spool, session.batches, provider)
    pump()
  }

  /** Waits for the last task of the ended session: a batch that it seals later would belong to no session. */
  async function restartSession(own: PipelineSession): Promise<void> {
    await queue.onIdle()
    await batchControl.idle()
    if (own === session && started && !stopping) startSession()
  }

  function payloadsAdded(payloads: number): void {
    nextLook.added(payloads)
  }

  function lost(): void {
    session.down = 'lost'
    session.end.abort()
  }

  function reopened(): void {
    lost()
    // Rejects only on a programmer's mistake, which ends the process.
    void restartSession(session)
  }

  async function stop(deadline: AbortSignal): Promise<void> {
    stopping = true
    unwatch()
    nextLook.cancel()
    const abort = () => session.end.abort()
    if (deadline.aborted) abort()
    else deadline.addEventListener('abort', abort, { once: true })
    await queue.onIdle()
    await batchControl.idle()
    deadline.removeEventListener('abort', abort)
    await transport.close()
  }

  function probe(): void {
    session.batches.releaseAll()
    watch.released()
    endpoint.probeNow()
    pump()
  }

  /** New credentials need not wait for the next probe. */
  function credentialsChanged(): void {
    if (endpoint.view().state === 'unauthorized') probe()
  }

  function isCurrent(own: PipelineSession): boolean {
    return own === session && own.down === null
  }

  function pump(): void {
    nextLook.begins()
    if (!started || stopping || session.down !== null) return
    watch.consider()
    if (batchPlaces.full()) return
    const lanes = spool.lanes()
    backfillPolicy.consider(lanes, endpoint.view().state)
    const rateWaitMs = pacing.rateLimit.waitMs()
    if (rateWaitMs > 0) return nextLook.at(clock.monotonic() + rateWaitMs)
    const plans = scheduler.plan(lanes)
    let probing = false
    if (isTesting() && scheduler.isOtherDue(lanes, session.batches, null)) endpoint.probeNow()
    while (!batchPlaces.full()) {
      const pass = endpoint.enter()
      probing = pass === null || pass.probe
      if (pass === null) break
      const choice = scheduler.choose(plans, session.batches, {
        probe: pass.probe,
        backfill: batchPlaces.mayBackfill(),
      })
      if (choice === null) {
        endpoint.leave(pass, { kind: 'nothing' })
        break
      }
      launch(choice, pass)
    }
    if (batchPlaces.full()) return
    const allowed = { probe: probing, backfill: batchPlaces.mayBackfill() }
    const testAtMs = isTesting() ? scheduler.dueAt(plans, session.batches, allowed, 'others') : null
    if (testAtMs !== null) nextLook.at(testAtMs)
    const [dueAtMs, opensAtMs] = [scheduler.dueAt(plans, session.batches, allowed), endpoint.opensAt()]
    // Null: nothing waits, or a probe is running; what changes that calls pump().
    if (dueAtMs !== null && opensAtMs !== null) nextLook.waitFor(plans, Math.max(dueAtMs, opensAtMs))
  }

  function limitNow(): number {
    const running = batchPlaces.taken() + batchPlaces.settling()
    if (mustWaitForRoom(deps, provider, (running + 1) * pacing.bytesMax())) return 0
    return refusals.isSuspicious ? 1 : pacing.places()
  }

  /** Unauthorized, but perhaps because of one batch: the next others are tried without a wait. */
  function isTesting(): boolean {
    return refusals.isTesting && endpoint.view().state === 'unauthorized'
  }

  function launch(choice: Choice, pass: Pass): void {
    const isBackfill = (choice.kind === 'lane' ? choice.role : choice.inFlight.batch.role).kind === 'backfill'
    const seal = choice.kind === 'lane' ? scheduler.beginSeal(choice.lane) : null
    if (choice.kind === 'batch') session.batches.take(choice.inFlight)
    const own = session
    let left = false
    const leave = (report: Report) => {
      if (left) return
      left = true
      leaveEndpoint(pass, report)
    }
    const place = batchPlaces.take(isBackfill)
    const accepted = () => {
      if (place.accepted()) pump()
    }
    // What spoolRejected() throws is a programmer's mistake and ends the process.
    void queue.add(async () => {
      try {
        await sender.send({ choice, seal, pass, session: own, leave, accepted })
      } catch (error) {
        spoolRejected(error, own)
      } finally {
        leave({ kind: 'nothing' })
        place.leave()
        pump()
      }
    })
  }

  function leaveEndpoint(pass: Pass, report: Report): void {
    const before = endpoint.view().state
    endpoint.leave(pass, report)
    const after = endpoint.view().state
    if (report.kind === 'success' && (before !== 'available' || !reached)) backfillPolicy.serviceReached()
    reached ||= report.kind === 'success'
    if (before === after) return
    if (after === 'available') {
      session.batches.release()
      watch.released()
    } else pacing.concurrency.reset()
    pump()
  }

  /** The spool rejected a seal or a settle: the batches here may be void, so all of them are read again. */
  function spoolRejected(error: unknown, own: PipelineSession): void {
    if (!(error instanceof GatewayError)) {
      // The process ends with it. A next try in the same turn of the event loop would keep it from that.
      own.down = 'rejected'
      throw error
    }
    if (!isCurrent(own) || stopping) return
    own.down = 'rejected'
    own.end.abort()
    // lost() and reopened() usually come first; this is for a spool that continues after one rejected write.
    clock.after(options.backoff.spoolRetryMs, () => {
      if (own.down === 'rejected') void restartSession(own) // as in reopened()
    })
  }

  function look(): Sight {
    const lanes = spool.lanes()
    return {
      batches: session.batches,
      isLaneDue: scheduler.isDue(lanes),
      hasPending: lanes.some((lane) => lane.provider === provider && lane.pending > 0),
      isEndpointAvailable: session.down === null && endpoint.view().state === 'available',
      isSpoolSlow: spool.writeState() !== 'fine',
      waitingForPlace: places.waiting(),
      running: batchPlaces.taken() + batchPlaces.settling(),
      rateWaitMs: pacing.rateLimit.waitMs(),
      waitsForRoom: limitNow() === 0,
    }
  }

  function* states() {
    for (const one of [endpoint, keyring, serviceClock, acceptance, watch]) yield* one.states()
    yield* session.batches.heldStates()
  }

  function view(): ProviderView {
    const { state, since, nextAttemptAt } = endpoint.view()
    return {
      name: provider,
      endpoint: state,
      since,
      ...sender.last(),
      clockOffsetMs: serviceClock.offsetMs(),
      nextAttemptAt: watch.nextAttemptAt(nextAttemptAt),
      inFlight: batchPlaces.taken() - places.waiting(),
      settling: batchPlaces.settling(),
      ratePerS: rate.perS(),
    }
  }
}

// The batches that were sealed before this session, in hand or held as they were.

function recoverBatches(spool: Pick<Spool, 'batches'>, batches: BatchTable, provider: ProviderName): void {
  const own = spool.batches().filter((batch) => batch.provider === provider)
  for (const batch of own.toSorted(heldLongestFirst)) batches.add(batch, 'recovered')
  for (const reason of Object.keys(heldReasons) as HeldReason[]) batches.reportHeld(reason)
}

/** Batches in hand keep their order, which is that of sealing. */
function heldLongestFirst({ held: one }: Batch, { held: other }: Batch): number {
  return (one?.since ?? 0) - (other?.since ?? 0)
}
