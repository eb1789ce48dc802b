// Kills the real daemon with signal 9 at random moments of its work, and cuts its power. run.ts does the same for hours.
// The rules are in crash-world.ts.

import { describe, expect, test } from 'vitest'
import { runCrashes, whyNoPowerCuts, type CrashReport } from './harness.ts'

const noPowerCuts = await whyNoPowerCuts()
const timeout = 300_000

function expectNothingWrong({ violations, seed }: CrashReport): void {
  expect(violations, `seed ${seed}`).toEqual([])
}

test(
  'killed 8 times, the gateway loses nothing acknowledged and delivers nothing twice',
  { timeout },
  async () => {
    const report = await runCrashes({ seed: 1, kills: 8, powerCuts: 0 })
    expectNothingWrong(report)
    // Otherwise the run would prove little.
    for (const count of ['resent', 'repeats', 'deadLetters'] as const)
      expect(report[count], count).toBeGreaterThan(0)
  },
)

describe.skipIf(noPowerCuts !== null)(
  `power cuts (${noPowerCuts ?? 'each file is cut back to its last fsync'})`,
  { timeout },
  () => {
    test('after 8 of them nothing acknowledged is lost and nothing is delivered twice', async () => {
      const report = await runCrashes({ seed: 2, kills: 0, powerCuts: 8 })
      expectNothingWrong(report)
      expect(report.bytesCut).toBeGreaterThan(0)
    })

    test('show a gateway that does not force its writes to the disk', async () => {
      const mistaken = { withoutSync: true, serviceDown: true, moment: 'ack' } as const
      const { violations } = await runCrashes({ seed: 3, kills: 0, powerCuts: 2, ...mistaken })
      expect(violations).toContainEqual(expect.stringMatching(/^lost/))
    })
  },
)
