import { expect, test } from 'vitest'
import { fuzz, loadTrials } from './fuzz.ts'

// Seeds that failed once stay here.
const seeds = [1, 2, 7, 42, 20_260_128]
const trials = await loadTrials()

test.each(seeds)('broken messages of all presets are answered, never thrown at, with seed %i', (seed) => {
  const report = fuzz(trials, { messages: 10_000, seed })
  expect(report.faults).toEqual([])
  expect(report.messages).toBeGreaterThanOrEqual(10_000)
  // Else nothing of the mapping was reached.
  expect(report.payloads).toBeGreaterThan(1000)
  expect(report.slowest.ms).toBeLessThan(500)
  expect(report.stateBytesMax).toBeLessThan(2 ** 20)
  expect([...report.stateLeft]).toEqual([])
})
