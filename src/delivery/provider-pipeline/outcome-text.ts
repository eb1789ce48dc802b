// outcome-text.ts: what events, reports and measures take from an outcome.

import type { EpochMs } from '../../std/clock.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'
import type { BatchAnswer } from '../types.ts'

/** Answers that are kept for each batch, and characters of each. */
export const answersMax = 3
const answerLengthMax = 200

const checkAddress =
  'Perhaps another server answers: check delivery.base_url, delivery.proxy, redirects and login pages of the ' +
  'network.'

/** Why the service was not reached, and what a person can do. */
export function unreachableOf(outcome: Outcome): { reason?: UnreachableReason; act?: string } {
  if (outcome.kind === 'unexpected' || isForeign(outcome)) return { act: checkAddress }
  if (outcome.kind !== 'unreachable') return {}
  const { reason, act } = outcome
  return act === undefined ? { reason } : { reason, act }
}

/** It is a page, or JSON of another service. The message quotes the start of the answer. */
function isForeign(outcome: Outcome): boolean {
  return (
    outcome.kind === 'unreadable' &&
    /<(!doctype|html|head|body)\b|has neither "accepted"/i.test(outcome.message)
  )
}

export function requestIdOf(outcome: Outcome): string | null {
  return 'requestId' in outcome ? outcome.requestId : null
}

/** A sentence for a person. */
export function reasonText(outcome: Outcome): string {
  if (outcome.kind === 'answered') return answeredText(outcome)
  if (!('message' in outcome)) return `The outcome is ${outcome.kind}.`
  const text =
    'status' in outcome ? `The service answers ${outcome.status}: ${outcome.message}` : outcome.message
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}

/** For `batches show`. */
export function answerOf(outcome: Outcome, at: EpochMs): BatchAnswer {
  return { at, requestId: requestIdOf(outcome), text: bounded(answerText(outcome), answerLengthMax) }
}

function answerText(outcome: Outcome): string {
  if (outcome.kind === 'accepted_single') return 'The service accepted the payload.'
  if (outcome.kind === 'repeated') return `The service answers 409: ${outcome.message}`
  return reasonText(outcome)
}

function answeredText({ accepted, failed, serviceMessage }: Extract<Outcome, { kind: 'answered' }>): string {
  if (accepted === 'all') return 'The service accepted all payloads.'
  if (accepted.length === 0 && failed.length === 0) {
    const words = serviceMessage === undefined ? '' : ` Its message: ${quote(serviceMessage)}.`
    return `The service answers 200 and names none of the payloads.${words}`
  }
  return `The service lists ${accepted.length} payloads as accepted and ${failed.length} as failed.`
}

/** How a submission ended, for what measures the link and the service. */
export function endOf(outcome: Outcome): 'answered' | 'timed out' | 'failed' {
  if (outcome.kind === 'unreachable') return outcome.reason === 'timeout' ? 'timed out' : 'failed'
  return outcome.kind === 'aborted' || outcome.kind === 'interrupted' ? 'failed' : 'answered'
}

/** The longest wait that the gateway grants the service. */
const retryAfterMaxMs = 600_000

/** The wait that follows from Retry-After; null without one. */
export function retryAfterWaitOf(outcome: Outcome): number | null {
  if (outcome.kind !== 'unavailable' || outcome.retryAfterMs === null) return null
  return Math.min(outcome.retryAfterMs, retryAfterMaxMs)
}
