// Kills the real daemon with signal 9 at every relevant point, and cuts its power. run.ts does the same for hours.
// The rules are in crash-world.ts.

import { expect, test } from 'vitest'
import { places, runCrashes, whyNoPowerCuts } from './harness.ts'

const noPowerCuts = await whyNoPowerCuts()

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

test.skipIf(noPowerCuts !== null)(
  `after 11 power cuts nothing acknowledged is lost and nothing is delivered twice (${noPowerCuts ?? 'each file is cut back to its last fsync'})`,
  { timeout: 180_000 },
  async () => {
    const report = await runCrashes({ seed: 2, kills: 0, powerCuts: 11 })
    expect(report.violations, `seed ${report.seed}`).toEqual([])
    expect(report.missed, `seed ${report.seed}`).toEqual({})
    expect(report.bytesCut).toBeGreaterThan(0)
  },
)
