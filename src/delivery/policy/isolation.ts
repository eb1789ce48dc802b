// isolation.ts: finds the payload for which the service refuses a whole batch (400, 413), and tells it from a service
// that refuses everything.
//
//   500 refused -> 250 + 250 -> the refused one: 125 + 125 -> ... -> 1 -> by the single operation -> dead letter
//
// Parts go in the order in which they were cut, one request at a time, so one guilty payload among 500 costs 18 further
// batch requests and one single; and since both halves of a cut are asked before the next cut, the innocent half
// bears witness early that the service does accept batches. Without such a witness nothing is buried.
//
// One batch is taken apart at a time; others that are refused meanwhile wait for their turn. Bound: `refusalsToUnavailable`
// requests in a row (verdict.ts), then the road is closed and nothing is split or buried until something is accepted.
//
// In memory only: after a restart the parts are batches like others, and what was suspected is learned anew.

import type { InFlightBatch } from './in-flight-batches.ts'

export type Isolation = {
  /** Requests refused as such since something was accepted. */
  readonly refusedInRow: number
  /** One at a time while nobody knows whether the service accepts anything. */
  readonly suspicious: boolean
  /** Whether `inHand` may be taken apart now. */
  mayIsolate(inHand: InFlightBatch): boolean
  /** Something was accepted since `inHand`, or what it was cut from, was refused first. */
  witnessed(inHand: InFlightBatch): boolean
  /** Its request was refused as such. */
  refused(inHand: InFlightBatch): void
  accepted(): void
  /** `part` was cut from `whole`, or is the same in another turn. */
  inherit(part: InFlightBatch, whole: InFlightBatch): void
  /** It is settled, replaced, or waits for longer than the others should. */
  leave(inHand: InFlightBatch): void
  /** What was in hand is void. */
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
    mayIsolate: (inHand) => parts.size === 0 || parts.has(inHand),
    witnessed: (inHand) => (refusedAt.get(inHand) ?? successes) < successes,
    refused(inHand) {
      refusedInRow += 1
      if (!refusedAt.has(inHand)) refusedAt.set(inHand, successes)
    },
    accepted() {
      refusedInRow = 0
      successes += 1
    },
    inherit(part, whole) {
      const at = refusedAt.get(whole)
      // It is cut for another reason than a refusal.
      if (at === undefined) return
      refusedAt.set(part, at)
      parts.add(part)
    },
    leave(inHand) {
      if (parts.delete(inHand) && parts.size === 0) ended()
    },
    reset: () => parts.clear(),
  }
}

/** Refusals in a row from which the wrapper is suspected: one payload alone tells most about it. */
const suspiciousRefusals = 3

/** How a batch of `payloads` that was refused with `status`, as one of `refusals` in a row, is cut. */
export function partsOf(
  payloads: number,
  status: number,
  refusals: number,
  { refusalsToUnavailable }: { refusalsToUnavailable: number },
): readonly number[] {
  const suspicious = status === 400 && refusals >= suspiciousRefusals && refusals < refusalsToUnavailable
  const first = suspicious ? 1 : Math.ceil(payloads / 2)
  return [first, payloads - first]
}
