// Kills the real daemon with signal 9 at some points of its work. crash-kills.test.ts does so at every relevant
// point, and run.ts for hours. The rules are in crash-world.ts.

import { expect, test } from 'vitest'
import { runCrashes } from './harness.ts'

test(
  'killed three times in the middle of its work, the gateway loses nothing acknowledged and delivers nothing twice',
  { timeout: 180_000 },
  async () => {
    const report = await runCrashes({ seed: 1, kills: 3, powerCuts: 0 })
    expect(report.violations, `seed ${report.seed}`).toEqual([])
    expect(report.missed, `seed ${report.seed}`).toEqual({})
    expect(Object.values(report.killsByPlace)).toEqual([1, 1, 1])
    // Otherwise the run would prove little.
    expect(report.repeats).toBeGreaterThan(0)
  },
)
