// settler.ts: carries a verdict out: settles or holds the batch, counts it, tells it.
//
// It keeps what a verdict needs to know beyond its own batch: how many batches in a row were answered with
// nothing accepted, and how many succeeded, by which a batch that fails alone is told from an outage.

import { assertNever } from '../std/assert.ts'
import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { BatchContent, Spool } from '../spool/spool.ts'
import type { Report } from './endpoint.ts'
import type { Hand, InHand } from './hand.ts'
import type { ProviderOptions } from './options.ts'
import { createRate } from './tally.ts'
import type { Tally } from './tally.ts'
import { judge as judgeByTable } from './verdict.ts'
import type { Verdict } from './verdict.ts'

export type Settler = {
  submitted(inHand: InHand, outcome: Outcome, bytes: number, tookMs: number): void
  judge(inHand: InHand, content: BatchContent, outcome: Outcome): Verdict
  /** The batch stays sealed and rests. */
  hold(hand: Hand, inHand: InHand, outcome: Outcome, verdict: Verdict): void
  /** Durable when it resolves; rejects as spool.settle() does. */
  settle(inHand: InHand, content: BatchContent, settlement: Settlement): Promise<void>
  /** What the endpoint is told. */
  report(inHand: InHand, outcome: Outcome, verdict: Verdict, known: Known): Report
  last(): { lastRequestId: string | null; lastSuccessAt: EpochMs | null }
  ratePerS(): number
}

type Known = { alone: boolean; accessKeyId: string | null; clockOffsetMs: number | null }

type Deps = { spool: Spool; clock: Clock; emit: Emit; tally: Tally }

export function createSettler({ spool, clock, emit, tally }: Deps, options: ProviderOptions): Settler {
  const provider = options.name
  const policy = { ...options, emptyAnswersToClose: options.pace.emptyAnswersToClose }
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

  function submitted(inHand: InHand, outcome: Outcome, bytes: number, tookMs: number): void {
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

  function judge(inHand: InHand, content: BatchContent, outcome: Outcome): Verdict {
    const { role, batchId } = inHand.batch
    const { earlier } = inHand
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
      earlier,
      emptyAnswers,
    }
    const verdict = apart(inHand, judgeByTable(outcome, facts, policy))
    if (verdict.empty === 'one more') emptyAnswers += 1
    if (verdict.empty === 'reset') emptyAnswers = 0
    if (verdict.remember !== null) inHand.earlier = verdict.remember
    if (verdict.endpoint === 'success') {
      successes += 1
      lastSuccessAt = clock.now()
    }
    if (verdict.oddities.length > 0) {
      const requestId = requestIdOf(outcome)
      emit({ kind: 'answer_odd', provider, batchId, requestId, oddities: verdict.oddities })
    }
    return verdict
  }

  /** A 403 for the same batch twice, with successes of others between, is about the batch and not the account. */
  function apart(inHand: InHand, verdict: Verdict): Verdict {
    if (verdict.endpoint !== 'unauthorized') return verdict
    const before = inHand.forbiddenAtSuccess
    inHand.forbiddenAtSuccess = successes
    if (before === null || before === successes) return verdict
    const why = 'The service refuses this batch as unauthorized again, while it accepted others.'
    return { ...verdict, wait: 'slow', endpoint: 'refused', held: why }
  }

  function hold(hand: Hand, inHand: InHand, outcome: Outcome, verdict: Verdict): void {
    const { batchId } = inHand.batch
    if (verdict.endpoint === 'failure') noteFailure(inHand)
    const retryAfterMs = outcome.kind === 'unavailable' ? (outcome.retryAfterMs ?? 0) : 0
    const retryInMs = hand.rest(inHand, verdict.wait, { failed: verdict.wait === 'backoff', retryAfterMs })
    if (outcome.kind === 'refused') {
      const { status, requestId, message } = outcome
      emit({ kind: 'wrapper_refused', provider, batchId, status, requestId, message, retryInMs })
    } else if (verdict.held !== null) {
      emit({
        kind: 'batch_held',
        provider,
        batchId,
        why: verdict.held,
        requestId: requestIdOf(outcome),
        retryInMs,
      })
    }
  }

  function noteFailure(inHand: InHand): void {
    if (successes > inHand.failedAtSuccess) inHand.failuresAlone += 1
    inHand.failedAtSuccess = successes
    if (inHand.stuck || inHand.failuresAlone < options.pace.failuresToStuck) return
    inHand.stuck = true
    emit({ kind: 'batch_stuck', provider, batchId: inHand.batch.batchId, failures: inHand.failures + 1 })
  }

  async function settle(inHand: InHand, content: BatchContent, settlement: Settlement): Promise<void> {
    const { batch } = inHand
    await spool.settle(batch, settlement)
    const counts = { delivered: 0, retried: 0, dead: 0 }
    const { fates, requestId } = settlement
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
            kind: 'payload_died',
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

  function report(inHand: InHand, outcome: Outcome, verdict: Verdict, known: Known): Report {
    const requestId = requestIdOf(outcome)
    const why = verdict.held ?? wordsFor(outcome)
    switch (verdict.endpoint) {
      case 'success':
        return { kind: 'success' }
      case 'failure': {
        const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : null
        const { batchId } = inHand.batch
        return { kind: 'failure', batchId, why, requestId, retryAfterMs, alone: known.alone }
      }
      case 'refused':
        return { kind: 'refused', why, requestId }
      case 'outage':
        return { kind: 'outage', why, requestId }
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

function requestIdOf(outcome: Outcome): string | null {
  return 'requestId' in outcome ? outcome.requestId : null
}

function wordsFor(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}: ` : ''
  return 'message' in outcome ? `${status}${outcome.message}` : outcome.kind
}
