import { expect, test } from 'vitest'
import { gapsKept, medianGap } from '../../src/device-records/rhythm.ts'
import { createRandom } from '../support/random.ts'

test('the rhythm is the lower median of the gaps that are kept', () => {
  const random = createRandom(1)
  for (let count = 3; count < 3 * gapsKept; count += 1) {
    const numbers = Float64Array.from({ length: 5 + gapsKept + 5 }, () => random.below(10_000))
    const known = Math.min(count, gapsKept)
    const gaps = [...numbers.subarray(5, 5 + known)].sort((a, b) => a - b)
    const expected = gaps[Math.floor((known - 1) / 2)]
    expect([count, medianGap(numbers, 5, { count, sentForMs: 1 })]).toEqual([count, expected])
  }
})
