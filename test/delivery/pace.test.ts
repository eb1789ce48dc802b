// The small things that set the tempo: back-off, concurrency, rate, the service's clock, the alarm.

import { describe, expect, test } from 'vitest'
import { createAlarm } from '../../src/delivery/alarm.ts'
import { around, fullJitter } from '../../src/delivery/backoff.ts'
import { createConcurrency } from '../../src/delivery/concurrency.ts'
import { createServiceClock } from '../../src/delivery/service-clock.ts'
import { createRate } from '../../src/delivery/tally.ts'
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

describe("the service's clock", () => {
  const dateOf = (ms: number) => new Date(ms).toUTCString()

  test('corrects the signing time from a minute on', () => {
    const clock = createFakeClock()
    const service = createServiceClock({ clock }, { baseUrl: 'http://127.0.0.1:1' })
    expect(service.offsetMs).toBeNull()
    expect(service.signingAt()).toBe(clock.now())
    service.answered(dateOf(clock.now() + 30_000), clock.now())
    expect(service.offsetMs).toBe(30_500)
    expect(service.signingAt()).toBe(clock.now())
    service.answered(dateOf(clock.now() - 3_600_000), clock.now())
    expect(service.signingAt()).toBe(clock.now() - 3_599_500)
  })

  test.each(['http://10.0.0.1', 'http://example.com', 'http://127.evil.example'])(
    '%s is not believed',
    (baseUrl) => {
      const clock = createFakeClock()
      const service = createServiceClock({ clock }, { baseUrl })
      service.answered(dateOf(clock.now() + 7_200_000), clock.now())
      expect(service.offsetMs).toBeNull()
    },
  )

  test.each(['https://example.com', 'http://localhost', 'http://[::1]:80'])('%s is', (baseUrl) => {
    const clock = createFakeClock()
    const service = createServiceClock({ clock }, { baseUrl })
    service.answered(dateOf(clock.now()), clock.now())
    expect(service.offsetMs).toBe(500)
  })

  test.each([null, 'soon', dateOf(0), dateOf(Date.UTC(2200, 0, 1))])('a Date of %j says nothing', (date) => {
    const clock = createFakeClock()
    const service = createServiceClock({ clock }, { baseUrl: 'https://example.com' })
    service.answered(date, clock.now())
    expect(service.offsetMs).toBeNull()
  })
})

describe('the alarm', () => {
  test('rings at the earliest moment that was asked for, once', async () => {
    const clock = createFakeClock()
    const rings: number[] = []
    const alarm = createAlarm({ clock }, () => rings.push(clock.monotonic()))
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
