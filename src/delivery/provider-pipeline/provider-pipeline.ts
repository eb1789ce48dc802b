// provider-pipeline.ts: all that leads to one provider: its p-queue, its batches in hand, its endpoint.
//
//   pump -> choose -> [p-queue: batch-sender.ts: seal, send, settle]
//     ^                                        |
//     '------ timer, grown, end of a task -----'
//
// pump() is the only place that starts something; it runs when something may have changed and ends when no
// place is free, nothing is due, or the endpoint lets nobody in. Then one timer waits for what is due first.
// The p-queue never holds more than its concurrency: a batch is chosen when a place is free, not before.
//
// An era is one opening of the spool. When the spool is lost, all that is in hand is void: running submissions
// are aborted, their results ignored, and the next era begins with the batches that the spool still has.

import PQueue from 'p-queue'
import type { Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import type { Spool } from '../../spool/spool.ts'
import { createWakeTimer } from './wake-timer.ts'
import { createConcurrency } from '../policy/concurrency.ts'
import { createBatchSender } from './batch-sender.ts'
import type { PipelineSession } from './batch-sender.ts'
import { createEndpoint } from '../policy/endpoint.ts'
import type { Pass, Report } from '../policy/endpoint.ts'
import { createInFlightBatches } from '../policy/in-flight-batches.ts'
import { createIsolation } from '../policy/isolation.ts'
import { createKeyring } from '../credentials/keyring.ts'
import type { SenderWorker } from '../transport/sender-worker.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { createRateLimit } from '../policy/rate-limit.ts'
import { createBackfillPolicy } from '../policy/backfill-policy.ts'
import { transportOptions } from '../transport/transport-options.ts'
import { createScheduler } from '../policy/scheduler.ts'
import type { Choice } from '../policy/scheduler.ts'
import { createServiceClock } from '../transport/service-clock.ts'
import { createSettler } from './settler.ts'
import { createSizeLimit } from '../policy/size-limit.ts'
import type { CounterSet } from '../delivery-counters.ts'
import type { ProviderView } from '../provider-view.ts'

export type ProviderPipeline = {
  start(): void
  stop(deadline: AbortSignal): Promise<void>
  probe(): void
  grown(): void
  lost(): void
  reopened(): void
  /** The dead letters have room again. */
  roomMade(): void
  view(): ProviderView
}

export type PipelineDeps = {
  spool: Spool
  clock: Clock
  random: () => number
  emit: Emit
  env: NodeJS.ProcessEnv
  tally: CounterSet
  senderWorker: SenderWorker
  /** Bounds the submissions of all providers together. */
  total: PQueue
}

export function createProviderPipeline(deps: PipelineDeps, options: ProviderOptions): ProviderPipeline {
  const { spool, clock, random, emit, tally, total } = deps
  const provider = options.name
  const serviceClock = createServiceClock({ clock, emit }, options)
  const keyring = createKeyring({ ...deps, offsetMs: () => serviceClock.offsetMs }, options)
  const gate = deps.senderWorker.open(transportOptions(options, deps.env))
  const endpoint = createEndpoint({ clock, random, emit }, { provider, backoff: options.backoff })
  const concurrency = createConcurrency({ max: options.maxInFlight })
  const sizeLimit = createSizeLimit({ bytesMax: options.batch.bodyBytesMax })
  const rateLimit = createRateLimit({ clock }, options.rate)
  const isolation = createIsolation({ ended: () => era.hand.releaseWaiting('turn') })
  const scheduler = createScheduler({ clock, sizeLimit }, options)
  const settler = createSettler({ spool, clock, emit, tally, isolation, sizeLimit, serviceClock }, options)
  const roles = createBackfillPolicy(
    { spool, clock, emit, rotated: pump, refused: (error) => spoolRefused(error, era) },
    options,
  )
  const queue = new PQueue({ concurrency: options.maxInFlight })
  const alarm = createWakeTimer({ clock }, pump)
  const carry = createBatchSender({
    spool,
    clock,
    emit,
    total,
    keyring,
    gate,
    endpoint,
    concurrency,
    scheduler,
    settler,
    serviceClock,
    isolation,
    sizeLimit,
    rateLimit,
    mode: options.mode,
    isCurrent,
    isStopping: () => stopping,
    sealed: pump,
  })
  let era = newEra()
  let running = 0
  let backfillRunning = 0
  let unwatch = () => {}
  let started = false
  /** Something got through since the start. */
  let reached = false
  let stopping = false

  return { start, stop, probe, grown: pump, lost, reopened, roomMade, view }

  // ---- what starts and ends

  function newEra(): PipelineSession {
    return { hand: createInFlightBatches({ clock, random }, options), end: new AbortController(), down: null }
  }

  function start(): void {
    started = true
    unwatch = keyring.watch(credentialsChanged)
    adopt()
  }

  function adopt(): void {
    era = newEra()
    isolation.reset()
    for (const batch of spool.batches()) if (batch.provider === provider) era.hand.add(batch, 'recovered')
    pump()
  }

  /** After the last task of the ended era, so that no seal of its can come later and be known to nobody. */
  async function readopt(own: PipelineSession): Promise<void> {
    await queue.onIdle()
    if (own === era && started && !stopping) adopt()
  }

  function lost(): void {
    era.down = 'lost'
    era.end.abort()
  }

  function reopened(): void {
    lost()
    // Nothing in it fails but by a programmer's mistake, which ends the process.
    void readopt(era)
  }

  function roomMade(): void {
    era.hand.releaseWaiting('room')
    pump()
  }

  async function stop(deadline: AbortSignal): Promise<void> {
    stopping = true
    unwatch()
    alarm.cancel()
    const abort = () => era.end.abort()
    if (deadline.aborted) abort()
    else deadline.addEventListener('abort', abort, { once: true })
    await queue.onIdle()
    deadline.removeEventListener('abort', abort)
    await gate.close()
  }

  function probe(): void {
    era.hand.releaseAll()
    endpoint.probeNow()
    pump()
  }

  /** Whoever mends them need not wait for the next probe. */
  function credentialsChanged(): void {
    if (endpoint.view().state === 'unauthorized') probe()
  }

  function isCurrent(own: PipelineSession): boolean {
    return own === era && own.down === null
  }

  // ---- what goes next

  function pump(): void {
    if (!started || stopping || era.down !== null || running >= limitNow()) return
    const lanes = spool.lanes()
    roles.consider(lanes, endpoint.view().state)
    const rateWaitMs = rateLimit.waitMs()
    if (rateWaitMs > 0) {
      alarm.set(clock.monotonic() + rateWaitMs)
      return
    }
    const plans = scheduler.plan(lanes)
    let closed = false
    while (running < limitNow()) {
      const pass = endpoint.enter()
      closed = pass === null || pass.probe
      if (pass === null) break
      const backfillAllowed = backfillRunning < backfillPlaces()
      const choice = scheduler.choose(plans, era.hand, { probe: pass.probe, backfillAllowed })
      if (choice === null) {
        endpoint.leave(pass, { kind: 'nothing' })
        break
      }
      launch(choice, pass)
    }
    if (running >= limitNow()) return
    const backfillAllowed = backfillRunning < backfillPlaces()
    const dueAtMs = scheduler.dueAt(plans, era.hand, { probe: closed, backfillAllowed })
    const opensAtMs = endpoint.opensAt()
    // Null: nothing rests, or a probe is under way; what changes that will call pump().
    if (dueAtMs !== null && opensAtMs !== null) alarm.set(Math.max(dueAtMs, opensAtMs))
  }

  function limitNow(): number {
    return isolation.suspicious ? 1 : concurrency.limit
  }

  /** One place stays free for live data where there is more than one. */
  function backfillPlaces(): number {
    const places = limitNow()
    return places === 1
      ? 1
      : Math.max(1, Math.min(places - 1, Math.floor(places * options.backfill.shareMax)))
  }

  function launch(choice: Choice, pass: Pass): void {
    const backfill = (choice.kind === 'lane' ? choice.role : choice.inHand.batch.role).kind === 'backfill'
    running += 1
    if (backfill) backfillRunning += 1
    if (choice.kind === 'lane') scheduler.sealBegan(choice.lane)
    else era.hand.take(choice.inHand)
    const own = era
    let left = false
    const leave = (report: Report) => {
      if (left) return
      left = true
      leaveEndpoint(pass, report)
    }
    // What spoolRefused() throws on is a programmer's mistake and ends the process.
    void queue.add(async () => {
      try {
        await carry({ choice, pass, era: own, leave })
      } catch (error) {
        spoolRefused(error, own)
      } finally {
        leave({ kind: 'nothing' })
        running -= 1
        if (backfill) backfillRunning -= 1
        pump()
      }
    })
  }

  // ---- what comes of it

  function leaveEndpoint(pass: Pass, report: Report): void {
    const before = endpoint.view().state
    endpoint.leave(pass, report)
    const after = endpoint.view().state
    if (report.kind === 'success' && (before !== 'available' || !reached)) roles.opened()
    reached ||= report.kind === 'success'
    if (before === after) return
    if (after === 'available') era.hand.release()
    else concurrency.collapse()
    pump()
  }

  /** The spool refused a seal or a settle: what is in hand may be void, so everything is asked for again. */
  function spoolRefused(error: unknown, own: PipelineSession): void {
    if (!(error instanceof GatewayError)) throw error
    if (!isCurrent(own) || stopping) return
    own.down = 'refused'
    own.end.abort()
    // lost() and reopened() usually come first; this is for a spool that goes on after a single refusal.
    clock.after(options.backoff.spoolRetryMs, () => {
      if (own.down === 'refused') void readopt(own) // as in reopened()
    })
  }

  function view(): ProviderView {
    const { state, since, nextAttemptAt } = endpoint.view()
    return {
      name: provider,
      endpoint: state,
      since,
      ...settler.last(),
      clockOffsetMs: serviceClock.offsetMs,
      nextAttemptAt,
      inFlight: running,
      ratePerS: settler.ratePerS(),
    }
  }
}
