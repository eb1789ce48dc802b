// What a record says of times that were noted by a wrong clock: which of them move, and which stay.

import { describe, expect, test } from 'vitest'
import { column } from '../../src/device-records/record-table.ts'
import { redated, shiftTimes } from '../../src/device-records/record-times.ts'
import type { StoredRecord } from '../../src/device-records/device-record-codec.ts'

const dayMs = 86_400_000
const rowOf = (firstAt: number, lastAt: number, mappedAt: number) => {
  const numbers: number[] = []
  numbers[column.firstAt] = firstAt
  numbers[column.lastAt] = lastAt
  numbers[column.mappedAt] = mappedAt
  return numbers
}
const timesOf = (numbers: readonly number[]) =>
  [column.firstAt, column.lastAt, column.mappedAt].map((at) => numbers[at])

describe('times that move by 1000, from 100 on', () => {
  test.each([
    ['all are of this clock', [100, 120, 110], [1100, 1120, 1110]],
    ['the first is of a clock before', [50, 120, 110], [50, 1120, 1110]],
    ['one was noted by a clock that was ahead of this one', [50, 120, 5000], [50, 1120, 5000]],
  ] as const)('%s', (_what, [firstAt, lastAt, mappedAt], moved) => {
    const numbers = rowOf(firstAt, lastAt, mappedAt)
    shiftTimes(numbers, { base: 0, losses: [] }, { byMs: 1000, fromAt: 100 })
    expect(timesOf(numbers)).toEqual(moved)
  })
})

describe('a record of an unknown clock that began at 100,000', () => {
  test.each([
    [
      'the same boot, and the clock was set by a day',
      'a',
      100_000 + dayMs,
      [50, 130_000 + dayMs, 120_000 + dayMs],
    ],
    ['the same boot, and its clock goes on', 'a', 101_000, [50, 130_000, 120_000]],
    ['another boot', 'b', 7, [50, 900_000_000, 899_990_000]],
  ] as const)('read in %s', (_what, bootId, bootAt, times) => {
    const unknownClock = { bootId: 'a', bootAt: 100_000 }
    const stored = {
      numbers: rowOf(50, 130_000, 120_000),
      losses: [],
      unknownClock,
    } as unknown as StoredRecord
    expect(timesOf(redated(stored, { bootId, bootAt }, 900_000_000).numbers)).toEqual(times)
  })
})
