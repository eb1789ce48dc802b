// rate-limit.ts: requests and payloads per second, where the config limits them.
//
// Two token buckets that hold the tokens of one second and fill on the monotonic clock. A batch may start
// when both have a token, and then takes what it needs: a batch larger than one second's tokens leaves a debt
// that is refilled before the next one. So the mean rate is right for batches of any size. A new batch holds
// what may be sent in 10 s at most, so that payloads flow steadily and the debt is short; a batch that was
// sealed before keeps its size.

import type { Clock } from '../../std/clock.ts'

export type RateLimit = {
  /** How long until the next request may start; 0 now. */
  waitMs(): number
  take(payloads: number): void
}

const batchS = 10

export type RateOptions = { payloadsPerS: number | null; requestsPerS: number | null }

export function createRateLimit({ clock }: { clock: Clock }, options: RateOptions): RateLimit {
  const requestsPerS = () => options.requestsPerS
  const payloadsPerS = () => options.payloadsPerS
  const buckets = [
    createBucket({ clock, perS: requestsPerS }, () => 1),
    createBucket({ clock, perS: payloadsPerS }, (payloads) => payloads),
  ]
  return {
    waitMs: () => Math.max(...buckets.map((bucket) => bucket.waitMs())),
    take: (payloads) => buckets.forEach((bucket) => bucket.take(payloads)),
  }
}

/** Payloads of a new batch. */
export function payloadsAtOnce({ payloadsPerS }: Pick<RateOptions, 'payloadsPerS'>): number {
  return payloadsPerS === null ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(payloadsPerS * batchS))
}

type Bucket = { waitMs(): number; take(payloads: number): void }

/** `perS`: the limit now, which a reload may change; null for none, where the bucket stays full. */
function createBucket(
  { clock, perS }: { clock: Clock; perS: () => number | null },
  costOf: (payloads: number) => number,
): Bucket {
  let level = Number.POSITIVE_INFINITY
  let filledAtMs = clock.monotonic()

  function fill(rate: number | null): void {
    const nowMs = clock.monotonic()
    const passedS = (nowMs - filledAtMs) / 1000
    level = rate === null ? Number.POSITIVE_INFINITY : Math.min(Math.max(1, rate), level + passedS * rate)
    filledAtMs = nowMs
  }

  return {
    waitMs() {
      const rate = perS()
      fill(rate)
      // Waits for a whole token: starting on less would spend a small bucket at once and make the next wait
      // long.
      return rate === null || level >= 1 ? 0 : Math.ceil(((1 - level) / rate) * 1000)
    },
    take(payloads) {
      fill(perS())
      level -= costOf(payloads)
    },
  }
}
