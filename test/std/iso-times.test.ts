import { describe, expect, test } from 'vitest'
import { isoTimes } from '../../src/std/iso-times.ts'

const at = 1_750_000_000_000
const iso = '2025-06-15T15:06:40.000Z'

describe('an answer', () => {
  test('has its times as ISO 8601, at any depth, and null for never', () => {
    expect(isoTimes({ at, oldestAt: null, groups: [{ latestAt: at, held: { since: at } }] })).toEqual({
      at: iso,
      oldestAt: null,
      groups: [{ latestAt: iso, held: { since: iso } }],
    })
  })

  test('keeps other numbers, durations and what devices and configs named', () => {
    const value = {
      bytes: at,
      tookMs: 5,
      flat: 1,
      format: 2,
      payload: { at, arrivedAt: at },
      payloads: 3,
      arrival: { at },
      result: { at: 4 },
    }
    expect(isoTimes(value)).toEqual(value)
  })

  test('has null for a time that no calendar has', () => {
    expect(isoTimes({ deviceTime: 9e15 })).toEqual({ deviceTime: null })
  })
})
