// verdict.ts: the whole retry policy, and the only place where something becomes final (invariant 10).
//
// outcome                          per payload                                          wait      endpoint
// answered, in `accepted`          delivered                                            -         success
// answered, in `failed`            the next step of its errorType, after the last: dead -         success
//   errorType declared `delivered` delivered                                            -         success
//   nothing accepted, nor by the live batch before it, and a last step of another type than Validation:
//                                  held                                                 slow      success
//   nothing accepted for the third live or backfill batch in a row:
//     only Validation              its steps, as above                                  -         success
//     any other type               held, no attempt counted                             back-off  outage
// answered, in neither list        the same sealed batch once more                      back-off  success
//   again                          as failed, of type Unconfirmed                       -         success
//   none of the batch, again       held                                                 slow      refused
// in both lists, foreign ids, ...  the lists are believed, `failed` wins                -         success
// accepted_single (202)            delivered                                            -         success
//   a batch with it was refused and nothing was accepted since: the wrapper is at fault  -        wrapper
// refused (400, 413)
//   more than one payload          split in two under new batchIds; where nothing was accepted between three
//                                  refusals, the first payload alone and the rest        -         isolating
//   while another batch is taken apart: held                                            its turn   isolating
//   one payload                    turns to the single operation                         -         isolating
//   refused there too              dead, if another was accepted since it was refused    -         isolating
//                                  else held: who is at fault?                          witness    isolating
//   from the twelfth in a row      as above, and nothing is buried any more              -         wrapper
// repeated (409), sent before      by on_repeat: held, delivered, or resent under a      slow      refused, success
//                                  new batchId
// repeated (409), never sent       held                                                 slow      refused
// unauthorized (401, 403)          held                                                 none      unauthorized
// unavailable (408, 425, 429, 5xx) held                                                 back-off  failure
// unreachable                      held                                                 back-off  failure
// unreadable                       held                                                 back-off  failure
// unexpected                       held                                                 back-off  failure
// aborted                          held                                                 none      unchanged
//
// Held means: the same sealed batch again, same batchId, same bytes. Nothing that is held counts an attempt of
// a payload, or an outage would bury everything. endpoint.ts says what success, refused, ... do to the road,
// isolation.ts why one guilty payload among 500 costs 18 further batch requests and one single at most.

import { assertNever } from '../../std/assert.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { FailureRecord, Outcome } from '../../domain/outcome.ts'
import type { PayloadSettlement, Settlement } from '../../domain/settlement.ts'
import type { LaneRole, BatchOperation } from '../../spool/spool.ts'
import type { OnRepeat, RetryRules } from '../delivery-options.ts'
import { partsOf } from './isolation.ts'
import { detailOf, unconfirmed, mergeResults } from './payload-results.ts'
import type { PayloadResults } from './payload-results.ts'

/** What stands beside the outcome when it is judged. */
export type Facts = {
  payloads: number
  payloadIds: readonly PayloadId[]
  /** Answers `failed` that each payload had before this batch. */
  attempts: readonly number[]
  role: LaneRole
  /** This batch was, or may have been, submitted before this submission. */
  sentBefore: boolean
  /** What an answer to this very batch said before, when it left some payloads out; else null. */
  earlierResults: PayloadResults | null
  /** Live or backfill batches in a row, before this one, with nothing accepted. */
  emptyAnswers: number
  /** By which operation it went. */
  turn: BatchOperation
  /** Requests that were refused as such, before this one, with nothing accepted between. */
  refusedInRow: number
  /** Something was accepted since this batch, or the one that it was cut from, was refused first. */
  witnessed: boolean
  /** No other refused batch is being taken apart. */
  mayIsolate: boolean
}

export type Policy = {
  retryRules: RetryRules
  onRepeat: OnRepeat
  mode: BatchOperation
  emptyAnswersToUnavailable: number
  refusalsToUnavailable: number
}

/**
 * `turn`: until no other batch is taken apart. `witness`: until something else is accepted. `room`: until the dead letters
 * have room (settler.ts).
 */
export type Wait = 'none' | 'backoff' | 'slow' | 'turn' | 'witness' | 'room'

export type Verdict = {
  /** Null: the batch stays sealed, unless one of the next two says what takes its place. */
  settlement: Settlement | null
  /** Batches of so many payloads under new batchIds. */
  reseal: readonly number[] | null
  /** The other operation, under the same claim. */
  turn: BatchOperation | null
  wait: Wait
  endpoint:
    'success' | 'failure' | 'refused' | 'isolating' | 'wrapper' | 'unauthorized' | 'outage' | 'unchanged'
  /** A sentence for a person where holding this batch needs one of its own. */
  held: string | null
  oddities: readonly string[]
  /** What an answer with gaps said, to be filled in by the next one. */
  results: PayloadResults | null
  /** What it does to `emptyAnswers`. */
  empty: 'one more' | 'reset' | 'unchanged'
}

const nothing: Verdict = {
  settlement: null,
  reseal: null,
  turn: null,
  wait: 'none',
  endpoint: 'unchanged',
  held: null,
  oddities: [],
  results: null,
  empty: 'unchanged',
}

export function judge(outcome: Outcome, facts: Facts, policy: Policy): Verdict {
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
      return held('none', 'unauthorized', null)
    case 'unavailable':
    case 'unreachable':
    case 'unreadable':
      return held('backoff', 'failure', null)
    case 'unexpected':
      return held(
        'backoff',
        'failure',
        `The service answers ${outcome.status}, which its specification does not show: ${outcome.message}`,
      )
    case 'aborted':
      return nothing
    default:
      return assertNever(outcome)
  }
}

function judgeRepeat(requestId: string | null, { sentBefore, payloads }: Facts, policy: Policy): Verdict {
  const { onRepeat } = policy
  if (sentBefore && onRepeat === 'delivered') return delivered(requestId)
  if (sentBefore && onRepeat === 'resend') return { ...nothing, reseal: [payloads], endpoint: 'isolating' }
  const when = sentBefore ? 'which was sent before' : 'which was never sent from here'
  return held('slow', 'refused', `The service answers 409: it knows the batchId, ${when}.`)
}

function judgeAcknowledgement(requestId: string | null, facts: Facts, { mode }: Policy): Verdict {
  const { payloads, turn, refusedInRow, witnessed } = facts
  // Only one payload can have gone there; for a batch a 202 says nothing about its payloads.
  if (payloads !== 1 || turn !== 'single') return held('backoff', 'failure', null)
  const verdict = delivered(requestId)
  if (mode === 'single' || refusedInRow === 0 || witnessed) return verdict
  const why = 'The service refuses batches as such, and takes a payload of theirs by the single operation.'
  return { ...verdict, endpoint: 'wrapper', held: why }
}

type Refusal = Extract<Outcome, { kind: 'refused' }>

function judgeRefusal(
  { status, message, details, requestId }: Refusal,
  facts: Facts,
  policy: Policy,
): Verdict {
  const { payloads, turn, refusedInRow, witnessed, mayIsolate } = facts
  const words = `${status}: ${message}`
  const refusals = refusedInRow + 1
  const everything = refusals >= policy.refusalsToUnavailable
  const endpoint = everything ? 'wrapper' : 'isolating'
  const why = everything ? `The service refused ${refusals} requests in a row as such: ${words}` : words
  if (turn === 'batch') {
    if (!mayIsolate) return held('turn', endpoint, why)
    if (payloads === 1) return { ...nothing, turn: 'single', endpoint, held: why }
    return { ...nothing, reseal: partsOf(payloads, status, refusals, policy), endpoint, held: why }
  }
  if (!witnessed || everything) return held('witness', endpoint, why)
  const [payloadId = ''] = facts.payloadIds
  const failure = {
    payloadId,
    errorType: refusedReason,
    errorMessage: words,
    validationErrorDetails: details,
  }
  const fate: PayloadSettlement = { kind: 'dead', reason: refusedReason, detail: detailOf(failure), failure }
  return { ...nothing, settlement: { payloads: [fate], requestId }, endpoint }
}

/** Reason of a dead letter that the service refused by a status, not by an `errorType`. */
const refusedReason = 'Refused'

function delivered(requestId: string | null): Verdict {
  return {
    ...nothing,
    settlement: { payloads: 'all delivered', requestId },
    endpoint: 'success',
    empty: 'reset',
  }
}

function held(wait: Verdict['wait'], endpoint: Verdict['endpoint'], why: string | null): Verdict {
  return { ...nothing, wait, endpoint, held: why }
}

type Answered = Extract<Outcome, { kind: 'answered' }>

function judgeAnswer(answer: Answered, facts: Facts, policy: Policy): Verdict {
  // The usual case, told apart without a look at the ids.
  if (answer.accepted === 'all') return { ...delivered(answer.requestId), oddities: answer.oddities }

  const said = mergeResults(answer.accepted, answer.failed, facts.earlierResults)
  const missing = facts.payloadIds.filter((id) => !said.has(id)).length
  const unconfirmed = missing === facts.payloadIds.length
  const base = { ...nothing, oddities: answer.oddities }
  if (missing > 0 && facts.earlierResults === null) {
    const endpoint = unconfirmed ? 'refused' : 'success'
    return { ...base, wait: 'backoff', endpoint, results: said }
  }
  if (unconfirmed) {
    const why = 'The service answers 200 and names none of the payloads of the batch, twice.'
    return { ...base, wait: 'slow', endpoint: 'refused', held: why, results: said }
  }

  const fates = facts.payloadIds.map((id, index) =>
    fateOf(said.get(id), id, facts.attempts[index] ?? 0, policy),
  )
  const settled = {
    ...base,
    settlement: { payloads: fates, requestId: answer.requestId },
    endpoint: 'success' as const,
  }
  if (fates.some((fate) => fate.kind === 'delivered')) return { ...settled, empty: 'reset' }
  return judgeNothingAccepted(settled, said, facts, policy)
}

/** A fault of the payload itself is told as Validation; any other may be the service's. */
function buriesInnocents({ settlement }: Verdict): boolean {
  if (settlement === null || settlement.payloads === 'all delivered') return false
  return settlement.payloads.some((fate) => fate.kind === 'dead' && fate.reason !== 'Validation')
}

/** Nothing of the batch was accepted: its payloads' own faults, or an outage told inside a 200. */
function judgeNothingAccepted(settled: Verdict, said: PayloadResults, facts: Facts, policy: Policy): Verdict {
  const retried = facts.role.kind === 'retry'
  // What failed before may well fail again as a whole: a retry lane is no witness, but it is held with the others.
  const inRow = facts.emptyAnswers + (retried ? 0 : 1)
  const empty = retried ? 'unchanged' : 'one more'
  if (inRow < policy.emptyAnswersToUnavailable) {
    if (facts.emptyAnswers === 0 || !buriesInnocents(settled)) return { ...settled, empty }
    const held =
      'Its payloads would become dead letters, and the service accepted nothing since they failed first.'
    return { ...nothing, oddities: settled.oddities, wait: 'slow', endpoint: 'success', held, empty }
  }

  const types = new Set<string>()
  for (const word of said.values()) if (word !== 'accepted') types.add(word.errorType)
  const tale = `Nothing was accepted in ${inRow} batches in a row: ${[...types].slice(0, 5).join(', ')}.`
  if ([...types].every((type) => type === 'Validation')) {
    const first = inRow === policy.emptyAnswersToUnavailable && !retried
    return { ...settled, empty, oddities: first ? [...settled.oddities, tale] : settled.oddities }
  }
  return {
    ...nothing,
    oddities: settled.oddities,
    wait: 'backoff',
    endpoint: 'outage',
    held: `${tale} It is taken for an outage of the service; no attempt is counted.`,
    results: facts.earlierResults,
    empty,
  }
}

function fateOf(
  word: 'accepted' | FailureRecord | undefined,
  id: PayloadId,
  attempts: number,
  policy: Policy,
): PayloadSettlement {
  if (word === 'accepted') return { kind: 'delivered' }
  const failure = word ?? unconfirmed(id)
  const schedule = policy.retryRules.has(failure.errorType) ? failure.errorType : 'default'
  const rule = policy.retryRules.get(schedule) ?? []
  if (rule === 'delivered') return { kind: 'delivered' }
  if (attempts < rule.length) return { kind: 'retry', schedule, step: attempts, failure }
  return { kind: 'dead', reason: failure.errorType, detail: detailOf(failure), failure }
}
