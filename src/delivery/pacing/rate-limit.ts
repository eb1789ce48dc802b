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
  const buckets = [
    createBucket(clock, options.requestsPerS, () => 1),
    createBucket(clock, options.payloadsPerS, (payloads) => payloads),
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

const unlimited: Bucket = { waitMs: () => 0, take() {} }

function createBucket(clock: Clock, perS: number | null, costOf: (payloads: number) => number): Bucket {
  if (perS === null) return unlimited
  const rate = perS
  const burst = Math.max(1, rate)
  let level = burst
  let filledAtMs = clock.monotonic()

  function fill(): void {
    const nowMs = clock.monotonic()
    level = Math.min(burst, level + ((nowMs - filledAtMs) / 1000) * rate)
    filledAtMs = nowMs
  }

  return {
    waitMs() {
      fill()
      // Waits for a whole token: starting on less would spend a small bucket at once and make the next wait
      // long.
      return level >= 1 ? 0 : Math.ceil(((1 - level) / rate) * 1000)
    },
    take(payloads) {
      fill()
      level -= costOf(payloads)
    },
  }
}
