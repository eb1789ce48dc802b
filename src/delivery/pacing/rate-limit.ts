// rate-limit.ts: requests and payloads per second, where the config limits them.
//
// Two token buckets that hold the tokens of one second and fill on the monotonic clock. A batch may start
// when both have a token, and then takes what it needs: a batch larger than one second's tokens leaves a debt
// that is refilled before the next one. So the mean rate is right for batches of any size.

import type { Clock } from '../../std/clock.ts'

export type RateLimit = {
  /** How long until the next request may start; 0 now. */
  waitMs(): number
  take(payloads: number): void
}

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
