import { expect, test } from 'vitest'
import { createTrustedTime } from '../../src/ledger/trusted-time.ts'
import { createFakeClock } from '../support/fake-clock.ts'

test('after a step no record is deleted by an offset that may be old, for ten minutes', async () => {
  const clock = createFakeClock()
  let offsetMs: number | null = 0
  const time = createTrustedTime({ clock, offsetMs: () => offsetMs })
  expect(time.now()).toBe(clock.now())
  clock.stepWall(3_600_000)
  expect(time.now()).toBeNull()
  await clock.advance(599_000)
  expect(time.now()).toBeNull()
  await clock.advance(1000)
  expect(time.now()).toBe(clock.now())
  clock.stepWall(3_600_000)
  expect(time.now()).toBeNull()
  offsetMs = null
  expect(time.now()).toBeNull()
  offsetMs = 0
  expect(time.now()).toBe(clock.now())
})
