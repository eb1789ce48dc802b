import { describe, expect, test } from 'vitest'
import { testHistories } from './histories.ts'
import { runModel } from './model.ts'

/** Seeds that broke a rule in the past; keep them. */
const formerFailures = [33, 228]

// More are in histories.slow.test.ts, and `node test/model/run.ts` tries any number.
describe('the spool over random histories of traffic, power cuts and failed writes', () => {
  test.each(formerFailures)('keeps every rule for the former failing seed %i', async (seed) => {
    const report = await runModel({ firstSeed: seed, sequences: 1, steps: 60 })
    expect(report.sequences).toBe(1)
  })

  testHistories({ firstSeed: 1, sequences: 100 })
})
