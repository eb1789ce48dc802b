import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'
import { createScale, product, ratioOf } from '../../../src/mapping/fields/decimal.ts'
import { angleUnits, createConvert, signalUnits, speedUnits } from '../../../src/mapping/fields/units.ts'
import { decimalFault, decimalFrom, isDecimal } from '../../../src/mapping/path/value.ts'

const identity = createScale(ratioOf('1'), 0)

describe('a signal value', () => {
  test.each([
    ['m', '386814875', '386814.875'],
    ['m', '0', '0'],
    ['m', '5', '0.005'],
    ['m', '1000', '1'],
    ['m', '-1', '-0.001'],
    ['m', '256910030', '256910.03'],
    ['km', '184233.4', '184233.4'],
    ['mi', '100000', '160934.4'],
    ['h', '4371', '4371'],
    ['min', '262260', '4371'],
    ['min', '1', '0.016667'],
    ['s', '15732000', '4370'],
    ['ms', '737000', '0.204722'],
    ['5m', '2051', '10.255'],
    ['10m', '12345', '123.45'],
    ['125m', '8', '1'],
    ['125m', '4294967290', '536870911.25'],
    ['0.05h', '14325', '716.25'],
    ['0.05h', '1', '0.05'],
    ['duration', '15732000', '4370'],
    ['duration', '0.5', '0.000139'],
  ] as const)('in %s of %s becomes exactly %s', (unit, written, expected) => {
    expect(createScale(signalUnits[unit], 0)(written)).toBe(expected)
  })

  test.each([
    ['0.01', '12345', '123.45'],
    ['0.125', '8', '1'],
    ['0.005', '2051', '10.255'],
    ['0.05', '14325', '716.25'],
    ['3', '0.1', '0.3'],
    ['0.1', '0.2', '0.02'],
  ])('scaled by %s, %s becomes exactly %s', (scale, written, expected) => {
    expect(createScale(ratioOf(scale), 0)(written)).toBe(expected)
  })

  test('with an offset is exact, also where a float is not', () => {
    expect(createScale(ratioOf('0.1'), -40)('1503')).toBe('110.3')
    expect(createScale(ratioOf('1'), 0.2)('0.1')).toBe('0.3')
    expect(createScale(ratioOf('1'), -1)('1')).toBe('0')
  })

  test.each([
    ['007', '7'],
    ['12.50', '12.5'],
    ['-0', '0'],
    ['0.000', '0'],
    ['1e3', '1000'],
    ['12.5E-1', '1.25'],
    ['1e-7', '0.0000001'],
    ['386814.875', '386814.875'],
  ])('written %s is sent as %s', (written, expected) => {
    expect(identity(written)).toBe(expected)
  })

  test('of the config with an exponent beyond 60 is refused', () => {
    expect(() => ratioOf('1e-300')).toThrow(Malformed)
    expect(() => createScale(ratioOf('1'), 1e300)).toThrow('has the number 1e+300, which is too')
  })

  test('with an extreme exponent is not a value', () => {
    expect(identity('1e-300')).toBeUndefined()
    expect(identity('1e99999999999')).toBeUndefined()
  })

  test('keeps every digit, for any factor', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }),
        fc.integer({ min: 0, max: 9 }),
        fc.bigInt({ min: 1n, max: 10n ** 6n }),
        fc.integer({ min: 0, max: 6 }),
        (digits, places, factor, factorPlaces) => {
          const scale = createScale(ratioOf(decimal(factor, factorPlaces)), 0)
          expect(scale(decimal(digits, places))).toBe(
            shortened(decimal(digits * factor, places + factorPlaces)),
          )
        },
      ),
    )
  })

  test('of metres equals the number with the decimal point moved', () => {
    const metres = createScale(product(signalUnits.m, ratioOf('1')), 0)
    fc.assert(
      fc.property(fc.maxSafeNat(), (value) => {
        const text = String(value).padStart(4, '0')
        expect(metres(String(value))).toBe(shortened(`${text.slice(0, -3)}.${text.slice(-3)}`))
      }),
    )
  })

  test('in every unit equals the integer result; only non-terminating decimals are rounded to six places', () => {
    const units = Object.entries(signalUnits)
    const whole = fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }).filter((value) => value !== 2n ** 32n - 1n)
    fc.assert(
      fc.property(
        whole,
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom(...units),
        (digits, places, [, ratio]) => {
          const found = createScale(ratio, 0)(decimal(digits, places)) ?? ''
          // value x denominator x 10^places = digits x numerator, but for half a unit of the sixth place.
          const [head = '', tail = ''] = found.split('.')
          const exact = digits * ratio.numerator * 10n ** BigInt(tail.length)
          const share = ratio.denominator * 10n ** BigInt(places)
          const error = BigInt(head + tail) * share - exact
          const endless = 10n ** 30n % ratio.denominator !== 0n
          const bound = endless ? share * 10n ** BigInt(tail.length) : 0n
          expect((error < 0n ? -error : error) * 2_000_000n <= bound).toBe(true)
          expect(endless && tail.length > 6).toBe(false)
        },
      ),
    )
  })

  test.each([
    [4_294_967_295, 'a placeholder'],
    ['4294967295', 'a placeholder'],
    [4_294_967_294, 'a placeholder'],
    ['4294967.294', 'a placeholder'],
    [4_294_967.295, 'a placeholder'],
    [2_147_483_647, 'a placeholder'],
    [2 ** 53, 'not exact'],
    ['9007199254740993', 'not exact'],
    [-(2 ** 60), 'not exact'],
    ['48,8566', 'not a number'],
    ['12 km', 'not a number'],
    ['', 'absent'],
    [null, 'absent'],
    [undefined, 'absent'],
    [true, 'not a number'],
    [{}, 'not a number'],
    [[1], 'not a number'],
    [Number.POSITIVE_INFINITY, 'not a number'],
  ])('%j is refused as %s, not rounded', (value, fault) => {
    expect(decimalFrom(value)).toBeUndefined()
    expect(decimalFault(value)).toBe(fault)
  })
})

test.each(['1', '-1', '0012.5', '1e3', '1E-3', '1.5e+3'])('%s is a decimal', (text) => {
  expect(isDecimal(text)).toBe(true)
})

test.each([
  '',
  '-',
  '+1',
  '.5',
  '5.',
  '1,5',
  ' 1',
  '1 ',
  '0x10',
  'NaN',
  'Infinity',
  '1e',
  '--1',
  '1.2.3',
  '１',
])('%j is no decimal', (text) => {
  expect(isDecimal(text)).toBe(false)
})

describe('a speed or an angle', () => {
  test.each([
    ['m/s', 8.23, 29.628],
    ['m/s', 2.93, 10.548],
    ['m/s', 0, 0],
    ['km/h', 54.2, 54.2],
    ['knots', 22, 40.744],
    ['mph', 62.5, 100.584],
    ['cm/s', 1500, 54],
  ] as const)('of %s %d becomes %d km/h without a float’s tail', (unit, value, expected) => {
    expect(createConvert(speedUnits[unit], 1, 0, 6)(value)).toBe(expected)
  })

  test.each([
    ['1e-7deg', 556_613_783, 55.6613783],
    ['1e-7deg', -1_226_587_000, -122.6587],
    ['0.01deg', 19_250, 192.5],
    ['rad', Math.PI / 2, 90],
    ['deg', 48.856_613_123_456, 48.856_613_123_456],
  ] as const)('of %s %d becomes %d degrees', (unit, value, expected) => {
    expect(createConvert(angleUnits[unit], 1, 0, 9)(value)).toBe(expected)
  })

  test('equals the integer result, without floating-point error', () => {
    const units = [...Object.values(speedUnits), angleUnits['1e-7deg'], angleUnits['0.01deg']]
    fc.assert(
      fc.property(
        fc.integer({ min: -1_000_000, max: 1_000_000 }),
        fc.constantFrom(...units),
        (value, ratio) => {
          const text = createScale(ratio, 0)(String(value)) ?? ''
          expect(createConvert(ratio, 1, 0, 9)(value)).toBe(Number(text))
        },
      ),
    )
    fc.assert(
      fc.property(fc.integer({ min: -1_800_000_000, max: 1_800_000_000 }), (value) => {
        const degrees = createConvert(angleUnits['1e-7deg'], 1, 0, 9)(value)
        expect(degrees).toBe(Number(decimal(BigInt(value), 7)))
      }),
    )
  })

  test('is exact where 2^53 steps are not enough', () => {
    expect(createConvert(ratioOf('7'), 1, 0, 9)(12_345_687.13)).toBe(86_419_809.91)
    expect(createConvert(ratioOf('1'), 0.1, 1000, 9)(98_765_432_101.7)).toBe(9_876_544_210.17)
  })

  test('does not change a value that is not a number', () => {
    const convert = createConvert(speedUnits['m/s'], 1, 0, 6)
    expect(convert(Number.NaN)).toBeNaN()
    expect(convert(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY)
  })
})

function decimal(digits: bigint, places: number): string {
  const negative = digits < 0n
  const text = String(negative ? -digits : digits).padStart(places + 1, '0')
  const point = text.length - places
  const plain = places === 0 ? text : `${text.slice(0, point)}.${text.slice(point)}`
  return negative ? `-${plain}` : plain
}

function shortened(text: string): string {
  const short = text.replace(/^(-?)0+(?=\d)/, '$1')
  const plain = short.includes('.') ? short.replace(/0+$/, '').replace(/\.$/, '') : short
  return plain === '-0' ? '0' : plain
}
