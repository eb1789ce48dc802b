// batch-sender.ts: seals a batch of a lane, or takes a sealed batch, and sends it until it is settled.
//
//   credentials -> seal -> load -> (still allowed?) sign, send, read -> verdict -> settle, hold, or cut
//
// Things may change during every step: the session ends, the daemon stops, an answer to another batch makes
// the endpoint unavailable. Then the batch stays sealed, which is always safe.

import { assert } from '../../std/assert.ts'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Batch, BatchContent, BatchOperation, Spool } from '../../spool/spool.ts'
import type { BackoffOptions } from '../delivery-options.ts'
import type { Keyring } from '../credentials/keyring.ts'
import { partsBeforeSending } from '../refusals/batch-parts.ts'
import type { Pacing } from '../pacing/pacing.ts'
import type { Endpoint, Pass, Report } from '../policy/endpoint.ts'
import type { ForbiddenTrial } from '../refusals/forbidden-trial.ts'
import { createInFlightBatches, type InFlightBatches } from '../policy/in-flight-batches.ts'
import type { InFlightBatch } from '../policy/types.ts'
import type { Isolation } from '../refusals/isolation.ts'
import type { Verdict } from '../policy/policy.ts'
import type { RunningSeal } from '../policy/running-seals.ts'
import type { Choice, Scheduler } from '../policy/scheduler.ts'
import type { ProviderShare } from '../total-share.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import type { Transport } from '../transport/transport.ts'
import type { Watch } from '../watch/watch.ts'
import { endOf, requestIdOf, retryAfterWaitOf } from './outcome-text.ts'
import type { Settler } from './settler.ts'

/**
 * One opening of the spool with its sealed batches. `down` is `rejected` when the spool did not accept a seal
 * or a settle, `lost` when it reported that its store failed.
 */
export type PipelineSession = {
  readonly batches: InFlightBatches
  readonly end: AbortController
  down: 'rejected' | 'lost' | null
}

export function newPipelineSession(
  deps: { clock: Clock; random: () => number },
  options: { backoff: BackoffOptions },
): PipelineSession {
  return { batches: createInFlightBatches(deps, options), end: new AbortController(), down: null }
}

type SendTask = {
  choice: Choice
  /** Of a lane that was chosen. */
  seal: RunningSeal | null
  pass: Pass
  session: PipelineSession
  /** Gives the pass back; only the first call counts. */
  leave(report: Report): void
  /** The service has taken it: only its settle is left, which needs no place. */
  accepted(): void
}

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  /** Of `max_in_flight_total`. */
  places: ProviderShare
  keyring: Keyring
  transport: Transport
  endpoint: Endpoint
  pacing: Pacing
  scheduler: Scheduler
  settler: Settler
  serviceClock: ServiceClock
  isolation: Isolation
  trial: ForbiddenTrial
  watch: Watch
  mode: BatchOperation
  /** It is the current session, and the spool has not failed in it. */
  isCurrent: (session: PipelineSession) => boolean
  isStopping: () => boolean
  /** A seal runs, or batches were added: another one may start. */
  changed: () => void
}

/**
 * `number`: of the submission; `written`: the last byte of the body was sent, or may have been; `appliedMs`:
 * what its signature added to the wall clock.
 */
type Submitted = { outcome: Outcome; number: number; written: boolean; appliedMs: number }

/** Of one batch at once: one shows that the time is at fault, the next one has the right time. */
const resubmissionsMax = 2

/** Rejects as the spool does. */
type SendBatch = (task: SendTask) => Promise<void>

export function createBatchSender(deps: Deps): SendBatch {
  const { spool, clock, emit, places, keyring, transport, endpoint, pacing, scheduler, settler } = deps
  const { serviceClock, isolation, trial, watch, mode, isCurrent, isStopping, changed } = deps

  return async (task) => {
    const { choice, seal, pass, session } = task
    let inFlight = choice.kind === 'batch' ? choice.inFlight : null
    let taken = inFlight?.triedAt
    try {
      const again = pass.probe && endpoint.view().state === 'unauthorized'
      const fault = await unlessAborted(keyring.ready({ again }), session.end.signal)
      if (session.end.signal.aborted) return
      if (fault !== null) return task.leave({ kind: 'no_credentials', why: fault })
      if (!isCurrent(session) || isStopping()) return
      if (choice.kind === 'lane' && seal !== null) inFlight = await sealed(choice, seal, session)
      taken = inFlight?.triedAt
      if (inFlight !== null && !(await reshape(inFlight, session))) await deliver(inFlight, task)
    } finally {
      if (seal !== null && inFlight === null) scheduler.sealEnded(seal, 'nothing')
      // After it was held an operator's command may have taken it.
      if (inFlight?.running && inFlight.triedAt === taken) session.batches.rest(inFlight, 'none')
    }
  }

  async function sealed(
    choice: Extract<Choice, { kind: 'lane' }>,
    seal: RunningSeal,
    session: PipelineSession,
  ): Promise<InFlightBatch | null> {
    const claiming = spool.seal(choice.lane, { ...choice.limits, timestamp: serviceClock.signingAt() })
    seal.runs()
    changed()
    const batch = await claiming
    if (batch === null) return null
    scheduler.sealEnded(seal, 'a batch')
    const { provider, lane, batchId, payloads, bytes } = batch
    emit({ kind: 'batch_sealed', provider, lane, batchId, payloads, bytes })
    const inFlight = session.batches.add(batch, 'sealed')
    session.batches.take(inFlight)
    changed()
    return inFlight
  }

  /** Cuts the batch or changes its operation where needed; true when other batches replace it. */
  async function reshape(inFlight: InFlightBatch, session: PipelineSession): Promise<boolean> {
    const { batch, mayBeProcessed: sent } = inFlight
    if (batch.operation === 'single') return false
    const needed = partsBeforeSending(batch, { mode, sent, pacing })
    if (needed !== null) await cut(inFlight, needed.parts, needed.why, session)
    else if (mode === 'single') await changeOperation(inFlight, 'single', session)
    else return false
    return true
  }

  async function cut(
    inFlight: InFlightBatch,
    parts: readonly number[],
    why: string,
    session: PipelineSession,
  ): Promise<void> {
    const { provider, batchId } = inFlight.batch
    const batches = await spool.reseal(inFlight.batch, parts, { timestamp: serviceClock.signingAt() })
    emit({ kind: 'batch_split', provider, batchId, parts, why })
    replace(inFlight, batches, session)
  }

  async function changeOperation(
    inFlight: InFlightBatch,
    operation: BatchOperation,
    session: PipelineSession,
  ): Promise<void> {
    replace(inFlight, [await spool.setOperation(inFlight.batch, operation)], session)
  }

  function replace(inFlight: InFlightBatch, batches: readonly Batch[], session: PipelineSession): void {
    session.batches.remove(inFlight)
    for (const batch of batches) {
      const part = session.batches.add(batch, 'sealed')
      part.forbiddenAlone = inFlight.forbiddenAlone
      isolation.inherit(part, inFlight)
    }
    settler.ended(session.batches, inFlight)
    changed()
  }

  async function deliver(inFlight: InFlightBatch, task: SendTask): Promise<void> {
    const { session } = task
    const content = await load(inFlight, session)
    if (content === null) return
    const began = pacing.concurrency.started()
    const generation = keyring.generation()
    let submitted = await submit(inFlight, content, task)
    if (submitted === null || !isCurrent(session)) return
    const alone = () => !scheduler.isOtherDue(spool.lanes(), session.batches, inFlight)
    const judged = { inFlight, content, alone }
    let verdict = settler.judge({ ...judged, ...submitted, mayResubmit: mayResubmit(submitted, generation) })
    for (let again = resubmissionsMax; verdict.resubmit; again -= 1) {
      // Keys that were replaced elsewhere come into force without a person.
      if (keyring.mayRenew(generation)) await unlessAborted(keyring.renew(generation), session.end.signal)
      submitted = await submit(inFlight, content, task)
      if (submitted === null || !isCurrent(session)) return
      const may = again > 1 && serviceClock.mayCorrect(submitted.appliedMs)
      verdict = settler.judge({ ...judged, ...submitted, mayResubmit: may })
    }
    const { outcome, number } = submitted
    if (verdict.endpoint === 'failure' && inFlight.held === null) pacing.concurrency.failed(began)
    if (verdict.endpoint === 'success') {
      pacing.concurrency.succeeded()
      keyring.accepted()
      if (trial.accepted(number)) session.batches.releaseWaiting('other-batches')
    }
    const held = verdict.settlement === null && verdict.reseal === null && verdict.operation === null
    const facts = {
      alone: verdict.endpoint === 'failure' && session.batches.size() <= 1 && !scheduler.isDue(spool.lanes()),
      probe: task.pass.probe,
      accessKeyId: keyring.accessKeyId(),
      clockOffsetMs: serviceClock.offsetMs(),
    }
    const report = settler.report(inFlight, outcome, verdict, facts)
    const kept = held ? settler.hold(session.batches, inFlight, outcome, verdict) : null
    // The endpoint gets the answer before the settlement is on disk: the next submission need not wait for
    // that.
    task.leave(report)
    if (verdict.endpoint === 'unauthorized' && !trial.active())
      session.batches.releaseWaiting('other-batches')
    if (verdict.endpoint === 'success' && !held) task.accepted()
    const waitMs = retryAfterWaitOf(outcome)
    if (outcome.kind === 'unavailable' && waitMs !== null)
      watch.retryAfter({ askedMs: outcome.retryAfterMs ?? 0, waitMs, requestId: requestIdOf(outcome) })
    await (kept ?? carryOut(inFlight, content, verdict, session))
    if (!held) watch.progressed()
    const accepted = verdict.endpoint === 'success' && isolation.refusedInRow() === 0
    if (accepted) session.batches.releaseWaiting('acceptance')
  }

  /** After a 401 or 403 other credentials may be found, or the time of the signature may be at fault. */
  function mayResubmit({ appliedMs }: Submitted, generation: number): boolean {
    return keyring.mayRenew(generation) || serviceClock.mayCorrect(appliedMs)
  }

  async function carryOut(
    inFlight: InFlightBatch,
    content: BatchContent,
    { settlement, reseal, operation, why }: Verdict,
    session: PipelineSession,
  ): Promise<void> {
    if (reseal !== null) return cut(inFlight, reseal, why ?? 'The service refuses it as it is.', session)
    if (operation !== null) return changeOperation(inFlight, operation, session)
    if (settlement === null) return
    await settler.settle(inFlight, content, settlement)
    session.batches.remove(inFlight)
    settler.ended(session.batches, inFlight)
  }

  async function load(inFlight: InFlightBatch, session: PipelineSession): Promise<BatchContent | null> {
    const loaded = await spool.load(inFlight.batch)
    if (loaded.kind === 'content') return loaded.content
    replace(inFlight, loaded.batches, session)
    return null
  }

  /** One submission; null where none was made because the session or the endpoint had changed. */
  async function submit(
    inFlight: InFlightBatch,
    content: BatchContent,
    { session, pass }: SendTask,
  ): Promise<Submitted | null> {
    if (!(await places.enter(session.end.signal))) return null
    try {
      if (!isCurrent(session) || isStopping() || !endpoint.isValid(pass)) return null
      const credentials = keyring.credentials()
      assert(credentials !== null, 'nothing is submitted before there are credentials')
      const startedMs = clock.monotonic()
      const startedAt = clock.now()
      inFlight.submissions += 1
      const number = trial.started()
      const signingAt = serviceClock.signingAt()
      const appliedMs = serviceClock.appliedMs()
      pacing.rateLimit.take(inFlight.batch.payloads)
      const { operation } = inFlight.batch
      const stop = session.end.signal
      const timeoutMs = pacing.goodput.timeoutMs(content.bodyBytes, inFlight.timeouts)
      const attempt = { operation, content, credentials, signingAt, startedAt, timeoutMs, stop }
      pacing.goodput.began()
      const watched = watch.began(pacing.goodput.uploadMs(content.bodyBytes))
      const { outcome, date, entries, written, bytesSent } = await transport.submit(attempt)
      const tookMs = clock.monotonic() - startedMs
      const end = endOf(outcome)
      watch.ended(watched, outcome, tookMs)
      if (end === 'timed out' && written) inFlight.timeouts += 1
      pacing.goodput.ended({ bodyBytes: content.bodyBytes, bytesSent, end, tookMs })
      inFlight.entries = entries
      serviceClock.answered(date, tookMs, outcome)
      settler.submitted(inFlight, outcome, content.bodyBytes, tookMs)
      return { outcome, number, written, appliedMs }
    } finally {
      places.leave()
    }
  }
}

/** Null where `signal` aborts first; the work continues in the background. */
function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | null> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(null)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
