import { expect, test } from 'vitest'
import { compareBothWays } from './differential.ts'

/** Only ends a run that hangs. */
const timeout = 900_000

test('hostile messages have the same result with the fast path and without it', { timeout }, () => {
  const report = compareBothWays({ count: 50_000, seed: 11 })
  expect(report.differences).toEqual([])
  expect(report.messages).toBeGreaterThanOrEqual(50_000)
  expect(report.mapped).toBeGreaterThan(20_000)
  // Otherwise it would compare one way with itself.
  for (const [name, fast] of report.fast) expect(fast, name).toBeGreaterThan(150)
})
