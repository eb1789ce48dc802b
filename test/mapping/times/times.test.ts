import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileTime, timeFormats, type TimeFormat } from '../../../src/mapping/times/times.ts'
import { noZone, utc, zoneNamed } from '../../../src/mapping/times/zones.ts'

function read(format: TimeFormat, value: unknown, zoneIsUtc = false): number {
  return compileTime(format, (record) => record)(value, null, undefined, zoneIsUtc ? utc : null)
}

const may = Date.UTC(2024, 4, 13, 5, 46, 12, 280)

describe('a time', () => {
  test.each<[TimeFormat, unknown, number]>([
    ['s', 1_715_579_172, 1_715_579_172_000],
    ['s', '1715579172', 1_715_579_172_000],
    ['s', 0, 0],
    ['s-float', 1_508_508_510.013_227, 1_508_508_510_013],
    ['s-float', '1508508510.013227', 1_508_508_510_013],
    ['s-float', '1508508510.0139999', 1_508_508_510_013],
    ['s-float', '1715579172.5', 1_715_579_172_500],
    ['s-float', '1.7155791725e9', 1_715_579_172_500],
    ['auto', '1508508510.013227', 1_508_508_510_013],
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
    ['iso', '20240513T054612.280Z', may],
    ['iso', '20240513t054612,280999z', may],
    ['iso', '20240513T084612.280+0300', may],
    ['iso', '20240513T084612.280+03:00', may],
    ['iso', '20240513T054612Z', may - 280],
    ['iso', '20240513 054612Z', may - 280],
    ['iso', '20240513T0546Z', may - 12_280],
    ['iso', '20240512T2216-0730', may - 12_280],
    ['iso', '20240229T000000Z', Date.UTC(2024, 1, 29)],
    ['datetime', '20240513T054612', may - 280],
    ['datetime', '20240513T0546', may - 12_280],
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
    ['iso', '20240513T054612'],
    ['iso', '20240513X054612Z'],
    ['iso', '20240513T05461Z'],
    ['iso', '20240513T05:46:12Z'],
    ['iso', '20240513T054612.Z'],
    ['iso', '20230229T000000Z'],
    ['iso', '20240513T240000Z'],
    ['iso', '2024-05-13T054612Z'],
    ['iso', '2024-0513T05:46:12Z'],
    ['iso', '20240513T05Z'],
    ['iso', '24-05-13T05:46:12Z'],
    ['iso', '1969-12-31T23:59:59Z'],
    ['iso', `2024-05-13T05:46:12.${'0'.repeat(100)}Z`],
    ['s-float', '-1715579172.5'],
    ['s-float', '1715579172..'],
    ['s-float', '.'],
    ['iso', '2019-02-29T00:00:00Z'],
    ['datetime', '2019-02-29 00:00:00'],
    ['words', 'Fri Feb 29 17:07:53 EST 2019'],
    ['compact', '20190229000000'],
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

  test('in ISO equals the result of Date, for every millisecond from 1970 to 9999', () => {
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

const afternoon = Date.UTC(2021, 10, 5, 16, 4, 9)

describe('a time in words', () => {
  test.each([
    ['Fri Nov 05 16:04:09 UTC 2021', 0],
    ['Fri Nov  5 16:04:09 GMT 2021', 0],
    ['Fri Nov 5 16:04:09 EST 2021', -5],
    ['Fri Nov 5 16:04:09 EDT 2021', -4],
    ['Fri Nov 5 16:04:09 CST 2021', -6],
    ['Fri Nov 5 16:04:09 CDT 2021', -5],
    ['Fri Nov 5 16:04:09 MST 2021', -7],
    ['Fri Nov 5 16:04:09 MDT 2021', -6],
    ['Fri Nov 5 16:04:09 PST 2021', -8],
    ['Fri Nov 5 16:04:09 PDT 2021', -7],
    ['Fri Nov 5 16:04:09 CET 2021', 1],
    ['Fri Nov 5 16:04:09 cest 2021', 2],
    ['Fri Nov 5 16:04:09 BST 2021', 1],
    ['Fri Nov 5 16:04:09 EET 2021', 2],
    ['Fri Nov 5 16:04:09 EEST 2021', 3],
    ['Fri Nov 5 16:04:09 MSK 2021', 3],
    ['Fri Nov 5 16:04:09 ACST 2021', 9.5],
    ['Fri Nov 5 16:04:09 NST 2021', -3.5],
    ['Fri Nov 05 16:04:09 GMT+02:00 2021', 2],
    ['Fri, 05 Nov 2021 16:04:09 +0100', 1],
    ['Fri, 05 Nov 2021 16:04:09 GMT', 0],
    ['05-Nov-2021 16:04:09 Z', 0],
    ['5 November 2021 16:04:09 -03:30', -3.5],
    ['November 5, 2021 16:04:09 UTC', 0],
    ['Fri Nov 05 2021 16:04:09 GMT-0500 (Eastern Standard Time)', -5],
    ['2021-Nov-05 16:04:09+01', 1],
    ['16:04:09+0100 05-Nov-2021', 1],
    ['05Nov2021 16:04:09Z', 0],
  ])('%s is read, its zone %d hours east', (text, hours) => {
    expect(read('words', text)).toBe(afternoon - hours * 3_600_000)
  })

  test('has milliseconds, no seconds, or a leap second', () => {
    expect(read('words', '05-Nov-2021 16:04:09.743 UTC')).toBe(afternoon + 743)
    expect(read('words', '05-Nov-2021 16:04:09,7 UTC')).toBe(afternoon + 700)
    expect(read('words', '05-Nov-2021 16:04:09.7439999999 UTC')).toBe(afternoon + 743)
    expect(read('words', '05-Nov-2021 16:04 UTC')).toBe(afternoon - 9000)
    expect(read('words', '31-Dec-2016 23:59:60 UTC')).toBe(Date.UTC(2017, 0, 1))
  })

  test('without a zone is taken as UTC only where the source says so', () => {
    expect(read('words', '05-Nov-2021 16:04:09.743')).toBe(Number.POSITIVE_INFINITY)
    expect(read('words', '05-Nov-2021 16:04:09.743', true)).toBe(afternoon + 743)
    expect(read('words', 'Fri Nov 5 16:04:09 2021', true)).toBe(afternoon)
    expect(read('words', 'Fri Nov 5 16:04:09 EST 2021', true)).toBe(afternoon + 5 * 3_600_000)
  })

  test.each([
    'Fri Nov 05 16:04:09 IST 2021',
    'Fri Nov 05 16:04:09 AST 2021',
    'Fri Nov 05 16:04:09 XYZ 2021',
    'Fri Nov 05 16:04:09 UTC 21',
    'Fri Nov 05 16:04:09 UTC',
    'Fri Nov 16:04:09 UTC 2021',
    'Fri 05 16:04:09 UTC 2021',
    'Nov 05 UTC 2021',
    'Nov 05 Nov 16:04:09 UTC 2021',
    'Nov 05 06 16:04:09 UTC 2021',
    'Nov 05 16:04:09 16:04:09 UTC 2021',
    'Nov 05 16:04:09 UTC EST 2021',
    'Nov 05 16:04:09 EST+0100 2021',
    'Nov 05 16:04:09 EST +0100 2021',
    'EST 16:04:09+0100 Nov 05 2021',
    'Nov 05 16:04:09 UTC 2021 2021',
    'Fri Fri Nov 05 16:04:09 UTC 2021',
    'Nov 31 16:04:09 UTC 2021',
    'Nov 05 24:04:09 UTC 2021',
    'Nov 05 16:60:09 UTC 2021',
    'Nov 05 16:4:09 UTC 2021',
    'Nov 05 16:04:091 UTC 2021',
    'Nov 05 116:04:09 UTC 2021',
    'Nov 05th 16:04:09 UTC 2021',
    'Nov 05 16:04:09 +1900 2021',
    'Nov 05 16:04:09 +01000 2021',
    'Nov 05 16:04:09 +01:0 2021',
    'Nov 05 16:04:09 PM UTC 2021',
    '05.11.2021 16:04:09 UTC',
    '05.Nov.2021 16:04:09 UTC',
    'Nov 05 16:04:09 2021 (EST)',
    'N\u043ev 05 16:04:09 UTC 2021',
    `Nov 05 16:04:09${' '.repeat(100)}UTC 2021`,
  ])('%j is refused', (text) => {
    expect(read('words', text)).toBe(Number.POSITIVE_INFINITY)
  })

  test.each([1_715_579_172, true, {}, []])('%j is refused', (value) => {
    expect(read('words', value)).toBe(Number.POSITIVE_INFINITY)
  })

  test('equals the result of Date, in the formats of JavaScript and of mail headers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) / 1000 }), (seconds) => {
        const date = new Date(seconds * 1000)
        expect(read('words', date.toUTCString())).toBe(seconds * 1000)
        expect(read('words', date.toString())).toBe(seconds * 1000)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a time of numbers', () => {
  const noon = Date.UTC(2024, 4, 13, 17, 46, 12)

  test.each<[TimeFormat, unknown, number]>([
    ['dmy', '13.05.2024 05:46:12', may - 280],
    ['dmy', '13/05/24 05:46', may - 12_280],
    ['dmy', '13-05-2024T05:46:12.280', may],
    ['dmy', '13.5.2024, 5:46:12', may - 280],
    ['dmy', '05:46:12 13/05/2024', may - 280],
    ['dmy', '05:46:12.28, 13.05.24', may],
    ['dmy', '130524 054612.28', may],
    ['dmy', '130524,054612.28', may],
    ['dmy', '13052024 054612', may - 280],
    ['dmy', '130524054612', may - 280],
    ['dmy', '13052024054612', may - 280],
    ['dmy', '13.05.2024 05:46:12Z', may - 280],
    ['dmy', '13.05.2024 08:46:12+03:00', may - 280],
    ['dmy', '01.02.2024 00:00:00', Date.UTC(2024, 1, 1)],
    ['dmy', 10_224_000_000, Date.UTC(2024, 1, 1)],
    ['mdy', '01/02/2024 00:00', Date.UTC(2024, 0, 2)],
    ['mdy', '5/13/2024, 5:46:12 PM', noon],
    ['mdy', '5/13/24 5:46:12pm', noon],
    ['mdy', '5/13/2024, 5:46:12\u202fPM', noon],
    ['mdy', '5/13/2024 5:46:12\u00a0pm', noon],
    ['mdy', '05-13-2024 12:00:00 AM', Date.UTC(2024, 4, 13)],
    ['mdy', '05-13-2024 12:00:00 PM', Date.UTC(2024, 4, 13, 12)],
    ['mdy', '5:46:12 PM 5/13/2024', noon],
    ['mdy', '051324 174612', noon],
    ['ymd', '2024/05/13 17:46:12', noon],
    ['ymd', '24/05/13 17:46:12', noon],
    ['ymd', '24-5-13 17:46:12', noon],
    ['ymd', '240513174612', noon],
    ['ymd', '20240513174612', noon],
    ['ymd', 20_240_513_174_612, noon],
    ['dmy', '29.02.2024 00:00', Date.UTC(2024, 1, 29)],
    ['dmy', '31.12.99 23:59:60', Date.UTC(2100, 0, 1)],
  ])('%s %j is %d', (format, value, expected) => {
    expect(read(format, value, true)).toBe(expected)
  })

  test.each<[TimeFormat, unknown]>([
    ['dmy', '05/13/2024 05:46:12'],
    ['mdy', '13/05/2024 05:46:12'],
    ['ymd', '13/05/2024 05:46:12'],
    ['dmy', '2024/05/13 05:46:12'],
    ['dmy', '29.02.2023 00:00'],
    ['dmy', '13.05/2024 05:46:12'],
    ['dmy', '13.05.2024'],
    ['dmy', '05:46:12'],
    ['dmy', '13.05.024 05:46:12'],
    ['dmy', '013.05.2024 05:46:12'],
    ['dmy', '13.005.2024 05:46:12'],
    ['dmy', '13.05. 05:46:12'],
    ['dmy', '13 05 2024 05:46:12'],
    ['dmy', '13.05.2024 24:00:00'],
    ['dmy', '13.05.2024 05:60'],
    ['dmy', '13.05.2024 5:4'],
    ['dmy', '13.05.2024 005:46'],
    ['dmy', '13.05.2024 05:46:12.'],
    ['dmy', '13.05.2024 13:46 PM'],
    ['dmy', '13.05.2024 0:46 AM'],
    ['dmy', '13.05.2024 05:46:12 EST'],
    ['dmy', '13.05.2024 05:46:12 x'],
    ['dmy', '05:46:12 13/05/2024+02:00'],
    ['dmy', '054612 130524'],
    ['dmy', '130524 54612'],
    ['dmy', '1305240546'],
    ['dmy', '1305245 054612'],
    ['dmy', 13.5],
    ['dmy', true],
    ['dmy', `13.05.2024${' '.repeat(60)}05:46:12`],
  ])('%s %j is refused', (format, value) => {
    expect(read(format, value, true)).toBe(Number.POSITIVE_INFINITY)
  })

  test('is refused without a zone', () => {
    expect(read('dmy', '13.05.2024 05:46:12')).toBe(Number.POSITIVE_INFINITY)
    expect(read('dmy', '13.05.2024 05:46:12Z')).toBe(may - 280)
  })
})

test.each<[TimeFormat, unknown]>([
  ['iso', '2024-05-13T05:46:12.280'],
  ['iso', '20240513 054612.280'],
  ['datetime', '2024-05-13 05:46:12.280'],
  ['words', '13-May-2024 05:46:12.280'],
  ['dmy', '13.05.2024 05:46:12.280'],
  ['mdy', '05/13/2024 05:46:12.280'],
  ['ymd', '24/05/13 05:46:12.280'],
])('%s %j is read in its zone', (format, text) => {
  const time = compileTime(format, (record) => record)
  expect(time(text, null, undefined, zoneNamed('Europe/Berlin'))).toBe(may - 2 * 3_600_000)
  expect(time(text, null, undefined, noZone)).toBe(Number.POSITIVE_INFINITY)
})

test('a compact time is read in its zone', () => {
  const time = compileTime('compact', (record) => record)
  expect(time('20240513054612', null, undefined, zoneNamed('Asia/Kolkata'))).toBe(may - 280 - 5.5 * 3_600_000)
})

test('no format throws, for any value', () => {
  const pieces = [
    '2024',
    '05',
    'Feb',
    ':',
    '-',
    '+',
    ' ',
    'T',
    'Z',
    '.',
    ',',
    'EST',
    'PM',
    '/',
    '13',
    '(',
    ')',
    '17:07',
    '99',
    'e',
  ]
  const text = fc.string({ unit: fc.constantFrom(...pieces), maxLength: 10 })
  fc.assert(
    fc.property(fc.oneof(text, fc.anything(), fc.double()), fc.boolean(), (value, zoneIsUtc) => {
      for (const format of timeFormats) {
        const time = read(format, value, zoneIsUtc)
        expect(Number.isInteger(time) || Number.isNaN(time) || time === Number.POSITIVE_INFINITY).toBe(true)
      }
    }),
    { numRuns: 5000 },
  )
})
