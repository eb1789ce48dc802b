import { describe, expect, test } from 'vitest'
import { defaultBackoff } from '../../../src/delivery/delivery-options.ts'
import {
  batchWait,
  credentialsWait,
  fullJitter,
  probeInterval,
} from '../../../src/delivery/policy/backoff.ts'
import type { Wait } from '../../../src/delivery/policy/types.ts'
import { createRandom } from '../../support/random.ts'

describe('full jitter', () => {
  test('is uniformly random from zero to its bound, which doubles up to the maximum', () => {
    const chance = createRandom(11)
    const random = () => chance.next()
    for (let failures = 1; failures < 40; failures += 1) {
      const bound = Math.min(60_000, 1000 * 2 ** (failures - 1))
      const draws = Array.from({ length: 500 }, () =>
        fullJitter(random, failures, { minMs: 1000, maxMs: 60_000 }),
      )
      expect(Math.max(...draws)).toBeLessThan(bound)
      expect(Math.max(...draws)).toBeGreaterThan(0.95 * bound)
      expect(Math.min(...draws)).toBeLessThan(0.05 * bound)
    }
  })

  test('spreads the retries of a thousand gateways that failed together', () => {
    const chance = createRandom(12)
    const random = () => chance.next()
    const windows = new Map<number, number>()
    for (let gateway = 0; gateway < 1000; gateway += 1) {
      const window = Math.floor(fullJitter(random, 20, { minMs: 1000, maxMs: 60_000 }) / 5000)
      windows.set(window, (windows.get(window) ?? 0) + 1)
    }
    expect(Math.max(...windows.values())).toBeLessThan((3 * 1000 * 5) / 60)
  })
})

test('a probe interval varies by its jitter', () => {
  const intervals = [0, 0.5, 1].map((drawn) => probeInterval(() => drawn, defaultBackoff))
  expect(intervals).toEqual([480_000, 600_000, 720_000])
})

test('the wait for credentials doubles from 5 s to 5 min', () => {
  const waits = [1, 2, 3, 6, 7, 8, 100].map((failures) => credentialsWait(failures, defaultBackoff))
  expect(waits).toEqual([5000, 10_000, 20_000, 160_000, 300_000, 300_000, 300_000])
})

describe('the longest wait of a batch', () => {
  test.each<[wait: Wait, failures: number, retryAfterMs: number, longestMs: number]>([
    ['none', 5, 0, 0],
    ['backoff', 1, 0, 1000],
    ['backoff', 5, 0, 16_000],
    ['backoff', 20, 0, 60_000],
    ['backoff', 1, 300_000, 300_000],
    ['stuck', 10, 0, 512_000],
    ['stuck', 20, 0, 600_000],
    ['slow', 1, 0, 720_000],
    ['acceptance', 1, 0, 720_000],
  ])('%s after %d failures, Retry-After %d ms: %d ms', (wait, failures, retryAfterMs, longestMs) => {
    expect(batchWait(() => 1, wait, { failures, retryAfterMs }, defaultBackoff)).toBe(longestMs)
  })
})
