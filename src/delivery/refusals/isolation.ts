// isolation.ts: finds the payload for which the service refuses a whole batch (400, 413), and tells this from
// a service that refuses everything.
//
//   500 refused -> 250 + 250 -> the refused half: 125 + 125 -> ... -> 1 -> single operation -> dead letter
//
// Parts are sent in the order in which they were cut, one request at a time: one payload at fault among 500
// costs 18 further batch requests and one single. Both halves of a cut are sent before the next cut, so an
// accepted half shows early that the service does accept batches. Without such an acceptance no payload
// becomes a dead letter.
//
// One batch is taken apart at a time; others that are refused meanwhile wait. Bound: `refusalsToUnavailable`
// requests in a row (verdict.ts), then the endpoint is unavailable and nothing is cut until something is
// accepted.
//
// In memory only: after a restart the parts are ordinary batches, and isolation starts again.

import type { InFlightBatch } from '../policy/types.ts'

export type Isolation = {
  /** Requests refused with 400 or 413 since something was accepted. */
  readonly refusedInRow: number
  /** One submission at a time, while it is not known whether the service accepts anything. */
  readonly suspicious: boolean
  /** Whether `batch` may be taken apart now. */
  mayIsolate(batch: InFlightBatch): boolean
  /** Something was accepted since `batch`, or the batch that it was cut from, was first refused. */
  acceptedSince(batch: InFlightBatch): boolean
  /** The request of `batch` was refused with 400 or 413. */
  refused(batch: InFlightBatch): void
  accepted(): void
  /** `part` was cut from `whole`, or is `whole` with another operation. */
  inherit(part: InFlightBatch, whole: InFlightBatch): void
  /** `batch` is settled or replaced, or its wait is long enough to split other batches meanwhile. */
  leave(batch: InFlightBatch): void
  /** All batches are void. */
  reset(): void
}

/** `ended`: the next refused batch may be taken apart. */
export function createIsolation({ ended }: { ended: () => void }): Isolation {
  const parts = new Set<InFlightBatch>()
  const refusedAt = new WeakMap<InFlightBatch, number>()
  let refusedInRow = 0
  let successes = 0

  return {
    get refusedInRow() {
      return refusedInRow
    },
    get suspicious() {
      return refusedInRow > 0
    },
    mayIsolate: (batch) => parts.size === 0 || parts.has(batch),
    acceptedSince: (batch) => (refusedAt.get(batch) ?? successes) < successes,
    refused(batch) {
      refusedInRow += 1
      if (!refusedAt.has(batch)) refusedAt.set(batch, successes)
    },
    accepted() {
      refusedInRow = 0
      successes += 1
    },
    inherit(part, whole) {
      const at = refusedAt.get(whole)
      // It was cut for another reason than a refusal.
      if (at === undefined) return
      refusedAt.set(part, at)
      parts.add(part)
    },
    leave(batch) {
      if (parts.delete(batch) && parts.size === 0) ended()
    },
    reset: () => parts.clear(),
  }
}
