// concurrency.ts: how many submissions at once, between one and `max_in_flight`.
//
// Halved when a submission fails, but once for all that were under way together, or four answers of one bad
// second would count as four. One more for each clean window, which is as many successes as are allowed now.

export type Concurrency = {
  readonly limit: number
  /** A number for a submission that starts now; give it back to succeeded() or failed(). */
  started(): number
  succeeded(): void
  failed(started: number): void
  /** The road was closed: begin again with one. */
  collapse(): void
}

export function createConcurrency(options: { max: number }): Concurrency {
  let limit = options.max
  let starts = 0
  let halvedAt = 0
  let clean = 0

  return {
    get limit() {
      return limit
    },
    started: () => ++starts,
    succeeded() {
      clean += 1
      if (clean < limit || limit === options.max) return
      limit += 1
      clean = 0
    },
    failed(started) {
      clean = 0
      if (started <= halvedAt) return
      limit = Math.max(1, Math.floor(limit / 2))
      halvedAt = starts
    },
    collapse() {
      limit = 1
      clean = 0
      halvedAt = starts
    },
  }
}
