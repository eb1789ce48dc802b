// verdict.ts: what follows from each outcome. The only place where something becomes final (invariant 10).
//
// outcome                           payloads                                        wait         endpoint
// answered, in `accepted`           delivered                                       -            success
// answered, in `failed`             next step of its errorType (retry-delays.ts);   -            success
//                                   after the last step: dead letter
//   errorType declared `delivered`  delivered                                       -            success
//   nothing accepted, nor in the live or backfill batch before, and a last step of a type other than
//   Validation                      held: not_accepted                              slow         success
//   nothing accepted for the third live or backfill batch in a row:
//     only Validation               its steps, as above                             -            success
//     any other type                held, no attempt counted                        backoff      outage
// answered, in neither list         the same sealed batch once more                 backoff      success
//   again                           as failed, of type Unconfirmed                  -            success
//   none of the batch, first time   the same sealed batch once more                 backoff      refused
//   none of the batch, again        held: unlisted                                  slow         refused
// answered, but the answer is not complete: once all payloads have a result, as above; until then the results
// are kept, and no payload counts as left out
//   it ended early                  held                                            backoff      failure
//   it passed max_response_bytes    held: incomplete_answer; batches get smaller    slow         success
//   nothing accepted                held: incomplete_answer                         slow         refused
// in both lists, foreign ids, ...   the lists are believed, `failed` wins           -            success
// accepted_single (202)             delivered                                       -            success
//   for a batch request             held                                            backoff      failure
//   of a refused batch, nothing accepted since: the wrapper is at fault             -            wrapper
// refused (400, 413)
//   may have been processed before, on_refused_repeat is hold:
//     first and second refusal      the same sealed batch again                     backoff      isolating
//     third                         held: refused_repeat                            slow         isolating
//   more than one payload           cut under new batchIds (batch-parts.ts)         -            isolating
//   while others are taken apart    held                                            isolation    isolating
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
//   still                           held until others show whom it is about         others       unchanged
//     none other is due             the same                                        others       unauthorized
//     three others too              held                                            none         unauthorized
//   again, others accepted since    the 403 is about this batch:
//     401, or may be processed      held: forbidden                                 slow         refused
//     else                          as refused by 400, but a dead letter only after the single request was
//                                   answered 403, another was accepted, and it was answered 403 again; and at
//                                   most ten an hour, then held: forbidden          slow         refused
// unavailable (408, 425, 429, 5xx), unreachable, unreadable, unexpected
//                                   held                                            backoff      failure
//   Retry-After beyond the longest back-off, while others succeed
//                                   held: deferred                                  backoff      failure
//   third time while others succeed held: stuck                                     stuck        failure
// interrupted                       held                                            backoff      unchanged
//   at two losses in a row          held: stuck                                     stuck        unchanged
// body_changed                      held                                            backoff      unchanged
// aborted                           held                                            none         unchanged
//
// Over all rows: where a payload would become a dead letter and the dead letters are full, the batch is held
// (dead_letters_full, wait dead-letters). A stuck batch stays stuck: its backoff is `stuck` from then on, and
// its failures count against the endpoint only as a probe.
//
// Held means: the same sealed batch again, same batchId, same bytes. Where a reason is named the batch is no
// longer in hand (held-batches.ts) and a condition says so. The rest of the retry policy is in files
// that this one calls or gets its facts from, and that settle nothing themselves: retry-delays (the steps of
// each errorType, their delays, and that the last one ends in a dead letter), backoff (length of each wait),
// in-flight-batches (what ends a wait early), endpoint (when it is unavailable, its probes), isolation and
// batch-parts (one payload at fault among 500 costs 18 further batch requests and one single; batch-parts
// also cuts before sending), concurrency (halved by `failure`), size-limit (lowered by a 413).

import { assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { PayloadSettlement } from '../../domain/settlement.ts'
import { judgeRefusal, judgeRepeat, judgeUnauthorized } from '../refusals/refusals.ts'
import { mergeResults, unconfirmed } from './payload-results.ts'
import type { PayloadResults } from './payload-results.ts'
import type { Facts, RetryPolicy, Verdict } from './policy.ts'
import { settlementOfFailure } from './retry-delays.ts'
import { delivered, held, nothing } from './verdict-forms.ts'

export function judge(outcome: Outcome, facts: Facts, policy: RetryPolicy): Verdict {
  const verdict = judgeOutcome(outcome, facts, policy)
  if (facts.deadLettersFull && deadReasonsOf(verdict).length > 0) {
    const why = 'A payload would become a dead letter, but the dead letters are full.'
    return { ...verdict, settlement: null, wait: 'dead-letters', heldAs: 'dead_letters_full', why }
  }
  const stuck =
    facts.stuck || (verdict.endpoint === 'failure' && facts.failuresAlone >= policy.failuresToStuck)
  if (!stuck || verdict.wait !== 'backoff') return verdict
  const why = verdict.why ?? `It failed while other batches succeeded; last: ${failureText(outcome)}`
  return { ...verdict, wait: 'stuck', heldAs: 'stuck', why }
}

function failureText(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}: ` : ''
  return 'message' in outcome ? `${status}${outcome.message}` : outcome.kind
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
    case 'unreachable':
    case 'unreadable':
      return held('backoff', 'failure', null)
    case 'unexpected': {
      const { status, message } = outcome
      const why = `The service answers ${status}, a status that its specification does not define: ${message}`
      return held('backoff', 'failure', why)
    }
    case 'interrupted': {
      const why = `The sender thread was lost ${outcome.losses} times in a row while it sent this batch.`
      return outcome.losses < 2
        ? held('backoff', 'unchanged', null)
        : held('stuck', 'unchanged', why, 'stuck')
    }
    case 'body_changed':
      return held('backoff', 'unchanged', `Not sent: ${outcome.message}.`)
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

  const { accepted, failed, complete } = answer
  const results = mergeResults({ accepted, failed, complete }, facts.earlierResults)
  const missing = facts.payloadIds().filter((id) => !results.has(id)).length
  const allMissing = missing === facts.payloadIds().length
  if (missing > 0 && !complete) return { ...judgeIncomplete(answer, results), deviations, results }
  if (missing > 0 && (facts.earlierResults === null || facts.earlierResults.partial)) {
    const endpoint = allMissing ? 'refused' : 'success'
    return { ...nothing, deviations, wait: 'backoff', endpoint, results }
  }
  if (allMissing) {
    const why = 'The service answered 200 twice without naming any payload of the batch.'
    return { ...held('slow', 'refused', why, 'unlisted'), deviations, results }
  }

  const payloads = facts.payloadIds().map((id, index): PayloadSettlement => {
    const result = results.get(id) ?? unconfirmed(id)
    if (result === 'accepted') return { kind: 'delivered' }
    return settlementOfFailure(result, facts.attempts()[index] ?? 0, policy.retryRules)
  })
  const settled: Verdict = {
    ...nothing,
    deviations,
    settlement: { payloads, requestId },
    endpoint: 'success',
  }
  if (payloads.some(({ kind }) => kind === 'delivered')) return { ...settled, emptyAnswers: 'reset' }
  return judgeNothingAccepted(settled, results, facts, policy)
}

/** It says nothing of the payloads that it does not name. */
function judgeIncomplete({ tooLarge }: Answered, results: PayloadResults): Verdict {
  if (!tooLarge) return held('backoff', 'failure', 'The answer ended before it named all payloads.')
  const some = [...results.values()].includes('accepted')
  const why =
    'The answer is larger than delivery.max_response_bytes and does not name all payloads until there.'
  return held('slow', some ? 'success' : 'refused', why, 'incomplete_answer')
}

function deadReasonsOf({ settlement }: Verdict): readonly string[] {
  if (settlement === null || settlement.payloads === 'all delivered') return []
  return settlement.payloads.flatMap((payload) => (payload.kind === 'dead' ? [payload.reason] : []))
}

/** Nothing of the batch was accepted: its payloads are at fault, or it is an outage reported inside a 200. */
function judgeNothingAccepted(
  settled: Verdict,
  results: PayloadResults,
  facts: Facts,
  policy: RetryPolicy,
): Verdict {
  const retried = facts.role.kind === 'retry'
  // In a retry lane every payload failed before, so the whole batch may fail again. Such a batch does not
  // count as a sign of an outage, but is held with the others.
  const inRow = facts.emptyAnswers + (retried ? 0 : 1)
  const emptyAnswers = retried ? 'unchanged' : 'increment'
  const { deviations } = settled
  if (inRow < policy.emptyAnswersToUnavailable) {
    // Validation is the payload's own fault; any other type may be the service's.
    const ownFaults = deadReasonsOf(settled).every((reason) => reason === 'Validation')
    if (facts.emptyAnswers === 0 || ownFaults) return { ...settled, emptyAnswers }
    const why =
      'The service accepted nothing since these payloads first failed: they do not become dead letters yet.'
    return { ...held('slow', 'success', why, 'not_accepted'), deviations, emptyAnswers }
  }

  const messages = new Map<string, string>()
  for (const result of results.values())
    if (result !== 'accepted' && !messages.has(result.errorType))
      messages.set(result.errorType, result.errorMessage || 'no message')
  const reasons = [...messages].slice(0, 3).map(([type, message]) => `${type} (${message})`)
  const words = reasons.join(', ')
  const nothingAccepted = retried ? null : words
  if ([...messages.keys()].every((type) => type === 'Validation'))
    return { ...settled, emptyAnswers, nothingAccepted }
  const what = `The service accepted none of the last ${inRow} batches: ${words}.`
  const why = `${what} This counts as an outage: the payloads are kept and no attempt is counted.`
  return {
    ...held('backoff', 'outage', why),
    deviations,
    results: facts.earlierResults,
    emptyAnswers,
    nothingAccepted,
  }
}
