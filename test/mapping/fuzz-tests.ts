// fuzz-tests.ts: the test of broken messages: with some seeds in `npm test`, and with all in fuzz.slow.test.ts.

import { expect, test } from 'vitest'
import { fuzz, loadTrials } from './fuzz.ts'

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
