import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { every, isoTime, systemClock } from '../../src/std/clock.ts'
import { createFakeClock } from '../support/fake-clock.ts'

test('a timer of months fires in time, and can be cancelled', () => {
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

describe('a time as text', () => {
  const day = 86_400_000
  const at = 1_763_700_000_000
  test.each([
    0,
    0.9,
    1,
    999,
    59_999,
    day - 1,
    day,
    at,
    at + 0.7,
    at + day,
    at,
    at - 1,
    -1,
    253_402_300_800_000,
  ])('is that of Date, whatever came before: %d', (time) => {
    expect(isoTime(time)).toBe(new Date(time).toISOString())
  })

  test('is that of Date for each hour of two days', () => {
    for (let time = at; time < at + 2 * day; time += 3_599_007)
      expect(isoTime(time)).toBe(new Date(time).toISOString())
  })

  test('is none for what is no time', () => {
    expect(() => isoTime(Number.NaN)).toThrow(RangeError)
  })
})

describe('work that comes again and again', () => {
  test('falls on full seconds of the monotonic clock, so that one wake-up serves all of it', async () => {
    const clock = createFakeClock()
    const base = clock.monotonic()
    await clock.advance(1000 - (base % 1000) + 230)
    const calls: [string, number][] = []
    const ends = [1000, 10_000].map((everyMs) =>
      every(clock, everyMs, () => void calls.push([`${everyMs}`, clock.monotonic() % 1000])),
    )
    await clock.advance(10_000)
    expect(calls.filter(([name]) => name === '1000')).toHaveLength(10)
    expect(calls.filter(([name]) => name === '10000')).toHaveLength(1)
    expect(new Set(calls.map(([, rest]) => rest))).toEqual(new Set([0]))
    for (const end of ends) end()
    expect(clock.pending()).toBe(0)
  })

  test('does not come twice for one second where the timer fires a moment early', async () => {
    const clock = createFakeClock()
    await clock.advance(1000 - (clock.monotonic() % 1000))
    let calls = 0
    const early = { ...clock, after: (ms: number, fire: () => void) => clock.after(ms - 0.7, fire) }
    const end = every(early, 1000, () => void (calls += 1))
    await clock.advance(10_000)
    end()
    expect(calls).toBeLessThanOrEqual(10)
  })

  test('comes as often as asked where that is less than a second', async () => {
    const clock = createFakeClock()
    let calls = 0
    const end = every(clock, 50, () => void (calls += 1))
    await clock.advance(500)
    end()
    expect(calls).toBe(10)
  })
})
