// batch-sender.ts: what happens to one batch: it is sealed, sent, judged, and then settled, held or cut.
//
//   credentials -> seal -> load -> (still allowed?) sign, send, read -> verdict -> settle, hold, or cut
//
// Things may change during every step: the session ends, the daemon stops, an answer to another batch makes
// the endpoint unavailable. Then the batch stays sealed, which is always safe.
//
// It keeps the facts that a verdict needs beyond its own batch: how many batches succeeded, and when. They
// distinguish a batch that fails alone from an outage.

import { assert, assertNever } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Settlement } from '../../domain/settlement.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { Batch, BatchContent } from '../../spool/spool.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { Keyring } from '../credentials/keyring.ts'
import type { Rate } from '../delivery-counters.ts'
import { partsBeforeSending } from '../policy/batch-parts.ts'
import type { Pacing } from '../pacing/pacing.ts'
import type { Endpoint, Pass, Report } from '../policy/endpoint.ts'
import { BatchTable } from '../policy/batch-table.ts'
import type { Refusals } from '../policy/refusals.ts'
import type { InFlightBatch } from '../policy/types.ts'
import type { Facts, Verdict } from '../policy/policy.ts'
import type { RunningSeal } from '../policy/running-seals.ts'
import type { Choice, Scheduler } from '../policy/scheduler.ts'
import { judge as judgeByTable } from '../policy/verdict.ts'
import type { ProviderShare } from '../total-share.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import type { Transport } from '../transport/transport.ts'
import type { Acceptance } from '../watch/acceptance.ts'
import type { Watch } from '../watch/watch.ts'
import {
  answerOf,
  answersMax,
  endOf,
  reasonText,
  requestIdOf,
  retryAfterWaitOf,
  unreachableOf,
} from './outcome-text.ts'
import type { PipelineDeps } from './types.ts'

/**
 * One opening of the spool with its sealed batches. `down` is `rejected` when the spool did not accept a seal
 * or a settle, `lost` when it reported that its store failed.
 */
export type PipelineSession = {
  readonly batches: BatchTable
  readonly end: AbortController
  down: 'rejected' | 'lost' | null
}

export function newPipelineSession(
  deps: ConstructorParameters<typeof BatchTable>[0],
  options: ProviderOptions,
): PipelineSession {
  return { batches: new BatchTable(deps, options), end: new AbortController(), down: null }
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

type Deps = PipelineDeps & {
  /** Of `max_in_flight_total`. */
  places: ProviderShare
  keyring: Keyring
  transport: Transport
  endpoint: Endpoint
  pacing: Pacing
  scheduler: Scheduler
  serviceClock: ServiceClock
  refusals: Refusals
  acceptance: Acceptance
  watch: Watch
  rate: Rate
  /** It is the current session, and the spool has not failed in it. */
  isCurrent: (session: PipelineSession) => boolean
  isStopping: () => boolean
  /** A seal runs, or batches were added: another one may start. */
  changed: () => void
}

export type BatchSender = {
  /** Rejects as the spool does. */
  send(task: SendTask): Promise<void>
  /** The batch is settled or replaced. */
  ended(batches: BatchTable, inFlight: InFlightBatch): void
  last(): { lastRequestId: string | null; lastAcceptedAt: EpochMs | null }
}

/** `number`: of the submission. `appliedMs`: what its signature added to the wall clock. */
type Submitted = {
  inFlight: InFlightBatch
  content: BatchContent
  outcome: Outcome
  number: number
  /** The last byte of the body was sent, or may have been. */
  written: boolean
  appliedMs: number
}

/** Of one batch at once: one shows that the time is at fault, the next one has the right time. */
const resubmissionsMax = 2

/** Where a request succeeded so lately, a 403 without another batch to compare with is not ours yet. */
const recentMs = 60_000

export function createBatchSender(deps: Deps, options: ProviderOptions): BatchSender {
  const { spool, clock, emit, counters, places, keyring, transport, endpoint, pacing, scheduler } = deps
  const { serviceClock, refusals, acceptance, watch, isCurrent, isStopping, changed } = deps
  const provider = options.name
  let successes = 0
  let succeededAtMs = Number.NEGATIVE_INFINITY
  let lastRequestId: string | null = null
  let lastAcceptedAt: EpochMs | null = null

  return { send, ended, last: () => ({ lastRequestId, lastAcceptedAt }) }

  async function send(task: SendTask): Promise<void> {
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
    const { lane, batchId, payloads, bytes } = batch
    emit({ kind: 'batch_sealed', provider, lane, batchId, payloads, bytes })
    const inFlight = session.batches.add(batch, 'sealed')
    session.batches.take(inFlight)
    changed()
    return inFlight
  }

  /** Cuts the batch or changes its operation where needed; true when other batches replace it. */
  async function reshape(inFlight: InFlightBatch, session: PipelineSession): Promise<boolean> {
    const { batch, mayBeProcessed: sent } = inFlight
    const { mode } = options
    if (batch.operation === 'single') return false
    const needed = partsBeforeSending(batch, { mode, sent, pacing })
    if (needed !== null) await cut(inFlight, needed.parts, needed.why, session)
    else if (mode === 'single') replace(inFlight, [await spool.setOperation(batch, 'single')], session)
    else return false
    return true
  }

  async function cut(
    inFlight: InFlightBatch,
    parts: readonly number[],
    why: string,
    session: PipelineSession,
  ): Promise<void> {
    const { batchId } = inFlight.batch
    const batches = await spool.reseal(inFlight.batch, parts, { timestamp: serviceClock.signingAt() })
    emit({ kind: 'batch_split', provider, batchId, parts, why })
    replace(inFlight, batches, session)
  }

  function replace(inFlight: InFlightBatch, batches: readonly Batch[], session: PipelineSession): void {
    const { forbiddenAlone, origin } = inFlight
    session.batches.remove(inFlight)
    for (const batch of batches)
      Object.assign(session.batches.add(batch, 'sealed'), { forbiddenAlone, origin })
    ended(session.batches, inFlight)
    changed()
  }

  async function deliver(inFlight: InFlightBatch, task: SendTask): Promise<void> {
    const { session } = task
    const loaded = await spool.load(inFlight.batch)
    // Damage was found: what is left of it has other batchIds.
    if (loaded.kind !== 'content') return replace(inFlight, loaded.batches, session)
    const { content } = loaded
    const began = pacing.concurrency.started()
    const generation = keyring.generation()
    let submitted = await submit(inFlight, content, task)
    if (submitted === null || !isCurrent(session)) return
    // After a 401 or 403 other credentials may be found, or the time of the signature may be at fault.
    let mayResubmit = keyring.mayRenew(generation) || serviceClock.mayCorrect(submitted.appliedMs)
    let verdict = judge(submitted, session, mayResubmit)
    for (let again = resubmissionsMax; verdict.resubmit; again -= 1) {
      // Keys that were replaced elsewhere come into force without a person.
      if (keyring.mayRenew(generation)) await unlessAborted(keyring.renew(generation), session.end.signal)
      submitted = await submit(inFlight, content, task)
      if (submitted === null || !isCurrent(session)) return
      mayResubmit = again > 1 && serviceClock.mayCorrect(submitted.appliedMs)
      verdict = judge(submitted, session, mayResubmit)
    }
    if (verdict.endpoint === 'failure' && inFlight.held === null) pacing.concurrency.failed(began)
    if (verdict.endpoint === 'success') succeeded(submitted, session)
    const report = reportOf(submitted, verdict, task)
    const isHeld = verdict.settlement === null && verdict.reseal === null && verdict.operation === null
    const kept = isHeld ? hold(session.batches, submitted, verdict) : null
    // The endpoint gets the answer before the settlement is on disk: the next submission need not wait for
    // that.
    task.leave(report)
    if (verdict.endpoint === 'unauthorized' && !refusals.isTesting)
      session.batches.releaseWaiting('other-batches')
    if (verdict.endpoint === 'success' && !isHeld) task.accepted()
    const { outcome } = submitted
    const waitMs = retryAfterWaitOf(outcome)
    if (outcome.kind === 'unavailable' && waitMs !== null)
      watch.retryAfter({ askedMs: outcome.retryAfterMs ?? 0, waitMs, requestId: requestIdOf(outcome) })
    await (kept ?? carryOut(submitted, verdict, session))
    if (!isHeld) watch.progressed()
    if (verdict.endpoint === 'success' && refusals.inRow === 0) session.batches.releaseWaiting('acceptance')
  }

  /** One submission; null where none was made because the session or the endpoint had changed. */
  async function submit(
    inFlight: InFlightBatch,
    content: BatchContent,
    { session, pass }: SendTask,
  ): Promise<Submitted | null> {
    const stop = session.end.signal
    if (!(await places.enter(stop))) return null
    try {
      if (!isCurrent(session) || isStopping() || !endpoint.isValid(pass)) return null
      const credentials = keyring.credentials()
      assert(credentials !== null, 'nothing is submitted before there are credentials')
      const { goodput } = pacing
      const { bodyBytes } = content
      const { lane, batchId, payloads, operation } = inFlight.batch
      const startedMs = clock.monotonic()
      const startedAt = clock.now()
      inFlight.submissions += 1
      const number = refusals.started()
      const signingAt = serviceClock.signingAt()
      const appliedMs = serviceClock.appliedMs()
      pacing.rateLimit.take(payloads)
      const timeoutMs = goodput.timeoutMs(bodyBytes, inFlight.timeouts)
      goodput.began()
      const watched = watch.began(goodput.uploadMs(bodyBytes))
      const attempt = { operation, content, credentials, signingAt, startedAt, timeoutMs, stop }
      const { outcome, date, entries, written, bytesSent } = await transport.submit(attempt)
      const tookMs = clock.monotonic() - startedMs
      const end = endOf(outcome)
      watch.ended(watched, outcome, tookMs)
      if (end === 'timed out' && written) inFlight.timeouts += 1
      goodput.ended({ bodyBytes, bytesSent, end, tookMs })
      inFlight.entries = entries
      serviceClock.answered(date, tookMs, outcome)
      inFlight.answers = [...inFlight.answers, answerOf(outcome, clock.now())].slice(-answersMax)
      lastRequestId = requestIdOf(outcome) ?? lastRequestId
      counters.submitted(outcome, bodyBytes)
      const counts = { payloads, bytes: bodyBytes, attempt: inFlight.submissions, tookMs }
      emit({ kind: 'submission_ended', provider, lane, batchId, ...counts, outcome })
      return { inFlight, content, outcome, number, written, appliedMs }
    } finally {
      places.leave()
    }
  }

  function judge(submitted: Submitted, session: PipelineSession, mayResubmit: boolean): Verdict {
    const { inFlight, outcome } = submitted
    const requestId = requestIdOf(outcome)
    const facts = factsOf(submitted, session, mayResubmit)
    const verdict = judgeByTable(outcome, facts, { ...options.backoff, ...options })
    if (verdict.resubmit) return verdict
    acceptance.judged(verdict, requestId)
    if (verdict.results !== null) inFlight.earlierResults = verdict.results
    remember(submitted, facts)
    const { deviations } = verdict
    if (deviations.length > 0)
      emit({ kind: 'answer_inconsistent', provider, batchId: inFlight.batch.batchId, requestId, deviations })
    return verdict
  }

  function factsOf(
    { inFlight, content, outcome, number }: Submitted,
    { batches }: PipelineSession,
    mayResubmit: boolean,
  ): Facts {
    const isForbidden = outcome.kind === 'unauthorized' && (!mayResubmit || inFlight.forbiddenAlone)
    return {
      ...inFlight,
      ...inFlight.batch,
      // Read only where an answer is not simply "all of them".
      payloadIds: () => content.payloadIds(),
      attempts: () => content.attempts(),
      isHeld: inFlight.held !== null,
      ...acceptance.facts(),
      refusedInRow: refusals.inRow,
      refusedOfOrigin: inFlight.origin?.refusedInRow ?? 0,
      acceptedSince: refusals.acceptedSince(inFlight),
      mayResubmit,
      // With other credentials it may be accepted; then the answer was about none of the batches.
      forbidden: isForbidden ? refusals.forbidden(inFlight, number) : 'unknown',
      alone: () =>
        !scheduler.isOtherDue(spool.lanes(), batches, inFlight) &&
        clock.monotonic() - succeededAtMs > recentMs,
      failuresAlone: failuresAlone(inFlight),
      deadLettersFull: spool.deadLettersFull(),
    }
  }

  /** As it is when this submission fails: others succeeded since the last failure, or not. */
  function failuresAlone(inFlight: InFlightBatch): number {
    return inFlight.failuresAlone + (successes > inFlight.failedAtSuccess ? 1 : 0)
  }

  /** What later answers to the batch are judged by. */
  function remember({ inFlight, content, outcome, written }: Submitted, facts: Facts): void {
    const refused = outcome.kind === 'refused'
    const isLongAnswer = outcome.kind === 'unreadable' && outcome.tooLarge === true
    if (isLongAnswer || (refused && outcome.status === 413)) pacing.sizeLimit.tooLarge(content.bodyBytes)
    // The next refusal of a held batch shows nothing new about the service.
    const isNews = !facts.mayBeProcessed && inFlight.held === null
    if (refused || facts.forbidden === 'alone') refusals.refused(inFlight, isNews)
    inFlight.refusals = refused ? inFlight.refusals + 1 : 0
    inFlight.interruptions = outcome.kind === 'interrupted' ? inFlight.interruptions + 1 : 0
    inFlight.longAnswers = isLongAnswer ? inFlight.longAnswers + 1 : 0
    if (written && !refused && outcome.kind !== 'unauthorized') inFlight.mayBeProcessed = true
  }

  function succeeded({ inFlight, content, number }: Submitted, { batches }: PipelineSession): void {
    successes += 1
    succeededAtMs = clock.monotonic()
    pacing.sizeLimit.accepted(content.bodyBytes)
    pacing.concurrency.succeeded()
    keyring.accepted()
    const isByMode = inFlight.batch.operation === options.mode
    if (refusals.accepted(inFlight, number, isByMode)) batches.releaseWaiting('other-batches')
  }

  /** The verdict as the endpoint needs it. */
  function reportOf({ inFlight, outcome }: Submitted, verdict: Verdict, task: SendTask): Report {
    const requestId = requestIdOf(outcome)
    const why = verdict.why ?? reasonText(outcome)
    // A held batch fails while others succeed, so it does not show what the endpoint does.
    const shows = inFlight.held === null || task.pass.probe
    if (!shows && (verdict.endpoint === 'failure' || verdict.endpoint === 'refused'))
      return { kind: 'nothing' }
    switch (verdict.endpoint) {
      case 'success':
        return { kind: 'success' }
      case 'failure': {
        const retryAfterMs = retryAfterWaitOf(outcome)
        const { batchId } = inFlight.batch
        const alone = task.session.batches.size() <= 1 && !scheduler.isDue(spool.lanes())
        return { kind: 'failure', batchId, why, requestId, retryAfterMs, alone, ...unreachableOf(outcome) }
      }
      case 'refused':
      case 'isolating':
      case 'outage':
      case 'wrapper':
        return { kind: verdict.endpoint, why, requestId }
      case 'unauthorized': {
        assert(outcome.kind === 'unauthorized', 'only a 401 or 403 makes the endpoint unauthorized')
        const { status, message } = outcome
        const facts = { clockOffsetMs: serviceClock.offsetMs(), accessKeyId: keyring.accessKeyId() }
        return { kind: 'unauthorized', status, requestId, message, ...facts }
      }
      case 'unchanged':
        return { kind: 'nothing' }
      default:
        return assertNever(verdict.endpoint)
    }
  }

  /** The batch stays sealed and waits. What must outlive the process is durable when it resolves. */
  async function hold(
    batches: BatchTable,
    { inFlight, outcome }: Submitted,
    verdict: Verdict,
  ): Promise<void> {
    const { batchId } = inFlight.batch
    const { wait, endpoint, heldAs } = verdict
    const why = verdict.why ?? reasonText(outcome)
    const requestId = requestIdOf(outcome)
    if (endpoint === 'failure') {
      inFlight.failuresAlone = failuresAlone(inFlight)
      inFlight.failedAtSuccess = successes
    }
    const retryAfterMs = retryAfterWaitOf(outcome) ?? 0
    const before = inFlight.held
    const held =
      heldAs === null ? before : { reason: heldAs, since: before?.since ?? clock.now(), requestId, why }
    const retryInMs = batches.rest(inFlight, wait, { retryAfterMs, held })
    if (heldAs === 'stuck') inFlight.stuck = true
    if (verdict.why !== null && endpoint !== 'wrapper')
      emit({ kind: 'batch_held', provider, batchId, why, requestId, retryInMs })
    if (heldAs === null) return
    batches.reportHeld(heldAs)
    if (before?.reason === heldAs) return
    if (before !== null) batches.reportHeld(before.reason)
    // A restart must not send all held batches before fresh data.
    inFlight.batch = await spool.setHeld(inFlight.batch, held)
  }

  async function carryOut(
    { inFlight, content }: Submitted,
    { settlement, reseal, operation, why }: Verdict,
    session: PipelineSession,
  ): Promise<void> {
    if (reseal !== null) return cut(inFlight, reseal, why ?? 'The service refuses it as it is.', session)
    if (operation !== null)
      return replace(inFlight, [await spool.setOperation(inFlight.batch, operation)], session)
    if (settlement === null) return
    await settle(inFlight, content, settlement)
    session.batches.remove(inFlight)
    ended(session.batches, inFlight)
  }

  function ended(batches: BatchTable, inFlight: InFlightBatch): void {
    refusals.leave(inFlight)
    const reason = inFlight.held?.reason
    if (reason !== undefined) batches.reportHeld(reason)
  }

  /** Durable when it resolves; rejects as spool.settle() does. */
  async function settle(
    { batch, entries }: InFlightBatch,
    content: BatchContent,
    settlement: Settlement,
  ): Promise<void> {
    const { lane, batchId } = batch
    const { requestId, payloads: settlements } = settlement
    const at = serviceClock.signingAt()
    const settled = { provider, requestId, at, settlements }
    const receipt =
      entries === null || !deps.ledger ? null : encodeReceipt({ ...settled, lane, batchId, entries })
    await spool.settle(batch, settlement, receipt)
    if (entries !== null) deps.settled?.({ ...settled, entries })
    const counts = count(batch, content, settlement)
    if (counts.delivered > 0) lastAcceptedAt = clock.now()
    counters.settled(counts)
    deps.rate.add(counts.delivered)
    watch.settled(counts)
    emit({ kind: 'batch_settled', provider, lane, batchId, requestId, ...counts })
  }

  /** Counts the payloads, and emits an event for each dead letter. */
  function count(
    { batchId, payloads: all }: Batch,
    content: BatchContent,
    { payloads, requestId }: Settlement,
  ): { delivered: number; retried: number; dead: number } {
    const counts = { delivered: 0, retried: 0, dead: 0 }
    if (payloads === 'all delivered') return { ...counts, delivered: all }
    for (const [index, payload] of payloads.entries()) {
      if (payload.kind === 'delivered') counts.delivered += 1
      else if (payload.kind === 'retry') counts.retried += 1
      else if (payload.kind === 'dead') {
        counts.dead += 1
        const { reason, detail } = payload
        const payloadId = content.payloadIds()[index] ?? ''
        emit({ kind: 'payload_dead_lettered', provider, batchId, payloadId, reason, detail, requestId })
      }
    }
    return counts
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
