import { expect, test } from 'vitest'
import { compareBothWays } from './differential.ts'

/** Trials whose sources read properties of MQTT 5. */
const readers = ['untimed', 'packet']

/** Only ends a run that hangs. */
const timeout = 900_000

test('hostile messages have the same result with the fast path and without it', { timeout }, () => {
  const report = compareBothWays({ count: 50_000, seed: 11 })
  expect(report.differences).toEqual([])
  expect(report.messages).toBeGreaterThanOrEqual(50_000)
  expect(report.mapped).toBeGreaterThan(20_000)
  // Otherwise it would compare one way with itself.
  for (const [name, fast] of report.fast) expect(fast, name).toBeGreaterThan(150)
  // Messages with properties are parsed only where a path of the source may read them.
  const parsed = [...report.fastWithProperties].filter(([, fast]) => fast === 0)
  expect(parsed.map(([name]) => name)).toEqual(readers)
})
