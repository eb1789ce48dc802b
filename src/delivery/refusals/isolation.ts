// isolation.ts: finds the payloads for which the service refuses a whole batch (400, 413), and tells this
// from a service that refuses everything.
//
//   500 refused -> parts -> the refused parts: halves -> ... -> 1 -> single operation -> dead letter
//
// Parts are sent in the order in which they were cut. Both halves of a cut are sent before the next cut, so
// an accepted half shows early that the service does accept batches. Without such an acceptance no payload
// becomes a dead letter. Several batches are taken apart side by side, as many as the service bears; others
// that are refused meanwhile wait.
//
// Is it the payloads, or the service? Each refusal with nothing accepted between is evidence for the service,
// in units of one full refusal. A refusal that was to be expected counts less: where payloads at fault are
// frequent, a large batch is nearly always refused; and once a part of a batch was accepted, the fault is in
// its other parts. Bound: `refusalsToUnavailable` (refusals.ts), then the endpoint is unavailable and nothing
// is cut until something is accepted.
//
// In memory only: after a restart the parts are ordinary batches, and isolation starts again.

import type { InFlightBatch } from '../policy/types.ts'

export type Isolation = {
  /** Requests refused with 400 or 413 since something was accepted; expected ones count less than one. */
  refusedInRow(): number
  /** One submission at a time, while it is not known whether the service accepts anything. */
  suspicious(): boolean
  /** Whether `batch` may be taken apart now. */
  mayIsolate(batch: InFlightBatch): boolean
  /** Something was accepted since `batch`, or the batch that it was cut from, was first refused. */
  acceptedSince(batch: InFlightBatch): boolean
  /**
   * The request of `batch` was refused with 400 or 413. `isNews`: that says something about the service; of a
   * batch that was held or sent before the start it does not.
   */
  refused(batch: InFlightBatch, isNews: boolean): void
  accepted(batch: InFlightBatch): void
  /** `part` was cut from `whole`, or is `whole` with another operation. */
  inherit(part: InFlightBatch, whole: InFlightBatch): void
  /** `batch` is settled or replaced, or its wait is long enough to split other batches meanwhile. */
  leave(batch: InFlightBatch): void
  /** All batches are void. */
  reset(): void
}

type Deps = {
  /** The next refused batch may be taken apart. */
  ended: () => void
  /** Batches side by side. */
  places: () => number
  /** Share of payloads at fault; null while unknown. */
  share: () => number | null
}

/** The batch that was refused first, and what was cut from it. */
type Root = { parts: number; accepted: boolean }

const expectedWeight = 0.1
/** Bits of surprise that are one full refusal: thirty in all make a false alarm a matter of years. */
const bitsOfRefusal = 2.5
/** Refusals in a row that are suspicious where batches were accepted before. */
const suspiciousAfter = 3

export function createIsolation({ ended, places, share }: Deps): Isolation {
  const roots = new Map<InFlightBatch, Root>()
  /** Successes before the first refusal; a batch that left may come again. */
  const refusedAt = new WeakMap<InFlightBatch, number>()
  let openRoots = 0
  let evidence = 0
  let successes = 0

  return {
    refusedInRow() {
      return Math.floor(evidence)
    },
    suspicious() {
      return isSuspicious()
    },
    mayIsolate: (batch) => roots.has(batch) || openRoots < (isSuspicious() ? 1 : places()),
    acceptedSince: (batch) => (refusedAt.get(batch) ?? successes) < successes,
    refused(batch, isNews) {
      // One alone is not cut any more. An acceptance since then is all that its end as a dead letter waits
      // for.
      const isLast = batch.batch.operation === 'single'
      if ((isNews || isLast) && !refusedAt.has(batch)) refusedAt.set(batch, successes)
      if (!isNews) return
      evidence += weightOf(batch)
      if (roots.has(batch)) return
      const root = openRoot()
      root.parts = 1
      roots.set(batch, root)
    },
    accepted(batch) {
      evidence = 0
      successes += 1
      const root = roots.get(batch)
      if (root !== undefined) root.accepted = true
    },
    inherit(part, whole) {
      const at = refusedAt.get(whole)
      // It was cut for another reason than a refusal.
      if (at === undefined) return
      refusedAt.set(part, at)
      const root = roots.get(whole) ?? openRoot()
      root.parts += 1
      roots.set(part, root)
    },
    leave(batch) {
      const root = roots.get(batch)
      if (root === undefined) return
      roots.delete(batch)
      root.parts -= 1
      if (root.parts > 0) return
      openRoots -= 1
      ended()
    },
    reset() {
      roots.clear()
      openRoots = 0
    },
  }

  function openRoot(): Root {
    openRoots += 1
    return { parts: 0, accepted: false }
  }

  function isSuspicious(): boolean {
    return successes > 0 ? evidence >= suspiciousAfter : evidence > 0
  }

  function weightOf(batch: InFlightBatch): number {
    if (roots.get(batch)?.accepted) return expectedWeight
    const known = share()
    if (known === null || known >= 1) return 1
    const refusedByChance = 1 - (1 - known) ** batch.batch.payloads
    return Math.min(1, -Math.log2(refusedByChance) / bitsOfRefusal)
  }
}
