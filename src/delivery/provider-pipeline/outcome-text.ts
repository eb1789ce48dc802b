// outcome-text.ts: what events and reports say of an outcome.

import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'

export function unreachableOf(outcome: Outcome): { reason?: UnreachableReason; act?: string } {
  if (outcome.kind !== 'unreachable') return {}
  const { reason, act } = outcome
  return act === undefined ? { reason } : { reason, act }
}

export function requestIdOf(outcome: Outcome): string | null {
  return 'requestId' in outcome ? outcome.requestId : null
}

/** A sentence for a person. */
export function reasonText(outcome: Outcome): string {
  if (!('message' in outcome)) return `The outcome is ${outcome.kind}.`
  const text =
    'status' in outcome ? `The service answers ${outcome.status}: ${outcome.message}` : outcome.message
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
