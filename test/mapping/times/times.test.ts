// The tables of times are times.cases.yaml: by format what is read and as which moment, and what is refused.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { compileTime, timeFormats, type TimeFormat } from '../../../src/mapping/times/times.ts'
import { noZone, utc, zoneMissing, zoneNamed, type Zone } from '../../../src/mapping/times/zones.ts'
import { placed } from '../../support/placed.ts'

type ByFormat<Row> = Readonly<Record<TimeFormat, readonly Row[]>>
type Cases = {
  read: ByFormat<[unknown, string]>
  readInUtc: ByFormat<[unknown, string]>
  refused: ByFormat<unknown>
  refusedInUtc: ByFormat<unknown>
  words: [string, number][]
  refusedWords: unknown[]
  local: [TimeFormat, unknown][]
}

const cases = parse(readFileSync(join(import.meta.dirname, 'times.cases.yaml'), 'utf8')) as Cases
const may = Date.UTC(2024, 4, 13, 5, 46, 12, 280)
const afternoon = Date.UTC(2021, 10, 5, 16, 4, 9)
const hourMs = 3_600_000

function read(format: TimeFormat, value: unknown, zone: Zone | null = null): number {
  return compileTime(format, ({ record }) => record)(placed(value), zone)
}

/** `[format, row]` of each row. */
function rowsOf<Row>(table: ByFormat<Row>): [TimeFormat, Row][] {
  return Object.entries(table).flatMap(([format, rows]) =>
    rows.map((row): [TimeFormat, Row] => [format as TimeFormat, row]),
  )
}

describe('a time', () => {
  test.each(rowsOf(cases.read))('in the format %s: %j', (format, [value, moment]) => {
    expect(read(format, value)).toBe(Date.parse(moment))
  })

  test.each(rowsOf(cases.readInUtc))(
    'in the format %s without a zone, of a source in UTC: %j',
    (format, row) => {
      expect(read(format, row[0], utc)).toBe(Date.parse(row[1]))
    },
  )

  test.each(rowsOf(cases.refused))('in the format %s is none: %j', (format, value) => {
    expect(read(format, value)).toBe(Number.POSITIVE_INFINITY)
  })

  test.each(rowsOf(cases.refusedInUtc))(
    'in the format %s is none of a source in UTC: %j',
    (format, value) => {
      expect(read(format, value, utc)).toBe(Number.POSITIVE_INFINITY)
    },
  )

  test.each<[TimeFormat, string]>([
    ['iso', `2024-05-13T05:46:12.${'0'.repeat(100)}Z`],
    ['words', `Nov 05 16:04:09${' '.repeat(100)}UTC 2021`],
    ['dmy', `13.05.2024${' '.repeat(60)}05:46:12`],
  ])('in the format %s is none where it is longer than any time', (format, text) => {
    expect(read(format, text, utc)).toBe(Number.POSITIVE_INFINITY)
  })

  test('without a zone is one of UTC only where the source says so', () => {
    expect(read('iso', '2024-05-13T05:46:12.280', utc)).toBe(may)
    expect(read('iso', '2024-05-13T08:46:12.280+03:00', utc)).toBe(may)
    expect(read('dmy', '13.05.2024 05:46:12')).toBe(Number.POSITIVE_INFINITY)
    expect(read('dmy', '13.05.2024 05:46:12Z')).toBe(may - 280)
  })

  test.each([null, undefined, ''])('%j is a missing one', (value) => {
    for (const format of ['s', 'ms', 'iso', 'compact', 'auto'] as const) expect(read(format, value)).toBeNaN()
  })

  test('in ISO equals the result of Date, for every millisecond from 1970 to 9999', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (ms) => {
        expect(read('iso', new Date(ms).toISOString())).toBe(ms)
      }),
    )
  })

  test('in seconds with three digits never drifts by a millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (ms) => {
        expect(read('s-float', ms / 1000)).toBe(ms)
      }),
    )
  })
})

describe('a time in words', () => {
  test.each(cases.words)('%s is read, its zone %d hours east', (text, hours) => {
    expect(read('words', text)).toBe(afternoon - hours * hourMs)
  })

  test('may have fractions of seconds, no seconds, or a leap second', () => {
    expect(read('words', '05-Nov-2021 16:04:09.743 UTC')).toBe(afternoon + 743)
    expect(read('words', '05-Nov-2021 16:04:09,7 UTC')).toBe(afternoon + 700)
    expect(read('words', '05-Nov-2021 16:04:09.7439999999 UTC')).toBe(afternoon + 743)
    expect(read('words', '05-Nov-2021 16:04 UTC')).toBe(afternoon - 9000)
    expect(read('words', '31-Dec-2016 23:59:60 UTC')).toBe(Date.UTC(2017, 0, 1))
  })

  test('without a zone is one of UTC only where the source says so', () => {
    expect(read('words', '05-Nov-2021 16:04:09.743')).toBe(Number.POSITIVE_INFINITY)
    expect(read('words', '05-Nov-2021 16:04:09.743', utc)).toBe(afternoon + 743)
    expect(read('words', 'Fri Nov 5 16:04:09 2021', utc)).toBe(afternoon)
    expect(read('words', 'Fri Nov 5 16:04:09 EST 2021', utc)).toBe(afternoon + 5 * hourMs)
  })

  test.each(cases.refusedWords)('%j is refused', (value) => {
    expect(read('words', value)).toBe(Number.POSITIVE_INFINITY)
  })

  test('equals the result of Date, in the formats of JavaScript and of mail headers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) / 1000 }), (seconds) => {
        const date = new Date(seconds * 1000)
        expect(read('words', date.toUTCString())).toBe(seconds * 1000)
        expect(read('words', date.toString())).toBe(seconds * 1000)
      }),
    )
  })
})

test.each(cases.local)('%s %j is read in its zone', (format, text) => {
  expect(read(format, text, zoneNamed('Europe/Berlin'))).toBe(may - 2 * hourMs)
  expect(read(format, text, noZone)).toBe(zoneMissing)
})

test('a compact time is read in its zone', () => {
  expect(read('compact', '20240513054612', zoneNamed('Asia/Kolkata'))).toBe(may - 280 - 5.5 * hourMs)
})

test('no format throws, for any value', () => {
  const pieces = '2024 05 Feb : - + T Z . , EST PM / 13 ( ) 17:07 99 e'.split(' ').concat(' ')
  const text = fc.string({ unit: fc.constantFrom(...pieces), maxLength: 10 })
  fc.assert(
    fc.property(fc.oneof(text, fc.anything(), fc.double()), fc.boolean(), (value, zoneIsUtc) => {
      for (const format of timeFormats) {
        const time = read(format, value, zoneIsUtc ? utc : null)
        expect(Number.isInteger(time) || Number.isNaN(time) || time === Number.POSITIVE_INFINITY).toBe(true)
      }
    }),
  )
})
