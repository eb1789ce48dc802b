import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { isoTime, systemClock } from '../../src/std/clock.ts'

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
