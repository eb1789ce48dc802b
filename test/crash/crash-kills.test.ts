// Kills the real daemon with signal 9 at every relevant point. run.ts does the same for hours.
// The rules are in crash-world.ts.

import { expect, test } from 'vitest'
import { places, runCrashes } from './harness.ts'

test(
  'killed once at each of 11 points of its work, the gateway loses nothing acknowledged and delivers nothing twice',
  { timeout: 180_000 },
  async () => {
    const report = await runCrashes({ seed: 1, kills: 11, powerCuts: 0 })
    expect(report.violations, `seed ${report.seed}`).toEqual([])
    expect(report.missed, `seed ${report.seed}`).toEqual({})
    for (const place of places) expect(report.killsByPlace[place], place).toBe(1)
    // Otherwise the run would prove little.
    expect(report.resent).toBeGreaterThan(0)
    expect(report.repeats).toBeGreaterThan(0)
    expect(report.deadLetters).toBeGreaterThan(0)
  },
)
