import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../src/std/clock.ts'

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
