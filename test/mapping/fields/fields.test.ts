import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createScale } from '../../../src/mapping/fields/decimal.ts'
import { durationFrom } from '../../../src/mapping/times/duration.ts'
import { compileReading, type ReadOptions } from '../../../src/mapping/fields/fields.ts'
import { signalUnits } from '../../../src/mapping/fields/units.ts'
import { compileAbsent, decimalFault, decimalFrom, numberFrom } from '../../../src/mapping/path/value.ts'
import { outerOf, placed } from '../../support/placed.ts'

const readIn = (field: ReadOptions, record: unknown) => compileReading(field)(placed(record))

describe('a field', () => {
  test.each<[ReadOptions, unknown]>([
    [{ path: 'a' }, -1],
    [{ path: ['no', 'a'] }, -1],
    [{ path: 'a', absent: [-1] }, undefined],
    [{ path: 'dash', absent: [0, -1, '-'] }, undefined],
    [{ path: ['a', 'b'], absent: [-1] }, 5],
    [{ path: ['dash', 'a', 'comma'], absent: ['-', -1] }, '48,85'],
    [{ expr: 'number(comma.replace(",", "."))' }, 48.85],
    [{ expr: 'a', absent: [-1] }, undefined],
    [{ path: 'run', unit: 'duration' }, '5415'],
    [{ path: ['no', 'run'], unit: 'duration', absent: ['-'] }, '5415'],
    [{ path: 'dash', unit: 'duration', absent: ['-'] }, undefined],
    [{ path: '$.b' }, 5],
  ])('%j reads %j', (field, value) => {
    const record = { a: -1, b: 5, dash: '-', comma: '48,85', minus: '-1,0', run: '1h30m15s' }
    expect(readIn(field, record)).toBe(value)
  })

  test('can read from the outer record', () => {
    expect(compileReading({ path: '$up.a', absent: [1] })(placed({}, { up: outerOf({ a: 2 }) }))).toBe(2)
    expect(
      compileReading({ path: '$up.a', absent: [1] })(placed({}, { up: outerOf({ a: 1 }) })),
    ).toBeUndefined()
  })

  test('with no path is refused', () => {
    expect(() => compileReading({ path: [] })).toThrow('needs a path')
    expect(() => compileReading({ path: 'a..b', absent: [1] })).toThrow('has an empty key')
  })
})

describe('a value that means "not available"', () => {
  const isAbsent = compileAbsent([0, -1, '-', '300.0', 'N/A'])

  test.each([0, -0, -1, '0', '-1', '-1.0', '0.000', '0e5', '-', 300, '300', '300.0', 'N/A'])(
    '%j is one',
    (value) => {
      expect(isAbsent(value)).toBe(true)
    },
  )

  test.each([
    1,
    '1',
    '',
    ' -',
    '--',
    'n/a',
    '- 1',
    0.1,
    Number.NaN,
    null,
    undefined,
    true,
    false,
    [],
    {},
    [0],
  ])('%j is none', (value) => {
    expect(isAbsent(value)).toBe(false)
  })

  test('a text alone is compared as text', () => {
    expect(compileAbsent(['-'])('0')).toBe(false)
    expect(compileAbsent([])('')).toBe(false)
  })
})

describe('a duration', () => {
  const hours = (value: unknown) =>
    createScale(signalUnits.duration, 0)(decimalFrom(durationFrom(value)) ?? '')

  test.each([
    ['182d2h0m0s', '4370'],
    ['4371h', '4371'],
    ['716h15m', '716.25'],
    ['1 h 30 min', '1.5'],
    ['1 day 1 hour 3 minutes 36 seconds', '25.06'],
    ['90m', '1.5'],
    ['1s', '0.000278'],
    ['3.6s', '0.001'],
    ['0s', '0'],
    ['PT4370H15M', '4370.25'],
    ['P182DT2H', '4370'],
    ['P1D', '24'],
    ['0D0H36M', '0.6'],
    ['999999999d', '23999999976'],
  ])('of %s is %s hours', (text, value) => {
    expect(hours(text)).toBe(value)
  })

  test.each([
    '4370',
    '182 days and 2 hours',
    '1m1h',
    '1h1h',
    '1.5h',
    'h',
    '1',
    '1y',
    'P1Y',
    'P1M2',
    'P',
    'T',
    '-1h',
    '1h-5m',
    '1.s',
    '1..5s',
    '1ms',
    '1:30',
    '9999999999d',
    `${'0'.repeat(70)}s`,
    4370,
    0,
    true,
    {},
  ])('%j is none, and no number either', (value) => {
    expect(durationFrom(value)).toBe(Number.POSITIVE_INFINITY)
    expect(decimalFault(durationFrom(value))).toBe('not a number')
  })

  test.each(['', null, undefined])('%j is absent', (value) => {
    expect(durationFrom(value)).toBeUndefined()
  })

  test('of days, hours, minutes and seconds is their sum', () => {
    const part = fc.integer({ min: 0, max: 99_999 })
    fc.assert(
      fc.property(part, part, part, part, (d, h, m, s) => {
        expect(durationFrom(`${d}d${h}h${m}m${s}s`)).toBe(String(((d * 24 + h) * 60 + m) * 60 + s))
      }),
    )
  })
})

test('no field throws, for any value', () => {
  const fields = [
    { path: ['a', 'b.c'], absent: [1, '-'] },
    { path: 'a', unit: 'duration' },
  ].map((field) => compileReading(field))
  const text = fc.string({
    unit: fc.constantFrom('1', '9', 'd', 'h', 's', 'T', 'P', ' ', '.', ',', '-'),
    maxLength: 9,
  })
  fc.assert(
    fc.property(fc.oneof(fc.anything(), text), (value) => {
      for (const read of fields)
        for (const record of [value, { a: value }, { b: { c: value } }])
          expect(() => numberFrom(read(placed(record)))).not.toThrow()
    }),
  )
})
