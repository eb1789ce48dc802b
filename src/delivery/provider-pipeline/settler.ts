// settler.ts: asks for the verdict on an outcome and carries it out: settles or holds the batch, counts,
// emits events.
//
// It keeps the facts that a verdict needs beyond its own batch: how many batches in a row were answered with
// nothing accepted, and how many succeeded. They distinguish a batch that fails alone from an outage.

import { assertNever } from '../../std/assert.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'
import type { Settlement } from '../../domain/settlement.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { BatchContent, Spool } from '../../spool/spool.ts'
import type { CounterSet } from '../delivery-counters.ts'
import { createRate } from '../delivery-counters.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { Report } from '../policy/endpoint.ts'
import type { InFlightBatch, InFlightBatches } from '../policy/in-flight-batches.ts'
import type { Isolation } from '../policy/isolation.ts'
import type { Facts, Verdict } from '../policy/policy.ts'
import type { SizeLimit } from '../policy/size-limit.ts'
import { judge as judgeByTable } from '../policy/verdict.ts'
import type { ServiceClock } from '../transport/service-clock.ts'

export type Settler = {
  submitted(inFlight: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void
  judge(
    inFlight: InFlightBatch,
    content: BatchContent,
    outcome: Outcome,
    mayRenewCredentials: boolean,
  ): Verdict
  /** The batch stays sealed and waits. */
  hold(batches: InFlightBatches, inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict): void
  /** Durable when it resolves; rejects as spool.settle() does. */
  settle(inFlight: InFlightBatch, content: BatchContent, settlement: Settlement): Promise<void>
  /** The verdict as the endpoint needs it. */
  report(inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report
  last(): { lastRequestId: string | null; lastAcceptedAt: EpochMs | null }
  ratePerS(): number
}

/** Waits so long that other refused batches may be taken apart meanwhile. */
const longWaits: readonly Verdict['wait'][] = ['acceptance', 'slow', 'dead-letters']

type Known = { alone: boolean; accessKeyId: string | null; clockOffsetMs: number | null }

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  counters: CounterSet
  isolation: Isolation
  sizeLimit: SizeLimit
  serviceClock: Pick<ServiceClock, 'signingAt'>
}

export function createSettler(deps: Deps, options: ProviderOptions): Settler {
  const { spool, clock, emit, counters, isolation, sizeLimit, serviceClock } = deps
  const provider = options.name
  const policy = { ...options.backoff, ...options }
  const rate = createRate({ clock })
  let emptyAnswers = 0
  let successes = 0
  let lastRequestId: string | null = null
  let lastAcceptedAt: EpochMs | null = null

  return {
    submitted,
    judge,
    hold,
    settle,
    report,
    last: () => ({ lastRequestId, lastAcceptedAt }),
    ratePerS: () => rate.perS(),
  }

  function submitted(inFlight: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void {
    const { lane, batchId, payloads } = inFlight.batch
    const attempt = inFlight.submissions
    lastRequestId = requestIdOf(outcome) ?? lastRequestId
    counters.submitted(outcome, bytes)
    emit({ kind: 'submission_ended', provider, lane, batchId, payloads, bytes, attempt, tookMs, outcome })
  }

  function judge(
    inFlight: InFlightBatch,
    content: BatchContent,
    outcome: Outcome,
    mayRenewCredentials: boolean,
  ): Verdict {
    const { batchId, operation } = inFlight.batch
    const verdict = judgeByTable(outcome, factsOf(inFlight, content, mayRenewCredentials), policy)
    if (verdict.resubmit) return verdict
    if (verdict.emptyAnswers === 'increment') emptyAnswers += 1
    if (verdict.emptyAnswers === 'reset') emptyAnswers = 0
    if (verdict.results !== null) inFlight.earlierResults = verdict.results
    if (outcome.kind === 'unauthorized') inFlight.unauthorizedAtSuccess = successes
    if (outcome.kind === 'refused') {
      isolation.refused(inFlight)
      if (outcome.status === 413) sizeLimit.tooLarge(content.bodyBytes)
    }
    if (verdict.endpoint === 'success') {
      successes += 1
      lastAcceptedAt = clock.now()
      sizeLimit.accepted(content.bodyBytes)
      // An accepted single payload does not show that the service accepts batches.
      if (operation === options.mode) isolation.accepted()
    }
    const { deviations } = verdict
    if (deviations.length > 0)
      emit({ kind: 'answer_inconsistent', provider, batchId, requestId: requestIdOf(outcome), deviations })
    return verdict
  }

  function factsOf(inFlight: InFlightBatch, content: BatchContent, mayRenewCredentials: boolean): Facts {
    const { payloads, role, operation } = inFlight.batch
    const { unauthorizedAtSuccess, earlierResults, stuck } = inFlight
    return {
      // Read only where the answer did not accept all payloads.
      get payloadIds() {
        return content.payloadIds
      },
      get attempts() {
        return content.attempts
      },
      payloads,
      role,
      operation,
      sentBefore: inFlight.sentBefore || inFlight.submissions > 1,
      earlierResults,
      emptyAnswers,
      refusedInRow: isolation.refusedInRow,
      acceptedSince: isolation.acceptedSince(inFlight),
      mayIsolate: isolation.mayIsolate(inFlight),
      mayRenewCredentials,
      unauthorizedAlone: unauthorizedAtSuccess !== null && unauthorizedAtSuccess !== successes,
      failuresAlone: failuresAlone(inFlight),
      stuck,
      deadLettersFull: spool.deadLettersFull,
    }
  }

  /** As it is when this submission fails: others succeeded since the last failure, or not. */
  function failuresAlone(inFlight: InFlightBatch): number {
    return inFlight.failuresAlone + (successes > inFlight.failedAtSuccess ? 1 : 0)
  }

  function hold(batches: InFlightBatches, inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict): void {
    const { batchId } = inFlight.batch
    const { wait, endpoint, why } = verdict
    if (endpoint === 'failure') {
      inFlight.failuresAlone = failuresAlone(inFlight)
      inFlight.failedAtSuccess = successes
    }
    const retryAfterMs = outcome.kind === 'unavailable' ? (outcome.retryAfterMs ?? 0) : 0
    const retryInMs = batches.rest(inFlight, wait, { retryAfterMs })
    if (wait === 'stuck' && !inFlight.stuck) {
      inFlight.stuck = true
      emit({ kind: 'batch_stuck', provider, batchId, failures: inFlight.failures })
    }
    if (longWaits.includes(wait) || inFlight.stuck) isolation.leave(inFlight)
    if (why !== null && endpoint !== 'wrapper')
      emit({ kind: 'batch_held', provider, batchId, why, requestId: requestIdOf(outcome), retryInMs })
  }

  async function settle(
    inFlight: InFlightBatch,
    content: BatchContent,
    settlement: Settlement,
  ): Promise<void> {
    const { lane, batchId } = inFlight.batch
    const { requestId } = settlement
    await spool.settle(inFlight.batch, settlement, receiptOf(inFlight, settlement))
    const counts = count(inFlight, content, settlement)
    counters.settled(counts)
    rate.add(counts.delivered)
    emit({ kind: 'batch_settled', provider, lane, batchId, requestId, ...counts })
    if (inFlight.stuck) emit({ kind: 'batch_unstuck', provider, batchId })
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
      else {
        counts.dead += 1
        const { reason, detail } = payload
        const payloadId = content.payloadIds[index] ?? ''
        emit({ kind: 'payload_dead_lettered', provider, batchId, payloadId, reason, detail, requestId })
      }
    }
    return counts
  }

  function receiptOf({ batch, entries }: InFlightBatch, { payloads, requestId }: Settlement): Buffer | null {
    if (entries === null) return null
    const { lane, batchId } = batch
    const at = serviceClock.signingAt()
    return encodeReceipt({ provider, lane, batchId, requestId, at, entries, settlements: payloads })
  }

  function report(inFlight: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report {
    const requestId = requestIdOf(outcome)
    const why = verdict.why ?? reasonText(outcome)
    switch (verdict.endpoint) {
      case 'success':
      case 'isolating':
        return { kind: verdict.endpoint }
      case 'failure': {
        const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : null
        const { batchId } = inFlight.batch
        const { alone } = known
        return { kind: 'failure', batchId, why, requestId, retryAfterMs, alone, ...unreachableOf(outcome) }
      }
      case 'refused':
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

function unreachableOf(outcome: Outcome): { reason?: UnreachableReason; act?: string } {
  if (outcome.kind !== 'unreachable') return {}
  const { reason, act } = outcome
  return act === undefined ? { reason } : { reason, act }
}

function requestIdOf(outcome: Outcome): string | null {
  return 'requestId' in outcome ? outcome.requestId : null
}

/** A sentence for a person. */
function reasonText(outcome: Outcome): string {
  if (!('message' in outcome)) return `The outcome is ${outcome.kind}.`
  const text =
    'status' in outcome ? `The service answers ${outcome.status}: ${outcome.message}` : outcome.message
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
