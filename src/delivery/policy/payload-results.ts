// payload-results.ts: what the service said about each payload of a batch, over all its answers to that
// batch.

import type { PayloadId } from '../../domain/ids.ts'
import type { FailureRecord } from '../../domain/outcome.ts'

/** Keyed by payloadId in lower case. */
export type PayloadResults = ReadonlyMap<string, 'accepted' | FailureRecord>

type Answer = { accepted: readonly string[]; failed: readonly FailureRecord[] }

/** Within an answer `failed` wins. Over several answers `accepted` wins, else the later one. */
export function mergeResults({ accepted, failed }: Answer, earlier: PayloadResults | null): PayloadResults {
  const results = new Map<string, 'accepted' | FailureRecord>(earlier ?? [])
  for (const id of accepted) results.set(id.toLowerCase(), 'accepted')
  for (const failure of failed) {
    const id = failure.payloadId.toLowerCase()
    // A payload that was accepted once is delivered: the same batch again may be answered as known.
    if (earlier?.get(id) !== 'accepted') results.set(id, failure)
  }
  return results
}

export function unconfirmed(payloadId: PayloadId): FailureRecord {
  const errorMessage = 'Two answers listed the payload neither as accepted nor as failed.'
  return { payloadId, errorType: 'Unconfirmed', errorMessage, validationErrorDetails: [] }
}

/** Of a batch that is answered 409. */
export function unanswered(payloadId: PayloadId): FailureRecord {
  const errorMessage =
    'The service answers 409: it knows the batch. No answer said what became of the payload.'
  return { payloadId, errorType: 'Unconfirmed', errorMessage, validationErrorDetails: [] }
}

export function detailOf({ errorMessage, validationErrorDetails }: FailureRecord): string {
  const fields = validationErrorDetails.map(({ field, message }) => `${field}: ${message}`)
  return [errorMessage, ...fields].filter((part) => part !== '').join('; ') || 'The service gave no reason.'
}
