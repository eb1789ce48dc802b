// histories.ts: the test of the model over many histories: some in `npm test`, more in histories.slow.test.ts.

import { expect, test } from 'vitest'
import { runModel } from './model.ts'

export function testHistories({ firstSeed, sequences }: { firstSeed: number; sequences: number }): void {
  test(`keeps every rule over ${sequences} histories`, { timeout: 240_000 }, async () => {
    const report = await runModel({ firstSeed, sequences, steps: 60 })
    expect(report.sequences).toBe(sequences)
    // The histories must contain each kind of step.
    expect(report.acked).toBeGreaterThan(sequences * 5)
    expect(report.crashes).toBeGreaterThan(sequences)
    expect(report.exchanged).toBeGreaterThan(sequences / 4)
    expect(report.refused).toBeGreaterThan(sequences / 40)
    expect(report.failures).toBeGreaterThan(sequences / 2)
    expect(report.sealedTogether).toBeGreaterThan(sequences / 5)
    expect(report.rotated).toBeGreaterThan(sequences / 2)
    expect(report.resealed).toBeGreaterThan(sequences / 2)
    expect(report.operationSet).toBeGreaterThan(sequences / 4)
    expect(report.heldSet).toBeGreaterThan(sequences / 4)
    expect(report.followed).toBeGreaterThan(sequences / 10)
    expect(report.dropped).toBeGreaterThan(sequences / 4)
    expect(report.parked).toBeGreaterThan(sequences / 4)
    expect(report.takenBack).toBeGreaterThan(sequences / 4)
  })
}
