// payload-results.ts: what the service said about each payload of a batch, over all its answers to that batch.

import type { PayloadId } from '../../domain/ids.ts'
import type { FailureRecord } from '../../domain/outcome.ts'

/** What the service said about payloads of ours; keyed by payloadId in lower case. */
export type PayloadResults = ReadonlyMap<string, 'accepted' | FailureRecord>

/** Both lists as one; `failed` wins within an answer, `accepted` over the answers, else the later one. */
export function mergeResults(
  accepted: readonly string[],
  failed: readonly FailureRecord[],
  earlier: PayloadResults | null,
): PayloadResults {
  const said = new Map<string, 'accepted' | FailureRecord>(earlier ?? [])
  for (const id of accepted) said.set(id.toLowerCase(), 'accepted')
  for (const failure of failed) {
    const id = failure.payloadId.toLowerCase()
    // What was taken once is delivered: of the same batch again a service may say that it knows it.
    if (earlier?.get(id) !== 'accepted') said.set(id, failure)
  }
  return said
}

export function unconfirmed(payloadId: PayloadId): FailureRecord {
  const errorMessage = 'The service named the payload neither as accepted nor as failed, twice.'
  return { payloadId, errorType: 'Unconfirmed', errorMessage, validationErrorDetails: [] }
}

export function detailOf({ errorMessage, validationErrorDetails }: FailureRecord): string {
  const fields = validationErrorDetails.map(({ field, message }) => `${field}: ${message}`)
  return [errorMessage, ...fields].filter((part) => part !== '').join('; ') || 'The service gave no reason.'
}
