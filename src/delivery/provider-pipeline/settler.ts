// settler.ts: asks for the verdict on an outcome and carries it out: settles or holds the batch, counts,
// emits events.
//
// It keeps the facts that a verdict needs beyond its own batch: how many batches in a row were answered with
// nothing accepted, and how many succeeded. They distinguish a batch that fails alone from an outage.

import { assertNever } from '../../std/assert.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Settlement } from '../../domain/settlement.ts'
import type { State } from '../../domain/condition-state.ts'
import type { BatchContent, Spool } from '../../spool/spool.ts'
import { createRate, type CounterSet } from '../delivery-counters.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { Report } from '../policy/endpoint.ts'
import { createForbiddenLimit } from '../refusals/forbidden-limit.ts'
import type { ForbiddenTrial } from '../refusals/forbidden-trial.ts'
import type { InFlightBatches } from '../policy/in-flight-batches.ts'
import type { Forbidden, InFlightBatch } from '../policy/types.ts'
import type { Isolation } from '../refusals/isolation.ts'
import type { Facts, Verdict } from '../policy/policy.ts'
import type { SizeLimit } from '../pacing/size-limit.ts'
import { judge as judgeByTable } from '../policy/verdict.ts'
import { forbiddenReason } from '../refusals/refusals.ts'
import type { Suspects } from '../refusals/suspects.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import { createAcceptance } from '../watch/acceptance.ts'
import type { Watch } from '../watch/watch.ts'
import { createSettleReceipts } from './settle-receipts.ts'
import type { AnsweredBatch, PipelineDeps } from './types.ts'
import { reportHeld } from './held-report.ts'
import {
  answerOf,
  answersMax,
  reasonText,
  requestIdOf,
  retryAfterWaitOf,
  unreachableOf,
} from './outcome-text.ts'

/**
 * Where a request succeeded so recently, a 403 without another batch to compare with is not called ours yet.
 */
const recentMs = 60_000

export type Settler = {
  submitted(inFlight: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void
  judge(answered: AnsweredBatch): Verdict
  /** The batch stays sealed and waits. What must outlive the process is durable when it resolves. */
  hold(batches: InFlightBatches, inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict): Promise<void>
  /** The batch is settled or replaced. */
  ended(batches: InFlightBatches, inFlight: InFlightBatch): void
  /** Durable when it resolves; rejects as spool.settle() does. */
  settle(inFlight: InFlightBatch, content: BatchContent, settlement: Settlement): Promise<void>
  /** The verdict as the endpoint needs it. */
  report(inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report
  last(): { lastRequestId: string | null; lastAcceptedAt: EpochMs | null }
  ratePerS(): number
  states(): readonly State[]
}

type Known = { alone: boolean; probe: boolean; accessKeyId: string | null; clockOffsetMs: number | null }

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  counters: CounterSet
  isolation: Isolation
  suspects: Suspects
  trial: ForbiddenTrial
  sizeLimit: SizeLimit
  serviceClock: Pick<ServiceClock, 'signingAt'>
  watch: Pick<Watch, 'settled'>
} & Pick<PipelineDeps, 'ledger' | 'settled'>

export function createSettler(deps: Deps, options: ProviderOptions): Settler {
  const { spool, clock, emit, counters, isolation, suspects, trial, sizeLimit } = deps
  const provider = options.name
  const rate = createRate({ clock })
  const forbiddenLimit = createForbiddenLimit({ clock })
  const receipts = createSettleReceipts({ ...deps, provider })
  const acceptance = createAcceptance({ clock }, { provider })
  let successes = 0
  let succeededAtMs = Number.NEGATIVE_INFINITY
  let lastRequestId: string | null = null
  let lastAcceptedAt: EpochMs | null = null

  return {
    submitted,
    judge,
    hold,
    ended,
    settle,
    report,
    last: () => ({ lastRequestId, lastAcceptedAt }),
    ratePerS: () => rate.perS(),
    states: acceptance.states,
  }

  function submitted(inFlight: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void {
    const { lane, batchId, payloads } = inFlight.batch
    const attempt = inFlight.submissions
    inFlight.answers = [...inFlight.answers, answerOf(outcome, clock.now())].slice(-answersMax)
    lastRequestId = requestIdOf(outcome) ?? lastRequestId
    counters.submitted(outcome, bytes)
    emit({ kind: 'submission_ended', provider, lane, batchId, payloads, bytes, attempt, tookMs, outcome })
  }

  function judge(answered: AnsweredBatch): Verdict {
    const { inFlight, outcome } = answered
    const { batchId } = inFlight.batch
    const facts = factsOf(answered)
    const verdict = judgeByTable(outcome, facts, { ...options.backoff, ...options })
    if (verdict.resubmit) return verdict
    acceptance.judged(verdict, requestIdOf(outcome))
    if (verdict.results !== null) inFlight.earlierResults = verdict.results
    remember(answered, facts)
    if (verdict.endpoint === 'success') succeeded(answered)
    const { deviations } = verdict
    if (deviations.length > 0)
      emit({ kind: 'answer_inconsistent', provider, batchId, requestId: requestIdOf(outcome), deviations })
    return verdict
  }

  /** What later answers to the batch are judged by. */
  function remember({ inFlight, content, outcome, written }: AnsweredBatch, facts: Facts): void {
    const refused = outcome.kind === 'refused'
    const isLongAnswer = outcome.kind === 'unreadable' && outcome.tooLarge === true
    const tooLarge = refused ? outcome.status === 413 : isLongAnswer
    if (tooLarge) sizeLimit.tooLarge(content.bodyBytes)
    const isAtFault = refused || facts.forbidden === 'alone'
    // The next refusal of a held batch shows nothing new about the service.
    const isNews = !facts.mayBeProcessed && inFlight.held === null
    if (isAtFault) isolation.refused(inFlight, isNews)
    inFlight.refusals = refused ? inFlight.refusals + 1 : 0
    inFlight.interruptions = outcome.kind === 'interrupted' ? inFlight.interruptions + 1 : 0
    inFlight.longAnswers = isLongAnswer ? inFlight.longAnswers + 1 : 0
    if (written && !refused && outcome.kind !== 'unauthorized') inFlight.mayBeProcessed = true
  }

  function succeeded({ inFlight, content }: AnsweredBatch): void {
    successes += 1
    succeededAtMs = clock.monotonic()
    sizeLimit.accepted(content.bodyBytes)
    // An accepted single payload does not show that the service accepts batches.
    if (inFlight.batch.operation === options.mode) isolation.accepted(inFlight)
    suspects.accepted(inFlight.batch.payloads)
  }

  function factsOf(answered: AnsweredBatch): Facts {
    const { inFlight, content, outcome, number, mayResubmit, alone } = answered
    const { payloads, role, operation } = inFlight.batch
    const { earlierResults, stuck, mayBeProcessed, forbiddenAt } = inFlight
    const { refusals, interruptions, longAnswers } = inFlight
    return {
      // Read only where an answer is not simply "all of them".
      payloadIds() {
        return content.payloadIds()
      },
      attempts() {
        return content.attempts()
      },
      payloads,
      role,
      operation,
      mayBeProcessed,
      refusals,
      interruptions,
      longAnswers,
      isHeld: inFlight.held !== null,
      earlierResults,
      suspects: () => suspects.among(payloads, content.payload),
      faultShare: suspects.share(),
      ...acceptance.facts(),
      refusedInRow: isolation.refusedInRow(),
      acceptedSince: isolation.acceptedSince(inFlight),
      mayIsolate: isolation.mayIsolate(inFlight),
      mayResubmit,
      forbiddenConfirmed: forbiddenAt !== null && trial.lastAccepted() > forbiddenAt,
      forbidden: outcome.kind === 'unauthorized' ? whoIsForbidden(inFlight, number, mayResubmit) : 'unknown',
      forbiddenLimitReached: forbiddenLimit.reached(),
      alone() {
        return alone() && clock.monotonic() - succeededAtMs > recentMs
      },
      failuresAlone: failuresAlone(inFlight),
      stuck,
      deadLettersFull: spool.deadLettersFull(),
    }
  }

  function whoIsForbidden(inFlight: InFlightBatch, number: number, mayResubmit: boolean): Forbidden {
    // With other credentials it may be accepted; then the answer was about none of the batches.
    return mayResubmit && !inFlight.forbiddenAlone ? 'unknown' : trial.forbidden(inFlight, number)
  }

  /** As it is when this submission fails: others succeeded since the last failure, or not. */
  function failuresAlone(inFlight: InFlightBatch): number {
    return inFlight.failuresAlone + (successes > inFlight.failedAtSuccess ? 1 : 0)
  }

  async function hold(
    batches: InFlightBatches,
    inFlight: InFlightBatch,
    outcome: Outcome,
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
    if (held !== null) isolation.leave(inFlight)
    if (verdict.why !== null && endpoint !== 'wrapper')
      emit({ kind: 'batch_held', provider, batchId, why, requestId, retryInMs })
    if (heldAs === null) return
    reportHeld(emit, batches, { provider, reason: heldAs })
    if (before?.reason === heldAs) return
    if (before !== null) reportHeld(emit, batches, { provider, reason: before.reason })
    // A restart must not send all held batches before fresh data.
    inFlight.batch = await spool.setHeld(inFlight.batch, held)
  }

  function ended(batches: InFlightBatches, inFlight: InFlightBatch): void {
    isolation.leave(inFlight)
    trial.leave(inFlight)
    const reason = inFlight.held?.reason
    if (reason !== undefined) reportHeld(emit, batches, { provider, reason })
  }

  async function settle(
    inFlight: InFlightBatch,
    content: BatchContent,
    settlement: Settlement,
  ): Promise<void> {
    const { lane, batchId } = inFlight.batch
    const { requestId } = settlement
    const receipt = receipts.begin(inFlight, settlement)
    await spool.settle(inFlight.batch, settlement, receipt.bytes)
    receipt.end()
    const counts = count(inFlight, content, settlement)
    if (counts.delivered > 0) lastAcceptedAt = clock.now()
    counters.settled(counts)
    rate.add(counts.delivered)
    deps.watch.settled(counts)
    emit({ kind: 'batch_settled', provider, lane, batchId, requestId, ...counts })
  }

  /** Counts the payloads, and emits an event for each dead letter. */
  function count(
    { batch: { batchId, payloads: all } }: InFlightBatch,
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
        if (reason === forbiddenReason) forbiddenLimit.add()
        if (all === 1) suspects.guilty(content.payload(0), payload.failure?.validationErrorDetails ?? [])
        const payloadId = content.payloadIds()[index] ?? ''
        emit({ kind: 'payload_dead_lettered', provider, batchId, payloadId, reason, detail, requestId })
      }
    }
    return counts
  }

  function report(inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report {
    const requestId = requestIdOf(outcome)
    const why = verdict.why ?? reasonText(outcome)
    // A held batch fails while others succeed, so it does not show what the endpoint does.
    const shows = inFlight.held === null || known.probe
    if (!shows && (verdict.endpoint === 'failure' || verdict.endpoint === 'refused'))
      return { kind: 'nothing' }
    switch (verdict.endpoint) {
      case 'success':
        return { kind: 'success' }
      case 'failure': {
        const retryAfterMs = retryAfterWaitOf(outcome)
        const { batchId } = inFlight.batch
        const { alone } = known
        return { kind: 'failure', batchId, why, requestId, retryAfterMs, alone, ...unreachableOf(outcome) }
      }
      case 'refused':
      case 'isolating':
      case 'outage':
      case 'wrapper':
        return { kind: verdict.endpoint, why, requestId }
      case 'unauthorized': {
        const { accessKeyId, clockOffsetMs } = known
        const { status, message } = outcome.kind === 'unauthorized' ? outcome : { status: 403, message: why }
        return { kind: 'unauthorized', status, requestId, message, clockOffsetMs, accessKeyId }
      }
      case 'unchanged':
        return { kind: 'nothing' }
      default:
        return assertNever(verdict.endpoint)
    }
  }
}
