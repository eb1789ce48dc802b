// verdict-forms.ts: the forms of a verdict that several rows of the table share.

import type { HeldReason } from '../../domain/held.ts'
import type { Verdict } from './policy.ts'

export const nothing: Verdict = {
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

export function delivered(requestId: string | null): Verdict {
  const settlement = { payloads: 'all delivered' as const, requestId }
  return { ...nothing, settlement, endpoint: 'success', emptyAnswers: 'reset' }
}

export function held(
  wait: Verdict['wait'],
  endpoint: Verdict['endpoint'],
  why: string | null,
  heldAs: HeldReason | null = null,
): Verdict {
  return { ...nothing, wait, endpoint, why, heldAs }
}
