// answer-quality.ts: a service that answers, and not well: late, with failures, or with failed payloads.
// Nothing else notices these, because data is delivered all the same. While the endpoint is not available,
// nothing is judged: that has a condition of its own.
//
//   slow       the median of the last 20 answers is half of delivery.timeout or more, or 10 s, with the
//              upload: a slow line looks the same. A time-out counts as an answer
//   requests   three tenths of the last 20 requests failed, and at least one succeeded
//   payloads   a quarter of the payloads in the last 20 settled batches failed, of at least 20 payloads
//
// Each ends well below where it begins, so that it does not flap; and with the availability of the endpoint.
//
// Bound: 20 answers, 20 requests and 20 batches for each provider.

import { assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { State } from '../../domain/condition-state.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { endOf } from '../provider-pipeline/outcome-text.ts'

export type AnswerQuality = {
  ended(outcome: Outcome, tookMs: number): void
  settled(counts: Counts): void
  states(): Iterable<State>
}

type Counts = { delivered: number; retried: number; dead: number }

type Deps = { isAvailable: () => boolean }

type Options = Pick<ProviderOptions, 'name' | 'timeoutMs'>

const kept = 20
const answersMin = 3
const slowMaxMs = 10_000
const requestsMin = 10
const payloadsMin = 20
/** Where each begins and ends: the median as a share of the limit, and the shares of what failed. */
const bounds = {
  slow: { from: 1, until: 0.75 },
  requests: { from: 0.3, until: 0.1 },
  payloads: { from: 0.25, until: 0.1 },
} as const

export function createAnswerQuality({ isAvailable }: Deps, options: Options): AnswerQuality {
  const { name: provider } = options
  let answersMs: number[] = []
  let failures: boolean[] = []
  let batches: Counts[] = []
  const open = { slow: false, requests: false, payloads: false }
  return { ended, settled, states }

  function ended(outcome: Outcome, tookMs: number): void {
    const end = endOf(outcome)
    const isFailure = isFailed(outcome)
    if (isFailure === null) return
    failures = [...failures, isFailure].slice(-kept)
    if (end !== 'failed') answersMs = [...answersMs, tookMs].slice(-kept)
    if (!isAvailable()) return forget()
    judge('slow', answersMs.length >= answersMin, slowOf().medianMs / slowOf().limitMs)
    const { failed, requests } = requestsOf()
    judge('requests', requests >= requestsMin && failed < requests, failed / requests)
  }

  /** Other conditions say what is wrong, and what comes after an outage is another time. */
  function forget(): void {
    answersMs = []
    failures = []
    open.slow = false
    open.requests = false
  }

  function settled({ delivered, retried, dead }: Counts): void {
    // An outage inside a 200 settles what it did not accept.
    if (!isAvailable()) return
    batches = [...batches, { delivered, retried, dead }].slice(-kept)
    const { failed, payloads } = payloadsOf()
    judge('payloads', payloads >= payloadsMin, failed / payloads)
  }

  function judge(what: keyof typeof bounds, isKnown: boolean, share: number): void {
    const { from, until } = bounds[what]
    open[what] = open[what] ? share >= until : isKnown && share >= from
  }

  function slowOf() {
    // A reload may change it.
    const { timeoutMs } = options
    const medianMs = Math.round(answersMs.toSorted((a, b) => a - b)[(answersMs.length - 1) >> 1] ?? 0)
    return { medianMs, answers: answersMs.length, timeoutMs, limitMs: Math.min(slowMaxMs, timeoutMs / 2) }
  }

  function requestsOf() {
    return { failed: failures.filter(Boolean).length, requests: failures.length }
  }

  function payloadsOf() {
    const failed = batches.reduce((sum, batch) => sum + batch.retried + batch.dead, 0)
    return { failed, payloads: batches.reduce((sum, batch) => sum + batch.delivered, failed) }
  }

  function* states(): Generator<State> {
    if (open.slow) {
      const { limitMs: _, ...slow } = slowOf()
      yield { code: 'SERVICE_SLOW', provider, ...slow }
    }
    if (open.requests) yield { code: 'REQUESTS_FAILING', provider, ...requestsOf() }
    if (open.payloads) yield { code: 'PAYLOADS_FAILING', provider, ...payloadsOf() }
  }
}

/** Null where the outcome shows nothing: it was ended by the gateway, or is about the batch. */
function isFailed({ kind }: Outcome): boolean | null {
  switch (kind) {
    case 'answered':
    case 'accepted_single':
      return false
    case 'unavailable':
    case 'unreachable':
    case 'unreadable':
    case 'unexpected':
    case 'unauthorized':
      return true
    case 'refused':
    case 'repeated':
    case 'interrupted':
    case 'aborted':
      return null
    default:
      return assertNever(kind)
  }
}
