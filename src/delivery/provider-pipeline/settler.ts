// settler.ts: carries a verdict out: settles or holds the batch, counts it, tells it.
//
// It keeps what a verdict needs to know beyond its own batch: how many batches in a row were answered with
// nothing accepted, and how many succeeded, by which a batch that fails alone is told from an outage.

import { assertNever } from '../../std/assert.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { Settlement } from '../../domain/settlement.ts'
import type { BatchContent, Spool } from '../../spool/spool.ts'
import type { Report } from '../policy/endpoint.ts'
import type { InFlightBatches, InFlightBatch } from '../policy/in-flight-batches.ts'
import type { Isolation } from '../policy/isolation.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import type { SizeLimit } from '../policy/size-limit.ts'
import { createRate } from '../delivery-counters.ts'
import type { CounterSet } from '../delivery-counters.ts'
import { judge as judgeByTable } from '../policy/verdict.ts'
import type { Verdict } from '../policy/verdict.ts'

export type Settler = {
  submitted(inHand: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void
  judge(inHand: InFlightBatch, content: BatchContent, outcome: Outcome): Verdict
  /** The batch stays sealed and rests. */
  hold(hand: InFlightBatches, inHand: InFlightBatch, outcome: Outcome, verdict: Verdict): void
  /** Durable when it resolves; rejects as spool.settle() does. */
  settle(inHand: InFlightBatch, content: BatchContent, settlement: Settlement): Promise<void>
  /** What the endpoint is told. */
  report(inHand: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report
  last(): { lastRequestId: string | null; lastSuccessAt: EpochMs | null }
  ratePerS(): number
}

/** Others that were refused shall not wait for these: they may rest for ever. */
const waitsLong: readonly Verdict['wait'][] = ['witness', 'slow', 'room']

type Known = { alone: boolean; accessKeyId: string | null; clockOffsetMs: number | null }

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  tally: CounterSet
  isolation: Isolation
  sizeLimit: SizeLimit
  serviceClock: Pick<ServiceClock, 'signingAt'>
}

export function createSettler(deps: Deps, options: ProviderOptions): Settler {
  const { spool, clock, emit, tally, isolation, sizeLimit, serviceClock } = deps
  const provider = options.name
  const { emptyAnswersToUnavailable, refusalsToUnavailable } = options.backoff
  const policy = { ...options, emptyAnswersToUnavailable, refusalsToUnavailable }
  const rate = createRate({ clock })
  let emptyAnswers = 0
  let successes = 0
  let lastRequestId: string | null = null
  let lastSuccessAt: EpochMs | null = null

  return {
    submitted,
    judge,
    hold,
    settle,
    report,
    last: () => ({ lastRequestId, lastSuccessAt }),
    ratePerS: () => rate.perS(),
  }

  function submitted(inHand: InFlightBatch, outcome: Outcome, bytes: number, tookMs: number): void {
    const { lane, batchId, payloads } = inHand.batch
    if ('requestId' in outcome && outcome.requestId !== null) lastRequestId = outcome.requestId
    tally.submitted(outcome, bytes)
    emit({
      kind: 'submission_ended',
      provider,
      lane,
      batchId,
      payloads,
      bytes,
      attempt: inHand.submissions,
      tookMs,
      outcome,
    })
  }

  function judge(inHand: InFlightBatch, content: BatchContent, outcome: Outcome): Verdict {
    const { role, batchId, operation: turn } = inHand.batch
    const { earlierResults } = inHand
    const sentBefore = inHand.sentBefore || inHand.submissions > 1
    const facts = {
      // Looked at only where an answer is not simply "all of them".
      get payloadIds() {
        return content.payloadIds
      },
      get attempts() {
        return content.attempts
      },
      payloads: inHand.batch.payloads,
      role,
      sentBefore,
      earlierResults,
      emptyAnswers,
      turn,
      refusedInRow: isolation.refusedInRow,
      witnessed: isolation.witnessed(inHand),
      mayIsolate: isolation.mayIsolate(inHand),
    }
    const verdict = whereRoom(apart(inHand, judgeByTable(outcome, facts, policy)))
    if (verdict.empty === 'one more') emptyAnswers += 1
    if (verdict.empty === 'reset') emptyAnswers = 0
    if (verdict.results !== null) inHand.earlierResults = verdict.results
    if (outcome.kind === 'refused') {
      isolation.refused(inHand)
      if (outcome.status === 413) sizeLimit.tooLarge(content.bodyBytes)
    }
    if (verdict.endpoint === 'success') {
      successes += 1
      lastSuccessAt = clock.now()
      sizeLimit.accepted(content.bodyBytes)
      // That a single payload was taken says nothing about how the service takes batches.
      if (turn === options.mode) isolation.accepted()
    }
    if (verdict.oddities.length > 0) {
      const requestId = requestIdOf(outcome)
      emit({ kind: 'answer_inconsistent', provider, batchId, requestId, deviations: verdict.oddities })
    }
    return verdict
  }

  /** Nothing may be buried while the dead letters are full: the batch rests as it is, and goes again later. */
  function whereRoom(verdict: Verdict): Verdict {
    const fates = verdict.settlement?.payloads ?? 'all delivered'
    if (!spool.deadLettersFull || fates === 'all delivered' || fates.every(({ kind }) => kind !== 'dead'))
      return verdict
    const held = 'A payload would become a dead letter, and those are full.'
    return { ...verdict, settlement: null, wait: 'room', held }
  }

  /** A 403 for the same batch twice, with successes of others between, is about the batch and not the account. */
  function apart(inHand: InFlightBatch, verdict: Verdict): Verdict {
    if (verdict.endpoint !== 'unauthorized') return verdict
    const before = inHand.forbiddenAtSuccess
    inHand.forbiddenAtSuccess = successes
    if (before === null || before === successes) return verdict
    const why = 'The service refuses this batch as unauthorized again, while it accepted others.'
    return { ...verdict, wait: 'slow', endpoint: 'refused', held: why }
  }

  function hold(hand: InFlightBatches, inHand: InFlightBatch, outcome: Outcome, verdict: Verdict): void {
    const { batchId } = inHand.batch
    if (verdict.endpoint === 'failure') noteFailure(inHand)
    const retryAfterMs = outcome.kind === 'unavailable' ? (outcome.retryAfterMs ?? 0) : 0
    const retryInMs = hand.rest(inHand, verdict.wait, { failed: verdict.wait === 'backoff', retryAfterMs })
    if (waitsLong.includes(verdict.wait) || inHand.stuck) isolation.leave(inHand)
    if (verdict.held === null || verdict.endpoint === 'wrapper') return
    emit({
      kind: 'batch_held',
      provider,
      batchId,
      why: verdict.held,
      requestId: requestIdOf(outcome),
      retryInMs,
    })
  }

  function noteFailure(inHand: InFlightBatch): void {
    if (successes > inHand.failedAtSuccess) inHand.failuresAlone += 1
    inHand.failedAtSuccess = successes
    if (inHand.stuck || inHand.failuresAlone < options.backoff.failuresToStuck) return
    inHand.stuck = true
    emit({ kind: 'batch_stuck', provider, batchId: inHand.batch.batchId, failures: inHand.failures + 1 })
  }

  async function settle(inHand: InFlightBatch, content: BatchContent, settlement: Settlement): Promise<void> {
    const { batch } = inHand
    await spool.settle(batch, settlement, receiptOf(inHand, settlement))
    const counts = { delivered: 0, retried: 0, dead: 0 }
    const { payloads: fates, requestId } = settlement
    if (fates === 'all delivered') counts.delivered = batch.payloads
    else
      fates.forEach((fate, index) => {
        if (fate.kind === 'delivered') counts.delivered += 1
        else if (fate.kind === 'retry') counts.retried += 1
        else {
          counts.dead += 1
          const { reason, detail } = fate
          const payloadId = content.payloadIds[index] ?? ''
          emit({
            kind: 'payload_dead_lettered',
            provider,
            batchId: batch.batchId,
            payloadId,
            reason,
            detail,
            requestId,
          })
        }
      })
    tally.settled(counts)
    rate.add(counts.delivered)
    emit({ kind: 'batch_settled', provider, lane: batch.lane, batchId: batch.batchId, requestId, ...counts })
    if (inHand.stuck) emit({ kind: 'batch_unstuck', provider, batchId: batch.batchId })
  }

  function receiptOf(
    { batch, entries }: InFlightBatch,
    { payloads: fates, requestId }: Settlement,
  ): Buffer | null {
    if (entries === null) return null
    const { lane, batchId } = batch
    const at = serviceClock.signingAt()
    return encodeReceipt({ provider, lane, batchId, requestId, at, entries, settlements: fates })
  }

  function report(inHand: InFlightBatch, outcome: Outcome, verdict: Verdict, known: Known): Report {
    const requestId = requestIdOf(outcome)
    const why = verdict.held ?? wordsFor(outcome)
    switch (verdict.endpoint) {
      case 'success':
        return { kind: 'success' }
      case 'failure': {
        const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : null
        const { batchId } = inHand.batch
        const { alone } = known
        return { kind: 'failure', batchId, why, requestId, retryAfterMs, alone, ...reasonOf(outcome) }
      }
      case 'refused':
        return { kind: 'refused', why, requestId }
      case 'outage':
        return { kind: 'outage', why, requestId }
      case 'isolating':
        return { kind: 'isolating' }
      case 'wrapper':
        return { kind: 'wrapper', why, requestId }
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

function reasonOf(outcome: Outcome): { reason?: UnreachableReason; act?: string } {
  if (outcome.kind !== 'unreachable') return {}
  const { reason, act } = outcome
  return act === undefined ? { reason } : { reason, act }
}

function requestIdOf(outcome: Outcome): string | null {
  return 'requestId' in outcome ? outcome.requestId : null
}

function wordsFor(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}: ` : ''
  return 'message' in outcome ? `${status}${outcome.message}` : outcome.kind
}
