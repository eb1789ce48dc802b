import { expect, test } from 'vitest'
import { fuzz, loadTrials } from './fuzz.ts'

// Seeds that failed are kept.
const seeds = [1, 2, 7, 42, 20_260_128]
const trials = await loadTrials()

test.each(seeds)('broken messages of all presets get a result and no exception, with seed %i', (seed) => {
  const report = fuzz(trials, { messages: 10_000, seed })
  expect(report.faults).toEqual([])
  expect(report.messages).toBeGreaterThanOrEqual(10_000)
  // Otherwise the messages did not reach the mapping.
  expect(report.payloads).toBeGreaterThan(1000)
  // A guard against quadratic time; a message takes a fraction of a millisecond.
  expect(report.slowest.ms).toBeLessThan(20_000)
  expect(report.stateBytesMax).toBeLessThan(2 ** 20)
  expect([...report.stateLeft]).toEqual([])
})
