import { describe, expect, test } from 'vitest'
import { createMotion } from '../../../src/mapping/state/motion.ts'

function speeds(list: readonly number[], { above = 5, below = 2 } = {}) {
  const { movesAt } = createMotion({ above, below, devicesMax: 100 })
  return list.map((speed, index) => movesAt('truck-7', speed, index))
}

describe('motion derived from the speed', () => {
  test('starts above one speed and stops at a lower one', () => {
    expect(speeds([0, 3, 5, 5.1, 3, 2.1, 2, 3, 5, 6])).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
      false,
      false,
      false,
      true,
    ])
  })

  test('is unknown without a speed, which does not change the state', () => {
    expect(speeds([20, Number.NaN, 3])).toEqual([true, undefined, true])
  })

  test('depends on the speed alone when both thresholds are equal', () => {
    expect(speeds([6, 5, 5.5, 4], { below: 5 })).toEqual([true, false, true, false])
  })

  test('is kept per device, and late messages do not change it', () => {
    const { movesAt } = createMotion({ above: 5, below: 2, devicesMax: 100 })
    expect(movesAt('truck-7', 30, 1000)).toBe(true)
    expect(movesAt('truck-8', 4, 1000)).toBe(false)
    expect(movesAt('truck-7', 0, 500)).toBe(false)
    expect(movesAt('truck-7', 4, 1001)).toBe(true)
  })

  test('evicts devices at its bound', () => {
    const { movesAt, counters } = createMotion({ above: 5, below: 2, devicesMax: 4 })
    movesAt('truck-0', 30, 0)
    for (let n = 1; n < 10; n += 1) movesAt(`truck-${n}`, 0, 0)
    expect(movesAt('truck-0', 4, 1)).toBe(false)
    expect(counters().entries).toBeLessThanOrEqual(4)
    expect(counters().evictions).toBeGreaterThan(0)
  })
})
