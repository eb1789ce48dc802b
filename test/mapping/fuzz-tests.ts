// fuzz-tests.ts: the tests of broken messages: with some seeds in `npm test`, and with all in
// fuzz.slow.test.ts.

import { expect, test } from 'vitest'
import { fuzz, loadTrials } from './fuzz.ts'
import { wordTrials } from './word-trials.ts'

/** Only ends a run that hangs: a seed takes some seconds. */
const timeout = 300_000
const trials = await loadTrials()

export function testBrokenMessages(seeds: readonly number[], messages: number): void {
  test.each(seeds)(
    'broken messages of all presets get a result and no exception, with seed %i',
    { timeout },
    (seed) => {
      const report = fuzz(trials, { messages, seed })
      expect(report.faults).toEqual([])
      expect(report.messages).toBeGreaterThanOrEqual(messages)
      // Otherwise the messages did not reach the mapping.
      expect(report.payloads).toBeGreaterThan(messages / 10)
      expect(report.withheld).toBeGreaterThan(messages / 100)
      expect(report.stateBytesMax).toBeLessThan(2 ** 20)
      expect([...report.stateLeft]).toEqual([])
    },
  )
}

export function testComputedValues(seeds: readonly number[], messages: number): void {
  test.each(seeds)(
    'broken messages whose values are computed are exact, in range, or refused, with seed %i',
    { timeout },
    (seed) => {
      const report = fuzz(wordTrials, { messages, seed })
      expect(report.faults).toEqual([])
      expect(report.judged).toBeGreaterThan(messages / 6)
      expect([...report.stateLeft]).toEqual([])
    },
  )
}
