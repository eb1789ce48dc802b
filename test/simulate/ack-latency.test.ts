import { expect, test } from 'vitest'
import { createLatency } from '../../src/simulate/ack-latency.ts'

test('quantiles are at most 2 % above the true ones, and the maximum is exact', () => {
  const latency = createLatency()
  for (let ms = 1; ms <= 10_000; ms += 1) latency.record(ms)
  const { count, p50Ms, p99Ms, maxMs } = latency.summary()
  expect(count).toBe(10_000)
  expect(p50Ms).toBeGreaterThanOrEqual(5000)
  expect(p50Ms).toBeLessThanOrEqual(5100)
  expect(p99Ms).toBeGreaterThanOrEqual(9900)
  expect(p99Ms).toBeLessThanOrEqual(10_000)
  expect(maxMs).toBe(10_000)
})

test('no ack, one ack, a latency of zero and one of a week are counted', () => {
  const latency = createLatency()
  expect(latency.summary()).toEqual({ count: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0, maxMs: 0 })
  latency.record(3)
  expect(latency.summary()).toEqual({ count: 1, p50Ms: 3, p95Ms: 3, p99Ms: 3, maxMs: 3 })
  latency.record(0)
  latency.record(7 * 86_400_000)
  expect(latency.summary()).toMatchObject({ count: 3, maxMs: 7 * 86_400_000 })
})
