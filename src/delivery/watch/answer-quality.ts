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
import type { Emit } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { endOf } from '../provider-pipeline/outcome-text.ts'

export type AnswerQuality = {
  ended(outcome: Outcome, tookMs: number): void
  settled(counts: Counts): void
}

type Counts = { delivered: number; retried: number; dead: number }

type Deps = { emit: Emit; isAvailable: () => boolean }

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

export function createAnswerQuality({ emit, isAvailable }: Deps, options: Options): AnswerQuality {
  const { name: provider } = options
  let answersMs: number[] = []
  let failures: boolean[] = []
  let batches: Counts[] = []
  const open = { slow: false, requests: false, payloads: false }
  return { ended, settled }

  function ended(outcome: Outcome, tookMs: number): void {
    const end = endOf(outcome)
    const isFailure = isFailed(outcome)
    if (isFailure === null) return
    failures = [...failures, isFailure].slice(-kept)
    if (end !== 'failed') answersMs = [...answersMs, tookMs].slice(-kept)
    if (!isAvailable()) return forget()
    judgeSlow()
    judgeRequests()
  }

  /** Other conditions say what is wrong, and what comes after an outage is another time. */
  function forget(): void {
    answersMs = []
    failures = []
    if (open.slow)
      emit({ kind: 'answers_slow', provider, medianMs: 0, answers: 0, timeoutMs: options.timeoutMs })
    if (open.requests) emit({ kind: 'submissions_failing', provider, failed: 0, requests: 0 })
    open.slow = false
    open.requests = false
  }

  function judgeSlow(): void {
    // A reload may change it.
    const { timeoutMs } = options
    const limitMs = Math.min(slowMaxMs, timeoutMs / 2)
    const medianMs = answersMs.toSorted((a, b) => a - b)[(answersMs.length - 1) >> 1] ?? 0
    const change = changeOf('slow', answersMs.length >= answersMin, medianMs / limitMs)
    if (change === null) return
    const answers = change ? answersMs.length : 0
    emit({ kind: 'answers_slow', provider, medianMs: Math.round(medianMs), answers, timeoutMs })
  }

  function judgeRequests(): void {
    const requests = failures.length
    const failed = failures.filter(Boolean).length
    const change = changeOf('requests', requests >= requestsMin && failed < requests, failed / requests)
    if (change !== null)
      emit({ kind: 'submissions_failing', provider, failed: change ? failed : 0, requests })
  }

  function settled({ delivered, retried, dead }: Counts): void {
    // An outage inside a 200 settles what it did not accept.
    if (!isAvailable()) return
    batches = [...batches, { delivered, retried, dead }].slice(-kept)
    const failed = batches.reduce((sum, batch) => sum + batch.retried + batch.dead, 0)
    const payloads = batches.reduce((sum, batch) => sum + batch.delivered, failed)
    const change = changeOf('payloads', payloads >= payloadsMin, failed / payloads)
    if (change !== null) emit({ kind: 'payloads_failing', provider, failed: change ? failed : 0, payloads })
  }

  /** True where it begins now, false where it ends, null where it stays as it is. */
  function changeOf(what: keyof typeof bounds, isKnown: boolean, share: number): boolean | null {
    const { from, until } = bounds[what]
    const before = open[what]
    if (!before && isKnown && share >= from) open[what] = true
    if (before && share < until) open[what] = false
    return open[what] === before ? null : open[what]
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
    case 'body_changed':
    case 'aborted':
      return null
    default:
      return assertNever(kind)
  }
}
