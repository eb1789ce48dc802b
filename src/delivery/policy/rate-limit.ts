// rate-limit.ts: what we allow ourselves towards the service: requests and payloads a second, where the config sets them.
//
// Two buckets that hold one second's worth and fill on the monotonic clock. A batch may begin when neither is in debt, and
// then takes what it needs: a batch larger than a second's worth goes, and is paid off afterwards. So the mean
// is kept, whatever the size of the batches.

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
      // One request's worth must be there, or all of a small bucket would go at once and the next wait would be long.
      return level >= 1 ? 0 : Math.ceil(((1 - level) / rate) * 1000)
    },
    take(payloads) {
      fill()
      level -= costOf(payloads)
    },
  }
}
