// concurrency.ts: the number of submissions allowed at once, between one and `max_in_flight`.
//
// A failed submission halves the limit, once for all submissions that were in flight together: four failures
// of one bad second count as one. After as many successes as the limit it grows by one.

export type Concurrency = {
  limit(): number
  /** The number of a submission that starts now; pass it to failed(). */
  started(): number
  succeeded(): void
  failed(started: number): void
  /** The endpoint is no longer available: start again with one. */
  reset(): void
}

export function createConcurrency(options: { maxInFlight: number }): Concurrency {
  /** Infinite until a submission fails, so that a larger setting is in force at once. */
  let learned = Number.POSITIVE_INFINITY
  let starts = 0
  let halvedAt = 0
  let successes = 0

  const limit = () => Math.min(learned, options.maxInFlight)

  return {
    limit,
    started: () => ++starts,
    succeeded() {
      successes += 1
      if (successes < limit() || learned >= options.maxInFlight) return
      learned = learned + 1 < options.maxInFlight ? learned + 1 : Number.POSITIVE_INFINITY
      successes = 0
    },
    failed(started) {
      successes = 0
      if (started <= halvedAt) return
      learned = Math.max(1, Math.floor(limit() / 2))
      halvedAt = starts
    },
    reset() {
      learned = 1
      successes = 0
      halvedAt = starts
    },
  }
}
