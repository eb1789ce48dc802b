// Cuts the power of the real daemon. run.ts does the same for hours.

import { describe, expect, test } from 'vitest'
import { runCrashes, whyNoPowerCuts } from './harness.ts'

const noPowerCuts = await whyNoPowerCuts()

describe.skipIf(noPowerCuts !== null)(
  `power cuts (${noPowerCuts ?? 'each file is cut back to its last fsync'})`,
  () => {
    test(
      'after 11 power cuts nothing acknowledged is lost and nothing is delivered twice',
      { timeout: 120_000 },
      async () => {
        const report = await runCrashes({ seed: 2, kills: 0, powerCuts: 11 })
        expect(report.violations, `seed ${report.seed}`).toEqual([])
        expect(report.missed, `seed ${report.seed}`).toEqual({})
        expect(report.bytesCut).toBeGreaterThan(0)
      },
    )
  },
)
