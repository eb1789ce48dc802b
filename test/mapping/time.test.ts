import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileTime, type TimeFormat } from '../../src/mapping/time.ts'

function read(format: TimeFormat, value: unknown, zoneIsUtc = false): number {
  return compileTime(format, (record) => record, zoneIsUtc)(value, null)
}

const may = Date.UTC(2024, 4, 13, 5, 46, 12, 280)

describe('a time', () => {
  test.each<[TimeFormat, unknown, number]>([
    ['s', 1_715_579_172, 1_715_579_172_000],
    ['s', '1715579172', 1_715_579_172_000],
    ['s', 0, 0],
    ['s-float', 1_508_508_510.013_227, 1_508_508_510_013],
    ['s-float', '1508508510.013227', 1_508_508_510_013],
    ['s-float', 1_715_579_172.001, 1_715_579_172_001],
    ['s-float', 1_715_579_172.999_9, 1_715_579_172_999],
    ['ms', 1_715_579_172_280, may],
    ['ms', 1_715_579_172_280.9, may],
    ['ms', '1715579172280', may],
    ['us', 1_715_579_172_280_999, may],
    ['auto', 1_715_579_172, 1_715_579_172_000],
    ['auto', 1_715_579_172_280, may],
    ['auto', '1715579172.28', may],
    ['iso', '2024-05-13T05:46:12.280Z', may],
    ['iso', '2024-05-13t05:46:12.280z', may],
    ['iso', '2024-05-13 05:46:12.280Z', may],
    ['iso', '2024-05-13T05:46:12.28Z', may],
    ['iso', '2024-05-13T05:46:12,280Z', may],
    ['iso', '2024-05-13T05:46:12.280123456Z', may],
    ['iso', '2024-05-13T05:46:12.280999999999Z', may],
    ['iso', '2024-05-13T05:46:12.280+0000', may],
    ['iso', '2024-05-13T08:46:12.280+03:00', may],
    ['iso', '2024-05-13T08:46:12.280+03', may],
    ['iso', '2024-05-12T22:16:12.280-07:30', may],
    ['iso', '2024-05-13T05:46Z', may - 12_280],
    ['iso', '2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['iso', '2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['datetime', '2024-05-13 05:46:12', may - 280],
    ['datetime', '2024-05-13T05:46:12.280Z', may],
    ['compact', '20240513054612', may - 280],
    ['compact', 20_240_513_054_612, may - 280],
  ])('%s %j is %d', (format, value, expected) => {
    expect(read(format, value)).toBe(expected)
  })

  test.each<[TimeFormat, unknown]>([
    ['s', -1],
    ['s', 'yesterday'],
    ['s', '1715579172,5'],
    ['s', true],
    ['s', {}],
    ['s', 1e300],
    ['ms', -1],
    ['ms', 8.64e15 + 1],
    ['ms', Number.POSITIVE_INFINITY],
    ['iso', 1_715_579_172],
    ['iso', '2024-05-13T05:46:12'],
    ['iso', '2024-05-13T05:46:12 EST'],
    ['iso', '2024-05-13T05:46:12.Z'],
    ['iso', '2024-05-13T05:46:1Z'],
    ['iso', '2024-05-13T24:00:00Z'],
    ['iso', '2024-13-01T00:00:00Z'],
    ['iso', '2024-00-01T00:00:00Z'],
    ['iso', '2023-02-29T00:00:00Z'],
    ['iso', '1900-02-29T00:00:00Z'],
    ['iso', '2024-05-13T05:46:12+25:00'],
    ['iso', '2024-05-13T05:46:12+03:'],
    ['iso', '2024-05-13T05:46:12Zz'],
    ['iso', '2024-05-13X05:46:12Z'],
    ['iso', '24-05-13T05:46:12Z'],
    ['iso', '1969-12-31T23:59:59Z'],
    ['iso', `2024-05-13T05:46:12.${'0'.repeat(100)}Z`],
    ['datetime', '13.05.2024 05:46:12'],
    ['datetime', '2024-05-13'],
    ['compact', '2024051305461'],
    ['compact', '20241313054612'],
    ['compact', '2024051305461x'],
  ])('%s %j is refused', (format, value) => {
    expect(read(format, value)).toBe(Number.POSITIVE_INFINITY)
  })

  test('without a zone is taken as UTC only where the source says so', () => {
    expect(read('iso', '2024-05-13T05:46:12.280', true)).toBe(may)
    expect(read('iso', '2024-05-13T08:46:12.280+03:00', true)).toBe(may)
  })

  test.each([null, undefined, ''])('%j is a missing one', (value) => {
    for (const format of ['s', 'ms', 'iso', 'compact', 'auto'] as const) expect(read(format, value)).toBeNaN()
  })

  test('in ISO is what Date makes of it, for every millisecond from 1970 to 9999', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (ms) => {
        expect(read('iso', new Date(ms).toISOString())).toBe(ms)
      }),
      { numRuns: 2000 },
    )
  })

  test('in seconds with three digits never drifts by a millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (ms) => {
        expect(read('s-float', ms / 1000)).toBe(ms)
      }),
      { numRuns: 5000 },
    )
  })
})
