import { describe, expect, test } from 'vitest'
import { createRate } from '../../src/delivery/delivery-counters.ts'
import { createFakeClock } from '../support/fake-clock.ts'

describe('the rate of the last minute', () => {
  test('omits older payloads, and divides by the elapsed time in the first minute', async () => {
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
