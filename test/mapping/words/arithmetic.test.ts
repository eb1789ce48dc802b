import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ratioText, sumText } from '../../../src/mapping/fields/decimal.ts'
import { placeholderResult } from '../../../src/mapping/path/value.ts'
import { negated } from '../../../src/mapping/words/arithmetic.ts'
import { bitsOf } from '../../../src/mapping/words/bits.ts'
import { degreesFromText } from '../../../src/mapping/words/angle-text.ts'

/** A decimal as an integer and its number of places. */
const decimal = fc.record({ steps: fc.bigInt(-(10n ** 15n), 10n ** 15n), places: fc.nat(9) })

function textOf({ steps, places }: { steps: bigint; places: number }): string {
  const digits = String(steps < 0n ? -steps : steps).padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  const fraction = places === 0 ? '' : `.${digits.slice(-places)}`
  return `${steps < 0n ? '-' : ''}${whole}${fraction}`
}

/** In steps of 10^-30. */
function stepsIn(text: string): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const steps = BigInt(whole + fraction.padEnd(30, '0'))
  return text.startsWith('-') ? -steps : steps
}

describe('arithmetic of decimals', () => {
  test('sums and differences are exact', () => {
    fc.assert(
      fc.property(decimal, decimal, (one, other) => {
        const left = textOf(one)
        const right = textOf(other)
        expect(stepsIn(sumText(left, right, false) ?? '')).toBe(stepsIn(left) + stepsIn(right))
        expect(stepsIn(sumText(left, right, true) ?? '')).toBe(stepsIn(left) - stepsIn(right))
      }),
    )
  })

  test('what was added can be subtracted again', () => {
    fc.assert(
      fc.property(decimal, decimal, (one, other) => {
        const sum = sumText(textOf(one), textOf(other), false) ?? ''
        expect(stepsIn(sumText(sum, textOf(other), true) ?? '')).toBe(stepsIn(textOf(one)))
      }),
    )
  })

  test('a ratio is off by half a millionth at most', () => {
    const divisor = decimal.filter(({ steps }) => steps !== 0n)
    fc.assert(
      fc.property(decimal, divisor, (one, other) => {
        const ratio = ratioText(textOf(one), textOf(other)) ?? ''
        const error = stepsIn(ratio) * stepsIn(textOf(other)) - stepsIn(textOf(one)) * 10n ** 30n
        const most = (stepsIn(textOf(other)) * 10n ** 30n) / 2_000_000n
        expect((error < 0n ? -error : error) <= (most < 0n ? -most : most)).toBe(true)
      }),
    )
    expect(ratioText('1', '0.00')).toBeUndefined()
  })
})

test('a placeholder is one with a minus, too', () => {
  for (const value of [4_294_967_295, '4294967295', 2_147_483.647])
    expect(negated(value)).toBe(placeholderResult)
  expect(negated('-12.50')).toBe('-12.50')
  expect(negated('fast')).toBe('fast')
})

test('bits are those of the number in binary', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.nat(63), fc.nat(63), (number, one, other) => {
      const range = { low: Math.min(one, other), high: Math.max(one, other) }
      const bits = number.toString(2).padStart(64, '0')
      const wanted = BigInt(`0b${bits.slice(63 - range.high, 64 - range.low)}`)
      expect(BigInt(bitsOf(number, range) as number | string)).toBe(wanted)
      expect(bitsOf(String(number), range)).toBe(bitsOf(number, range))
    }),
  )
})

test('any text is an angle or refused', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.stringMatching(/^[NSEW]? ?-?[0-9.]{1,6}[°: ]?[0-9. ]{0,8}[NSEW]?$/)),
      (text) => {
        const degrees = degreesFromText(text)
        expect(typeof degrees).toBe('number')
        expect(Math.abs(degrees) < 1000 || degrees === Number.POSITIVE_INFINITY || text === '').toBe(true)
      },
    ),
  )
})
