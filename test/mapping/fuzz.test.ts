import { expect, test } from 'vitest'
import { fuzz, loadTrials } from './fuzz.ts'
import { wordTrials } from './word-trials.ts'

// Seeds that failed are kept.
const seeds = [1, 2, 7, 42, 20_260_128]
const trials = await loadTrials()

/** Only ends a run that hangs: all seeds together take some seconds. */
const timeout = 300_000

test.each(seeds)(
  'broken messages of all presets get a result and no exception, with seed %i',
  { timeout },
  (seed) => {
    const report = fuzz(trials, { messages: 10_000, seed })
    expect(report.faults).toEqual([])
    expect(report.messages).toBeGreaterThanOrEqual(10_000)
    // Otherwise the messages did not reach the mapping.
    expect(report.payloads).toBeGreaterThan(1000)
    expect(report.withheld).toBeGreaterThan(100)
    expect(report.stateBytesMax).toBeLessThan(2 ** 20)
    expect([...report.stateLeft]).toEqual([])
  },
)

test.each(seeds.slice(0, 3))(
  'broken messages whose values are computed are exact, in range, or refused, with seed %i',
  { timeout },
  (seed) => {
    const report = fuzz(wordTrials, { messages: 3000, seed })
    expect(report.faults).toEqual([])
    expect(report.judged).toBeGreaterThan(500)
    expect([...report.stateLeft]).toEqual([])
  },
)
