// ack-latency.ts: the time from message to PUBACK, in bounded memory, for hours of any load.
//
// Buckets grow by 2 %, so a quantile is at most 2 % above the true one; the maximum is exact.

export type LatencySummary = { count: number; p50Ms: number; p95Ms: number; p99Ms: number; maxMs: number }

export type Latency = {
  record(latencyMs: number): void
  summary(): LatencySummary
}

const growth = 1.02
const smallestMs = 0.005
/** The buckets reach beyond a day; slower acks count in the last bucket. */
const bucketCount = 1 + Math.ceil(Math.log(86_400_000 / smallestMs) / Math.log(growth))
const perBucket = 1 / Math.log(growth)

export function createLatency(): Latency {
  const buckets = new Uint32Array(bucketCount)
  let count = 0
  let maxMs = 0

  function quantile(share: number): number {
    let left = Math.ceil(share * count)
    for (const [index, inBucket] of buckets.entries()) {
      left -= inBucket
      if (left <= 0 && count > 0) return Math.min(maxMs, smallestMs * growth ** index)
    }
    return 0
  }

  return {
    record(latencyMs) {
      const index = latencyMs <= smallestMs ? 0 : Math.ceil(Math.log(latencyMs / smallestMs) * perBucket)
      const bucket = Math.min(index, bucketCount - 1)
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
      count += 1
      if (latencyMs > maxMs) maxMs = latencyMs
    },
    summary: () => ({ count, p50Ms: quantile(0.5), p95Ms: quantile(0.95), p99Ms: quantile(0.99), maxMs }),
  }
}
