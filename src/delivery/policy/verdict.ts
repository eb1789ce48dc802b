// verdict.ts: what follows from each outcome. The only place where something becomes final (invariant 10).
//
// outcome                           payloads                                        wait         endpoint
// answered, in `accepted`           delivered                                       -            success
// answered, in `failed`             next step of its errorType (retry-delays.ts);   -            success
//                                   after the last step: dead letter
//   errorType declared `delivered`  delivered                                       -            success
//   nothing accepted for the third live or backfill batch in a row, not only Validation
//                                   first step of its errorType, uncounted          -            outage
//   until the endpoint is available again, whatever the answer and the lane
//                                   the same                                        -            success
//   nothing accepted, a last step, not Validation, and the service accepted nothing lately, or may only
//   repeat an answer of before      the same                                        -            success
// answered, in neither list         the same sealed batch once more                 backoff      success
//   again                           as failed, of type Unconfirmed                  -            success
//   none of the batch, first time   the same sealed batch once more                 backoff      refused
//   none of the batch, again        held: unlisted                                  slow         refused
// unreadable, because it has more than 8 MiB: batches get smaller
//   first time                      the same sealed batch once more                 backoff      unchanged
//   again                           held: incomplete_answer                         slow         unchanged
// in both lists, foreign ids, ...   the lists are believed, `failed` wins           -            success
// accepted_single (202)             delivered                                       -            success
//   for a batch request             held                                            backoff      failure
//   of a refused batch, nothing accepted since: the wrapper is at fault             -            wrapper
// refused (400, 413)
//   may have been processed before, on_refused_repeat is hold:
//     first and second refusal      the same sealed batch again                     backoff      isolating
//       of a held batch             held: refused_repeat                            backoff      isolating
//     third                         held: refused_repeat                            slow         isolating
//   more than one payload           halved, under new batchIds                      -            isolating
//     from the twelfth refusal in a row of one batch and its parts
//                                   held: not_accepted                              slow         isolating
//   one payload                     sent by the single operation                    -            isolating
//   refused there too               dead letter, if another was accepted since it was first refused
//                                                                                   -            isolating
//                                   else held: not_accepted                         acceptance   isolating
//   from the twelfth in a row       as above, without dead letters                               wrapper
// repeated (409), processed before  by on_repeat: held: repeated                    slow         refused
//                                   delivered                                       -            success
//                                   resent under a new batchId                      -            isolating
// repeated (409), never sent        held: repeated                                  slow         refused
// unauthorized (401, 403)           once until the next success: credentials are read again and the batch is
//                                   submitted again at once                         -            unchanged
//   the Date shows another time     submitted again at once, twice at most          -            unchanged
//   still                           held until others show whom it is about         others       unchanged
//     none other is due             the same                                        others       unauthorized
//     three others too              held                                            none         unauthorized
//   others accepted since           the 403 is about this batch: halved, as after a 400
//     401, one payload, may be processed, or the twelfth in a row of one batch and its parts
//                                   held: forbidden                                 slow         refused
// unavailable (408, 425, 429, 5xx), unreachable, unreadable, unexpected
//                                   held                                            backoff      failure
//   Retry-After beyond the longest back-off, while others succeed
//                                   held: deferred                                  backoff      failure
//   third time while others succeed held: stuck                                     stuck        failure
// interrupted                       held                                            backoff      unchanged
//   twice in a row                  held: stuck                                     stuck        unchanged
// aborted                           held                                            none         unchanged
//
// Over all rows: where a payload would become a dead letter and the dead letters are full, it waits in a
// retry lane, uncounted. A stuck batch stays stuck: its backoff is `stuck` from then on, and
// its failures count against the endpoint only as a probe.
//
// Held means: the same sealed batch again, same batchId, same bytes. Where a reason is named the batch is no
// longer in hand (batch-table.ts) and a condition says so. The rest of the retry policy is in files
// that this one calls or gets its facts from, and that settle nothing themselves: retry-delays (the steps of
// each errorType, their delays, and that the last one ends in a dead letter), backoff (length of each wait),
// batch-table (what ends a wait early), endpoint (when it is unavailable, its probes), refusals (what
// several refusals say; one payload at fault among 500 costs 18 further batch requests and one single),
// batch-parts (cuts before sending), concurrency (halved by `failure`), size-limit (lowered by a 413).

import { assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { PayloadSettlement } from '../../domain/settlement.ts'
import type { HeldReason } from '../../domain/held.ts'
import { reasonText } from '../provider-pipeline/outcome-text.ts'
import { evenly } from './batch-parts.ts'
import { detailOf, mergeResults, unanswered, unconfirmed } from './payload-results.ts'
import type { Facts, RetryPolicy, Verdict } from './policy.ts'
import { settlementsOf, uncounted } from './retry-delays.ts'

/** Of a dead letter that the service refused by a status, not by an `errorType`. */
const refusedReason = 'Refused'

/** The same bytes are submitted so often before a batch that may have been processed is held. */
const refusalsToHold = 3

export function judge(outcome: Outcome, facts: Facts, policy: RetryPolicy): Verdict {
  const judged = judgeOutcome(outcome, facts, policy)
  const verdict = facts.deadLettersFull ? withoutDead(judged, policy) : judged
  const stuck =
    facts.stuck || (verdict.endpoint === 'failure' && facts.failuresAlone >= policy.failuresToStuck)
  if (!stuck || verdict.wait !== 'backoff') return verdict
  const why = verdict.why ?? `It failed while other batches succeeded; last: ${reasonText(outcome)}`
  return { ...verdict, wait: 'stuck', heldAs: 'stuck', why }
}

function judgeOutcome(outcome: Outcome, facts: Facts, policy: RetryPolicy): Verdict {
  switch (outcome.kind) {
    case 'answered':
      return judgeAnswer(outcome, facts, policy)
    case 'accepted_single':
      return judgeAcknowledgement(outcome.requestId, facts, policy)
    case 'refused':
      return judgeRefusal(outcome, facts, policy)
    case 'repeated':
      return judgeRepeat(outcome.requestId, facts, policy)
    case 'unauthorized':
      return judgeUnauthorized(outcome, facts, policy)
    case 'unavailable':
      return judgeUnavailable(outcome, facts, policy)
    case 'unreadable':
      if (outcome.tooLarge) return judgeTooLarge(facts)
      return held('backoff', 'failure', null)
    case 'unreachable':
      return held('backoff', 'failure', null)
    case 'unexpected': {
      const { status, message } = outcome
      const why = `The service answers ${status}, a status that its specification does not define: ${message}`
      return held('backoff', 'failure', why)
    }
    case 'interrupted': {
      if (facts.interruptions === 0) return held('backoff', 'unchanged', null)
      const why = 'The sender thread was lost twice in a row while it sent this batch.'
      return held('stuck', 'unchanged', why, 'stuck')
    }
    case 'aborted':
      return nothing
    default:
      return assertNever(outcome)
  }
}

/** Batches that wait for minutes must not fill the places of those in hand. */
function judgeUnavailable(
  { status, message, retryAfterMs }: Extract<Outcome, { kind: 'unavailable' }>,
  { failuresAlone }: Facts,
  { maxMs }: RetryPolicy,
): Verdict {
  if (failuresAlone === 0 || (retryAfterMs ?? 0) <= maxMs) return held('backoff', 'failure', null)
  const why = `The service answers ${status} and asks to send the batch much later: ${message}`
  return held('backoff', 'failure', why, 'deferred')
}

function judgeAcknowledgement(requestId: string | null, facts: Facts, { mode }: RetryPolicy): Verdict {
  const { payloads, operation, refusedInRow, acceptedSince } = facts
  // Only a request with one payload is acknowledged so; for a batch a 202 says nothing about its payloads.
  if (payloads !== 1 || operation !== 'single') return held('backoff', 'failure', null)
  const verdict = delivered(requestId)
  if (mode === 'single' || refusedInRow === 0 || acceptedSince) return verdict
  const why =
    'The service refuses batch requests but accepts a payload of a refused batch as a single request.'
  return { ...verdict, endpoint: 'wrapper', why }
}

type Answered = Extract<Outcome, { kind: 'answered' }>

function judgeAnswer(answer: Answered, facts: Facts, policy: RetryPolicy): Verdict {
  const { requestId, deviations } = answer
  // The usual case; it needs no comparison of ids.
  if (answer.accepted === 'all') return { ...delivered(requestId), deviations }

  const { accepted, failed } = answer
  const results = mergeResults({ accepted, failed }, facts.earlierResults)
  const missing = facts.payloadIds().filter((id) => !results.has(id)).length
  const allMissing = missing === facts.payloadIds().length
  if (missing > 0 && facts.earlierResults === null) {
    const endpoint = allMissing ? 'refused' : 'success'
    return { ...nothing, deviations, wait: 'backoff', endpoint, results }
  }
  if (allMissing) {
    const why = 'The service answered 200 twice without naming any payload of the batch.'
    return { ...held('slow', 'refused', why, 'unlisted'), deviations, results }
  }

  const payloads = settlementsOf(results, facts, policy.retryRules, unconfirmed)
  const settled: Verdict = {
    ...nothing,
    deviations,
    settlement: { payloads, requestId },
    endpoint: 'success',
  }
  const verdict: Verdict = payloads.some(({ kind }) => kind === 'delivered')
    ? { ...settled, emptyAnswers: 'reset' }
    : judgeNothingAccepted(settled, payloads, facts, policy)
  return facts.outage ? withUncounted(verdict, 'outage', policy, () => true) : verdict
}

/** The service answered, so this says nothing of the endpoint. */
function judgeTooLarge({ longAnswers }: Facts): Verdict {
  const why = 'The answer has more than 8 MiB, so the results are unknown.'
  if (longAnswers === 0) return held('backoff', 'unchanged', why)
  return held('slow', 'unchanged', why, 'incomplete_answer')
}

/** Nothing of the batch was accepted: its payloads are at fault, or it is an outage reported inside a 200. */
function judgeNothingAccepted(
  settled: Verdict,
  payloads: readonly PayloadSettlement[],
  facts: Facts,
  policy: RetryPolicy,
): Verdict {
  const retried = facts.role.kind === 'retry'
  // In a retry lane every payload failed before, so the whole batch may fail again. Such a batch does not
  // count as a sign of an outage.
  const inRow = facts.emptyAnswers + (retried ? 0 : 1)
  const answered: Verdict = { ...settled, emptyAnswers: retried ? 'unchanged' : 'increment' }
  if (inRow < policy.emptyAnswersToUnavailable) {
    const isProven = facts.acceptedLately && !facts.mayBeProcessed
    // Validation is the payload's own fault; any other type may be the service's.
    return withUncounted(answered, 'outage', policy, (payload) => {
      return payload.kind === 'dead' && payload.reason !== 'Validation' && !isProven
    })
  }
  const messages = new Map<string, string>()
  for (const payload of payloads) {
    if (!('failure' in payload) || payload.failure === null) continue
    const { errorType, errorMessage } = payload.failure
    if (!messages.has(errorType)) messages.set(errorType, errorMessage || 'no message')
  }
  const words = [...messages].slice(0, 3).map(([type, message]) => `${type} (${message})`)
  const nothingAccepted = retried ? null : words.join(', ')
  if ([...messages.keys()].every((type) => type === 'Validation')) return { ...answered, nothingAccepted }
  const what = `The service accepted none of the last ${inRow} batches: ${words.join(', ')}.`
  const why = `${what} This counts as an outage: the payloads are kept and no attempt is counted.`
  const kept = withUncounted(answered, 'outage', policy, () => true)
  return { ...kept, endpoint: 'outage', why, nothingAccepted }
}

function withoutDead(verdict: Verdict, policy: RetryPolicy): Verdict {
  return withUncounted(verdict, 'no_room', policy, ({ kind }) => kind === 'dead')
}

/** The payloads of `which` wait in a retry lane as if there had been no answer to them. */
function withUncounted(
  verdict: Verdict,
  why: 'outage' | 'no_room',
  { retryRules }: RetryPolicy,
  which: (payload: PayloadSettlement) => boolean,
): Verdict {
  const { settlement } = verdict
  if (settlement === null || settlement.payloads === 'all delivered') return verdict
  const payloads = settlement.payloads.map((one) => (which(one) ? uncounted(one, why, retryRules) : one))
  return { ...verdict, settlement: { ...settlement, payloads } }
}

type Refusal = Extract<Outcome, { kind: 'refused' }>

function judgeRefusal(refusal: Refusal, facts: Facts, policy: RetryPolicy): Verdict {
  const { status, message, details, requestId } = refusal
  const { payloads, operation } = facts
  if (facts.mayBeProcessed && policy.onRefusedRepeat === 'hold') {
    const answer = `The service answers ${status} to a batch that it may have processed before: ${message}`
    const isLast = facts.refusals + 1 >= refusalsToHold
    // The reason for which it is held already is not why it waits from now on.
    const heldAs = isLast || facts.isHeld ? 'refused_repeat' : null
    return held(isLast ? 'slow' : 'backoff', 'isolating', answer, heldAs)
  }
  const refusals = facts.refusedInRow + 1
  const isEverything = refusals >= policy.refusalsToUnavailable
  const endpoint = isEverything ? 'wrapper' : 'isolating'
  const answer = `${status}: ${message}`
  const why = isEverything ? `The service refused ${refusals} requests in a row: ${answer}` : answer
  if (operation === 'batch') {
    if (payloads === 1) return { ...nothing, operation: 'single', endpoint, why }
    return isAllRefused(facts, policy)
      ? held('slow', endpoint, why, 'not_accepted')
      : halved(facts, endpoint, why)
  }
  if (!facts.acceptedSince || isEverything) return held('acceptance', endpoint, why, 'not_accepted')
  const failure = {
    payloadId: facts.payloadIds()[0] ?? '',
    errorType: refusedReason,
    errorMessage: answer,
    validationErrorDetails: details,
  }
  const dead: PayloadSettlement = { kind: 'dead', reason: refusedReason, detail: detailOf(failure), failure }
  return { ...nothing, settlement: { payloads: [dead], requestId }, endpoint }
}

function halved({ payloads }: Facts, endpoint: Verdict['endpoint'], why: string): Verdict {
  return { ...nothing, reseal: evenly(payloads, 2), endpoint, why }
}

/** Nothing of the batch that it was cut from was accepted between. */
function isAllRefused({ refusedOfOrigin }: Facts, { refusalsToUnavailable }: RetryPolicy): boolean {
  return refusedOfOrigin + 1 >= refusalsToUnavailable
}

type Unauthorized = Extract<Outcome, { kind: 'unauthorized' }>

function judgeUnauthorized({ status, message }: Unauthorized, facts: Facts, policy: RetryPolicy): Verdict {
  if (facts.forbidden === 'all') return held('none', 'unauthorized', null)
  if (facts.forbidden === 'unknown') {
    if (facts.mayResubmit) return { ...nothing, resubmit: true }
    return held('other-batches', facts.alone() ? 'unauthorized' : 'unchanged', null)
  }
  const why = `The service answers ${status} to this batch and accepts others: ${message}`
  // A 401 is about a signature, so it says nothing about a payload.
  const isWhole = status === 401 || facts.mayBeProcessed || facts.payloads === 1
  if (isWhole || isAllRefused(facts, policy)) return held('slow', 'refused', why, 'forbidden')
  return halved(facts, 'isolating', why)
}

function judgeRepeat(requestId: string | null, facts: Facts, policy: RetryPolicy): Verdict {
  const { mayBeProcessed, payloads, earlierResults } = facts
  const { onRepeat, retryRules } = policy
  if (!mayBeProcessed || onRepeat === 'hold') {
    const when = mayBeProcessed ? 'was sent before' : 'was never sent completely from here'
    const why = `The service answers 409: it knows the batchId. The batch ${when}.`
    return held('slow', 'refused', why, 'repeated')
  }
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

// The forms that several rows share.

const nothing: Verdict = {
  settlement: null,
  reseal: null,
  operation: null,
  resubmit: false,
  wait: 'none',
  heldAs: null,
  endpoint: 'unchanged',
  why: null,
  deviations: [],
  results: null,
  nothingAccepted: null,
  emptyAnswers: 'unchanged',
}

function delivered(requestId: string | null): Verdict {
  const settlement = { payloads: 'all delivered' as const, requestId }
  return { ...nothing, settlement, endpoint: 'success', emptyAnswers: 'reset' }
}

function held(
  wait: Verdict['wait'],
  endpoint: Verdict['endpoint'],
  why: string | null,
  heldAs: HeldReason | null = null,
): Verdict {
  return { ...nothing, wait, endpoint, why, heldAs }
}
