import { describe, expect, test } from 'vitest'
import { createWakeTimer } from '../../../src/delivery/watch/wake-timer.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

describe('the wake timer', () => {
  test('fires once, at the earliest requested time', async () => {
    const clock = createFakeClock()
    const fired: number[] = []
    const timer = createWakeTimer({ clock }, () => fired.push(clock.monotonic()))
    timer.set(500)
    timer.set(100)
    timer.set(300)
    expect(clock.pending()).toBe(1)
    await clock.advance(1000)
    expect(fired).toEqual([100])
    timer.set(0)
    await clock.advance(1)
    expect(fired).toEqual([100, 1001])
  })
})
