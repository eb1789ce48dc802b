import { describe, expect, test } from 'vitest'
import { createConcurrency } from '../../../src/delivery/pacing/concurrency.ts'

describe('concurrency', () => {
  test('is halved once for submissions that fail together, and grows again by one', () => {
    const concurrency = createConcurrency({ maxInFlight: 8 })
    const starts = Array.from({ length: 8 }, () => concurrency.started())
    for (const started of starts) concurrency.failed(started)
    expect(concurrency.limit()).toBe(4)
    concurrency.failed(concurrency.started())
    concurrency.failed(concurrency.started())
    concurrency.failed(concurrency.started())
    expect(concurrency.limit()).toBe(1)
    const limits = Array.from({ length: 40 }, () => {
      concurrency.succeeded()
      return concurrency.limit()
    })
    expect(limits.slice(0, 6)).toEqual([2, 2, 3, 3, 3, 4])
    expect(limits.at(-1)).toBe(8)
  })

  test('starts with one after an outage', () => {
    const concurrency = createConcurrency({ maxInFlight: 8 })
    concurrency.reset()
    expect(concurrency.limit()).toBe(1)
  })
})
