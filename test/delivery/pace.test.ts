// The small things that set the tempo: back-off, concurrency, rate, the alarm.

import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createWakeTimer } from '../../src/delivery/provider-pipeline/wake-timer.ts'
import { around, fullJitter } from '../../src/delivery/policy/backoff.ts'
import { createConcurrency } from '../../src/delivery/policy/concurrency.ts'
import { createRate } from '../../src/delivery/delivery-counters.ts'
import { systemClock } from '../../src/std/clock.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { createRandom } from '../support/random.ts'

describe('back-off', () => {
  test('is drawn evenly from zero to its bound, which doubles up to the longest', () => {
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

  test('a thousand gateways that fell together do not knock together', () => {
    const chance = createRandom(12)
    const random = () => chance.next()
    const windows = new Map<number, number>()
    for (let gateway = 0; gateway < 1000; gateway += 1) {
      const window = Math.floor(fullJitter(random, 20, { minMs: 1000, maxMs: 60_000 }) / 5000)
      windows.set(window, (windows.get(window) ?? 0) + 1)
    }
    expect(Math.max(...windows.values())).toBeLessThan((3 * 1000 * 5) / 60)
  })

  test('a slow probe varies by its jitter', () => {
    expect([around(() => 0, 600, 0.2), around(() => 0.5, 600, 0.2), around(() => 1, 600, 0.2)]).toEqual([
      480, 600, 720,
    ])
  })
})

describe('concurrency', () => {
  test('is halved once for all that failed together, and comes back one by one', () => {
    const concurrency = createConcurrency({ max: 8 })
    const starts = Array.from({ length: 8 }, () => concurrency.started())
    for (const started of starts) concurrency.failed(started)
    expect(concurrency.limit).toBe(4)
    concurrency.failed(concurrency.started())
    concurrency.failed(concurrency.started())
    concurrency.failed(concurrency.started())
    expect(concurrency.limit).toBe(1)
    const limits = Array.from({ length: 40 }, () => {
      concurrency.succeeded()
      return concurrency.limit
    })
    expect(limits.slice(0, 6)).toEqual([2, 2, 3, 3, 3, 4])
    expect(limits.at(-1)).toBe(8)
  })

  test('begins with one after an outage', () => {
    const concurrency = createConcurrency({ max: 8 })
    concurrency.collapse()
    expect(concurrency.limit).toBe(1)
  })
})

describe('the rate of the last minute', () => {
  test('forgets what is older, and does not divide by a minute before one has passed', async () => {
    const clock = createFakeClock()
    const rate = createRate({ clock })
    rate.add(100)
    expect(rate.perS()).toBe(100)
    await clock.advance(10_000)
    expect(rate.perS()).toBe(10)
    await clock.advance(49_000)
    rate.add(60)
    expect(rate.perS()).toBeCloseTo(160 / 59)
    await clock.advance(2000)
    expect(rate.perS()).toBe(1)
    await clock.advance(3_600_000)
    expect(rate.perS()).toBe(0)
  })
})

test('a delay of months is waited for, and can be called off', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const fired: string[] = []
  const dayMs = 86_400_000
  systemClock.after(60 * dayMs, () => fired.push('sixty days'))
  const cancel = systemClock.after(50 * dayMs, () => fired.push('fifty days'))
  vi.advanceTimersByTime(40 * dayMs)
  expect(fired).toEqual([])
  cancel()
  vi.advanceTimersByTime(20 * dayMs)
  expect(fired).toEqual(['sixty days'])
})

describe('the alarm', () => {
  test('rings at the earliest moment that was asked for, once', async () => {
    const clock = createFakeClock()
    const rings: number[] = []
    const alarm = createWakeTimer({ clock }, () => rings.push(clock.monotonic()))
    alarm.set(500)
    alarm.set(100)
    alarm.set(300)
    expect(clock.pending()).toBe(1)
    await clock.advance(1000)
    expect(rings).toEqual([100])
    alarm.set(0)
    await clock.advance(1)
    expect(rings).toEqual([100, 1001])
  })
})
