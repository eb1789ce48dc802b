// refusals.ts: the entry file of what delivery does when the service refuses a whole request, with 400, 401,
// 403, 409 or 413: these rows of the verdict table (policy/verdict.ts).
//
//   isolation        finds the payload at fault by sending parts of the batch
//   batch-parts      into how many parts a batch is cut
//   suspects         what the last payloads at fault had in common with others
//   forbidden-trial  whether a 401 or 403 is about one batch or about us
//   forbidden-limit  how many payloads may become dead letters by 403
//
// A part has a new batchId, so the service cannot recognize what it may have processed. Only a batch whose
// earlier submissions were all refused, or never sent completely, is cut.

import type { Outcome } from '../../domain/outcome.ts'
import type { PayloadSettlement } from '../../domain/settlement.ts'
import { detailOf, unanswered } from '../policy/payload-results.ts'
import type { Facts, RetryPolicy, Verdict } from '../policy/policy.ts'
import { settlementsOf } from '../policy/retry-delays.ts'
import { delivered, held, nothing } from '../policy/verdict-forms.ts'
import { partsOfRefused } from './batch-parts.ts'

/** Reasons of a dead letter that the service refused by a status, not by an `errorType`. */
const refusedReason = 'Refused'
export const forbiddenReason = 'FORBIDDEN'

type Unauthorized = Extract<Outcome, { kind: 'unauthorized' }>
type Refusal = Extract<Outcome, { kind: 'refused' }>

/** An answer by which the service refuses a whole request. */
type Rejection = Omit<Refusal, 'kind' | 'status'> & { status: number }

/** The same bytes are submitted so often before a batch that may have been processed is held. */
const refusalsToHold = 3

export function judgeRefusal(refusal: Refusal, facts: Facts, policy: RetryPolicy): Verdict {
  if (!facts.mayBeProcessed || policy.onRefusedRepeat === 'split')
    return judgeRejection(refusal, facts, policy)
  const answer = `The service answers ${refusal.status} to a batch that it may have processed before`
  const why = `${answer}: ${refusal.message}`
  if (facts.refusals + 1 >= refusalsToHold) return held('slow', 'isolating', why, 'refused_repeat')
  // The reason for which it is held already is not why it waits from now on.
  return held('backoff', 'isolating', why, facts.isHeld ? 'refused_repeat' : null)
}

function judgeRejection(rejection: Rejection, facts: Facts, policy: RetryPolicy): Verdict {
  const { status, message } = rejection
  const { payloads, operation, refusedInRow, mayIsolate } = facts
  const answer = `${status}: ${message}`
  const refusals = refusedInRow + 1
  const everything = refusals >= policy.refusalsToUnavailable
  const endpoint = everything ? (status === 403 ? 'unauthorized' : 'wrapper') : 'isolating'
  const why = everything ? `The service refused ${refusals} requests in a row: ${answer}` : answer
  if (operation === 'single') return judgeSingle(rejection, { everything, endpoint, why }, facts)
  if (!mayIsolate) return held('isolation', endpoint, why)
  if (payloads === 1) return { ...nothing, operation: 'single', endpoint, why }
  const refused = { payloads, status, refusals, suspects: facts.suspects(), share: facts.faultShare }
  const parts = partsOfRefused(refused, policy)
  return { ...nothing, reseal: parts, endpoint, why }
}

type Judged = { everything: boolean; endpoint: Verdict['endpoint']; why: string }

/** One payload that the single operation refuses as well. */
function judgeSingle(rejection: Rejection, { everything, endpoint, why }: Judged, facts: Facts): Verdict {
  const { status, message, details, requestId } = rejection
  const forbidden = status === 403
  const proven = facts.acceptedSince && (!forbidden || facts.forbiddenConfirmed)
  if (!proven || everything) return held('acceptance', endpoint, why, 'not_accepted')
  if (forbidden && facts.forbiddenLimitReached) {
    const limit = `Ten payloads became dead letters by 403 within an hour, so this one is kept. ${why}`
    return held('slow', endpoint, limit, 'forbidden')
  }
  const reason = forbidden ? forbiddenReason : refusedReason
  const failure = {
    payloadId: facts.payloadIds()[0] ?? '',
    errorType: reason,
    errorMessage: `${status}: ${message}`,
    validationErrorDetails: details,
  }
  const dead: PayloadSettlement = { kind: 'dead', reason, detail: detailOf(failure), failure }
  return { ...nothing, settlement: { payloads: [dead], requestId }, endpoint }
}

export function judgeUnauthorized(answer: Unauthorized, facts: Facts, policy: RetryPolicy): Verdict {
  const { status, message, requestId } = answer
  if (facts.forbidden === 'all') return held('none', 'unauthorized', null)
  if (facts.forbidden === 'unknown') {
    if (facts.mayResubmit) return { ...nothing, resubmit: true }
    return held('other-batches', facts.alone() ? 'unauthorized' : 'unchanged', null)
  }
  const why = `The service answers ${status} to this batch and accepts others: ${message}`
  // A 401 is about a signature, so it says nothing about a payload.
  if (status === 401 || facts.mayBeProcessed) return held('slow', 'refused', why, 'forbidden')
  return judgeRejection({ status, message, details: [], requestId }, facts, policy)
}

export function judgeRepeat(requestId: string | null, facts: Facts, policy: RetryPolicy): Verdict {
  const { mayBeProcessed, payloads, earlierResults } = facts
  const { onRepeat, retryRules } = policy
  if (mayBeProcessed && onRepeat !== 'hold') {
    const isDelivered = onRepeat === 'delivered'
    const verdict: Verdict = isDelivered
      ? delivered(requestId)
      : { ...nothing, reseal: [payloads], endpoint: 'isolating' }
    if (earlierResults === null || earlierResults.size === 0) return verdict
    // What an earlier answer said of a payload stays true: refused is not delivered, accepted not sent again.
    const missing = isDelivered ? () => 'accepted' as const : unanswered
    const settled = settlementsOf(earlierResults, facts, retryRules, missing)
    return { ...verdict, reseal: null, settlement: { payloads: settled, requestId } }
  }
  const when = mayBeProcessed ? 'was sent before' : 'was never sent completely from here'
  const why = `The service answers 409: it knows the batchId. The batch ${when}.`
  return held('slow', 'refused', why, 'repeated')
}
