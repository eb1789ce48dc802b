// verdict.ts: the whole retry policy, and the only place where something becomes final (invariant 10).
//
// outcome                          per payload                                          wait      endpoint
// answered, in `accepted`          delivered                                            -         success
// answered, in `failed`            the next step of its errorType, after the last: dead -         success
//   errorType declared `delivered` delivered                                            -         success
//   nothing accepted for the third live or backfill batch in a row:
//     only Validation              its steps, as above                                  -         success
//     any other type               held, no attempt counted                             back-off  outage
// answered, in neither list        the same sealed batch once more                      back-off  success
//   again                          as failed, of type Unconfirmed                       -         success
//   none of the batch, again       held                                                 slow      refused
// in both lists, foreign ids, ...  the lists are believed, `failed` wins                -         success
// accepted_single                  delivered                                            -         success
// refused (400, 413)               held                                                 slow      refused
// repeated (409), sent before      by on_repeat: held, or delivered                     slow      refused, success
// repeated (409), never sent       held                                                 slow      refused
// unauthorized (401, 403)          held                                                 none      unauthorized
// unavailable (408, 425, 429, 5xx) held                                                 back-off  failure
// unreachable                      held                                                 back-off  failure
// unreadable                       held                                                 back-off  failure
// unexpected                       held                                                 back-off  failure
// aborted                          held                                                 none      unchanged
//
// Held means: the same sealed batch again, same batchId, same bytes. Nothing that is held counts an attempt of
// a payload, or an outage would bury everything. endpoint.ts says what success, refused, ... do to the road.

import { assertNever } from '../std/assert.ts'
import type { PayloadId } from '../domain/ids.ts'
import type { FailureRecord, Outcome } from '../domain/outcome.ts'
import type { Fate, Settlement } from '../domain/settlement.ts'
import type { Role } from '../spool/spool.ts'
import type { OnRepeat, RetryRules } from './options.ts'

/** What the service said about payloads of ours; keyed by payloadId in lower case. */
export type Said = ReadonlyMap<string, 'accepted' | FailureRecord>

/** What stands beside the outcome when it is judged. */
export type Facts = {
  payloads: number
  payloadIds: readonly PayloadId[]
  /** Answers `failed` that each payload had before this batch. */
  attempts: readonly number[]
  role: Role
  /** This batch was, or may have been, submitted before this submission. */
  sentBefore: boolean
  /** What an answer to this very batch said before, when it left some payloads out; else null. */
  earlier: Said | null
  /** Live or backfill batches in a row, before this one, with nothing accepted. */
  emptyAnswers: number
}

export type Policy = { retryRules: RetryRules; onRepeat: OnRepeat; emptyAnswersToClose: number }

export type Verdict = {
  /** Null: the batch stays sealed. */
  settlement: Settlement | null
  wait: 'none' | 'backoff' | 'slow'
  endpoint: 'success' | 'failure' | 'refused' | 'unauthorized' | 'outage' | 'unchanged'
  /** A sentence for a person where holding this batch needs one of its own. */
  held: string | null
  oddities: readonly string[]
  /** What an answer with gaps said, to be filled in by the next one. */
  remember: Said | null
  /** What it does to `emptyAnswers`. */
  empty: 'one more' | 'reset' | 'unchanged'
}

const nothing: Verdict = {
  settlement: null,
  wait: 'none',
  endpoint: 'unchanged',
  held: null,
  oddities: [],
  remember: null,
  empty: 'unchanged',
}

export function judge(outcome: Outcome, facts: Facts, policy: Policy): Verdict {
  switch (outcome.kind) {
    case 'answered':
      return judgeAnswer(outcome, facts, policy)
    case 'accepted_single':
      // Only a batch of one payload can have gone there; for any other a 202 says nothing about its payloads.
      return facts.payloads === 1 ? delivered(outcome.requestId) : held('backoff', 'failure', null)
    case 'refused':
      return held(
        'slow',
        'refused',
        `The service refuses the batch as such (${outcome.status}: ${outcome.message}).`,
      )
    case 'repeated':
      if (policy.onRepeat === 'delivered' && facts.sentBefore) return delivered(outcome.requestId)
      return held(
        'slow',
        'refused',
        `The service answers 409: it knows the batchId, ${facts.sentBefore ? 'which was sent before' : 'which was never sent from here'}.`,
      )
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

function delivered(requestId: string | null): Verdict {
  return {
    ...nothing,
    settlement: { fates: 'all delivered', requestId },
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

  const said = whatIsSaid(answer.accepted, answer.failed, facts.earlier)
  const missing = facts.payloadIds.filter((id) => !said.has(id)).length
  const unconfirmed = missing === facts.payloadIds.length
  const base = { ...nothing, oddities: answer.oddities }
  if (missing > 0 && facts.earlier === null) {
    const endpoint = unconfirmed ? 'refused' : 'success'
    return { ...base, wait: 'backoff', endpoint, remember: said }
  }
  if (unconfirmed) {
    const why = 'The service answers 200 and names none of the payloads of the batch, twice.'
    return { ...base, wait: 'slow', endpoint: 'refused', held: why, remember: said }
  }

  const fates = facts.payloadIds.map((id, index) =>
    fateOf(said.get(id), id, facts.attempts[index] ?? 0, policy),
  )
  const settled = {
    ...base,
    settlement: { fates, requestId: answer.requestId },
    endpoint: 'success' as const,
  }
  if (fates.some((fate) => fate.kind === 'delivered')) return { ...settled, empty: 'reset' }
  return judgeNothingAccepted(settled, said, facts, policy)
}

/** Nothing of the batch was accepted: its payloads' own faults, or an outage told inside a 200. */
function judgeNothingAccepted(settled: Verdict, said: Said, facts: Facts, policy: Policy): Verdict {
  const retried = facts.role.kind === 'retry'
  // What failed before may well fail again as a whole: a retry lane is no witness, but it is held with the others.
  const inRow = facts.emptyAnswers + (retried ? 0 : 1)
  const empty = retried ? 'unchanged' : 'one more'
  if (inRow < policy.emptyAnswersToClose) return { ...settled, empty }

  const types = new Set<string>()
  for (const word of said.values()) if (word !== 'accepted') types.add(word.errorType)
  const tale = `Nothing was accepted in ${inRow} batches in a row: ${[...types].slice(0, 5).join(', ')}.`
  if ([...types].every((type) => type === 'Validation')) {
    const first = inRow === policy.emptyAnswersToClose && !retried
    return { ...settled, empty, oddities: first ? [...settled.oddities, tale] : settled.oddities }
  }
  return {
    ...nothing,
    oddities: settled.oddities,
    wait: 'backoff',
    endpoint: 'outage',
    held: `${tale} It is taken for an outage of the service; no attempt is counted.`,
    remember: facts.earlier,
    empty,
  }
}

/** Both lists as one; `failed` wins within an answer, the later answer wins over the earlier one. */
function whatIsSaid(
  accepted: readonly string[],
  failed: readonly FailureRecord[],
  earlier: Said | null,
): Said {
  const said = new Map<string, 'accepted' | FailureRecord>(earlier ?? [])
  for (const id of accepted) said.set(id.toLowerCase(), 'accepted')
  for (const failure of failed) said.set(failure.payloadId.toLowerCase(), failure)
  return said
}

function fateOf(
  word: 'accepted' | FailureRecord | undefined,
  id: PayloadId,
  attempts: number,
  policy: Policy,
): Fate {
  if (word === 'accepted') return { kind: 'delivered' }
  const failure = word ?? unconfirmed(id)
  const schedule = policy.retryRules.has(failure.errorType) ? failure.errorType : 'default'
  const rule = policy.retryRules.get(schedule) ?? []
  if (rule === 'delivered') return { kind: 'delivered' }
  if (attempts < rule.length) return { kind: 'retry', schedule, step: attempts, failure }
  return { kind: 'dead', reason: failure.errorType, detail: detailOf(failure), failure }
}

function unconfirmed(payloadId: PayloadId): FailureRecord {
  const errorMessage = 'The service named the payload neither as accepted nor as failed, twice.'
  return { payloadId, errorType: 'Unconfirmed', errorMessage, validationErrorDetails: [] }
}

function detailOf({ errorMessage, validationErrorDetails }: FailureRecord): string {
  const fields = validationErrorDetails.map(({ field, message }) => `${field}: ${message}`)
  return [errorMessage, ...fields].filter((part) => part !== '').join('; ') || 'The service gave no reason.'
}
