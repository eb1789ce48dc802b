// batch-sender.ts: takes one batch from its lane, or from the hand, to its settlement.
//
//   credentials -> seal -> load -> (still allowed?) sign, send, read -> judge -> settle, hold, or cut in parts
//
// Every step may find that the world has changed meanwhile: the era ended, we are stopping, the road was
// closed by somebody else's answer. Then the batch simply stays sealed, which is always safe.

import type PQueue from 'p-queue'
import { assert } from '../../std/assert.ts'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Batch, BatchContent, Spool, BatchOperation } from '../../spool/spool.ts'
import type { Concurrency } from '../policy/concurrency.ts'
import type { Endpoint, Pass, Report } from '../policy/endpoint.ts'
import type { InFlightBatches, InFlightBatch } from '../policy/in-flight-batches.ts'
import type { Isolation } from '../policy/isolation.ts'
import type { Keyring } from '../credentials/keyring.ts'
import type { RateLimit } from '../policy/rate-limit.ts'
import type { Choice, Scheduler } from '../policy/scheduler.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import type { Settler } from './settler.ts'
import type { Transport } from '../transport/sender-worker.ts'
import type { SizeLimit } from '../policy/size-limit.ts'
import type { Verdict } from '../policy/verdict.ts'

/**
 * One opening of the spool, and what is in hand of it. `down` is `refused` when the spool did not take a seal
 * or a settle, `lost` when it said itself that its store failed.
 */
export type PipelineSession = {
  readonly hand: InFlightBatches
  readonly end: AbortController
  down: 'refused' | 'lost' | null
}

type SendTask = {
  choice: Choice
  pass: Pass
  era: PipelineSession
  /** Gives the pass back; only the first call counts. */
  leave(report: Report): void
}

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  total: PQueue
  keyring: Keyring
  gate: Transport
  endpoint: Endpoint
  concurrency: Concurrency
  scheduler: Scheduler
  settler: Settler
  serviceClock: ServiceClock
  isolation: Isolation
  sizeLimit: SizeLimit
  rateLimit: RateLimit
  mode: BatchOperation
  /** The era is the present one and the spool has not failed in it. */
  isCurrent: (era: PipelineSession) => boolean
  isStopping: () => boolean
  /** A batch was sealed: its lane may hold the next one. */
  sealed: () => void
}

/** Rejects as the spool does. */
export type SendBatch = (trip: SendTask) => Promise<void>

export function createBatchSender(deps: Deps): SendBatch {
  const { spool, clock, emit, total, keyring, gate, endpoint, concurrency, scheduler, settler } = deps
  const { serviceClock, isolation, sizeLimit, rateLimit, mode, isCurrent, isStopping, sealed } = deps

  return async (trip) => {
    const { choice, pass, era } = trip
    let inHand = choice.kind === 'batch' ? choice.inHand : null
    try {
      const again = pass.probe && endpoint.view().state === 'unauthorized'
      const fault = await unlessAborted(keyring.ready({ again }), era.end.signal)
      if (era.end.signal.aborted) return
      if (fault !== null) return trip.leave({ kind: 'no_credentials', why: fault })
      if (!isCurrent(era) || isStopping()) return
      if (choice.kind === 'lane') inHand = await seal(choice, era)
      if (inHand !== null && !(await reshaped(inHand, era))) await deliver(inHand, trip)
    } finally {
      if (choice.kind === 'lane' && inHand === null) scheduler.sealEnded(choice.lane, 'nothing')
      if (inHand?.running) era.hand.rest(inHand, 'none', { failed: false, retryAfterMs: 0 })
    }
  }

  async function seal(
    choice: Extract<Choice, { kind: 'lane' }>,
    era: PipelineSession,
  ): Promise<InFlightBatch | null> {
    const batch = await spool.seal(choice.lane, choice.limits)
    if (batch === null) return null
    scheduler.sealEnded(choice.lane, 'a batch')
    const { provider, lane, batchId, payloads, bytes } = batch
    emit({ kind: 'batch_sealed', provider, lane, batchId, payloads, bytes })
    const inHand = era.hand.add(batch, 'sealed')
    era.hand.take(inHand)
    sealed()
    return inHand
  }

  /** Puts a batch into the shape in which it may go, where it never went in this one; true when others take its place. */
  async function reshaped(inHand: InFlightBatch, era: PipelineSession): Promise<boolean> {
    const { batch } = inHand
    if (batch.operation === 'single') return false
    if (mode === 'single') {
      const why = 'delivery.mode is single.'
      if (batch.payloads === 1) await turn(inHand, 'single', era)
      else await cut(inHand, Array<number>(batch.payloads).fill(1), why, era)
      return true
    }
    if (!sizeLimit.lowered || batch.payloads === 1 || inHand.sentBefore || inHand.submissions > 0)
      return false
    const parts = Math.min(batch.payloads, Math.ceil(batch.bytes / sizeLimit.bytesMax))
    if (parts < 2) return false
    await cut(inHand, evenly(batch.payloads, parts), 'The service refused smaller ones as too large.', era)
    return true
  }

  async function cut(
    inHand: InFlightBatch,
    parts: readonly number[],
    why: string,
    era: PipelineSession,
  ): Promise<void> {
    const { provider, batchId } = inHand.batch
    const batches = await spool.reseal(inHand.batch, parts)
    emit({ kind: 'batch_split', provider, batchId, parts, why })
    replace(inHand, batches, era)
  }

  async function turn(inHand: InFlightBatch, to: BatchOperation, era: PipelineSession): Promise<void> {
    replace(inHand, [await spool.setOperation(inHand.batch, to)], era)
  }

  function replace(inHand: InFlightBatch, batches: readonly Batch[], era: PipelineSession): void {
    era.hand.remove(inHand)
    for (const batch of batches) isolation.inherit(era.hand.add(batch, 'sealed'), inHand)
    isolation.leave(inHand)
    sealed()
  }

  async function deliver(inHand: InFlightBatch, trip: SendTask): Promise<void> {
    const { era } = trip
    const content = await load(inHand, era)
    if (content === null) return
    const began = concurrency.started()
    const { generation } = keyring
    let outcome = await submit(inHand, content, trip)
    // Keys that were changed elsewhere come into force without a person; the clock offset is known by now too.
    if (
      outcome?.kind === 'unauthorized' &&
      isCurrent(era) &&
      (await unlessAborted(keyring.renew(generation), era.end.signal))
    )
      outcome = await submit(inHand, content, trip)
    if (outcome === null || !isCurrent(era)) return
    const { accessKeyId } = keyring
    const verdict = settler.judge(inHand, content, outcome)
    if (verdict.endpoint === 'success') concurrency.succeeded()
    if (verdict.endpoint === 'failure') concurrency.failed(began)
    if (verdict.endpoint === 'success') keyring.proved()
    const moves = verdict.settlement !== null || verdict.reseal !== null || verdict.turn !== null
    if (!moves) settler.hold(era.hand, inHand, outcome, verdict)
    const alone = verdict.endpoint === 'failure' && era.hand.size <= 1 && !scheduler.isDue(spool.lanes())
    const known = { alone, accessKeyId, clockOffsetMs: serviceClock.offsetMs }
    // The endpoint learns of the answer before the disk has settled it: the next one need not wait for that.
    trip.leave(settler.report(inHand, outcome, verdict, known))
    if (moves) await move(inHand, content, verdict, era)
    // Whoever waits for a witness has one, if this was it.
    if (isolation.refusedInRow === 0) era.hand.releaseWaiting('witness')
  }

  async function move(
    inHand: InFlightBatch,
    content: BatchContent,
    verdict: Verdict,
    era: PipelineSession,
  ): Promise<void> {
    if (verdict.reseal !== null) {
      await cut(inHand, verdict.reseal, verdict.held ?? 'The service refuses it as it is.', era)
      return
    }
    if (verdict.turn !== null) {
      await turn(inHand, verdict.turn, era)
      return
    }
    if (verdict.settlement === null) return
    await settler.settle(inHand, content, verdict.settlement)
    era.hand.remove(inHand)
    isolation.leave(inHand)
  }

  async function load(inHand: InFlightBatch, era: PipelineSession): Promise<BatchContent | null> {
    const loaded = await spool.load(inHand.batch)
    if (loaded.kind === 'content') return loaded.content
    replace(inHand, loaded.batches, era)
    return null
  }

  /** One attempt; null where none was made because the world had changed. */
  function submit(
    inHand: InFlightBatch,
    content: BatchContent,
    { era, pass }: SendTask,
  ): Promise<Outcome | null> {
    return total.add(async () => {
      if (!isCurrent(era) || isStopping() || !endpoint.holds(pass)) return null
      const { credentials } = keyring
      assert(credentials !== null, 'nothing is submitted before there are credentials')
      const startedMs = clock.monotonic()
      const startedAt = clock.now()
      inHand.submissions += 1
      const signingAt = serviceClock.signingAt()
      rateLimit.take(inHand.batch.payloads)
      const attempt = {
        turn: inHand.batch.operation,
        content,
        credentials,
        signingAt,
        startedAt,
        stop: era.end.signal,
      }
      const { outcome, date, entries } = await gate.submit(attempt)
      inHand.entries = entries
      serviceClock.answered(date, clock.monotonic() - startedMs)
      settler.submitted(inHand, outcome, content.bodyBytes, clock.monotonic() - startedMs)
      return outcome
    })
  }
}

/** Null where `signal` aborts first; whoever works goes on by himself. */
function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | null> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(null)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Whole numbers that differ by one at most. */
function evenly(payloads: number, parts: number): readonly number[] {
  const least = Math.floor(payloads / parts)
  return Array.from({ length: parts }, (_, index) => least + (index < payloads % parts ? 1 : 0))
}
