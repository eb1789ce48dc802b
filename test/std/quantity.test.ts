import { describe, expect, test } from 'vitest'
import { formatAgo, formatDuration } from '../../src/std/quantity.ts'

describe('durations and ages as people read them', () => {
  test.each([
    [0, '0 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [59_700, '1 min'],
    [90_000, '1 min 30 s'],
    [86_460_000, '1 d 1 min'],
    [400 * 86_400_000, '400 d'],
    [-90_000, '-1 min 30 s'],
    [Number.NaN, 'unknown'],
    [Number.POSITIVE_INFINITY, 'unknown'],
  ])('%s ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  test.each([
    [0, 'just now'],
    [999, 'just now'],
    [1000, '1 s ago'],
    [200_000, '3 min 20 s ago'],
    [-4000, 'just now'],
    [-60_000, 'in 1 min'],
    [Number.NaN, 'at an unknown time'],
  ])('%s ms ago reads "%s"', (ms, text) => {
    expect(formatAgo(ms)).toBe(text)
  })
})
