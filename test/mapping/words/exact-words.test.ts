// What the words make of any values, compared with BigInt arithmetic and plain look-ups.

import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compilePath, parsePath } from '../../../src/mapping/path/path.ts'
import { bitsOf } from '../../../src/mapping/words/bits.ts'
import { unusable } from '../../../src/mapping/words/unusable.ts'
import { compileTable } from '../../../src/mapping/words/value-table.ts'
import { difference, exactFrom, sum, textOf, times, type Exact } from '../../support/exact-decimal.ts'
import { messageOf, openMapperOf, payloadsIn, truckSource, type Sent } from '../../support/mapping-world.ts'

const exactly = (text: string): Exact => exactFrom(text)!

/** A decimal as a message has it: in a text, or as a number of digits that a double holds. */
const written = fc
  .tuple(
    fc.oneof(fc.bigInt(-(10n ** 15n), 10n ** 15n), fc.bigInt(-1000n, 1000n)),
    fc.nat(9),
    fc.boolean(),
    fc.constantFrom('', '', '', 'e3', 'E-4'),
  )
  .map(([steps, places, isText, exponent]) => {
    const text = textOf({ steps, places }) + exponent
    return isText ? text : Number(text)
  })

const placeholders = new Set(
  [4_294_967_295, 4_294_967_294, 2_147_483_647].flatMap((one) => [one, one / 1000]),
)

/** What a signal sends: nothing beyond the integers of a double, and nothing for a placeholder. */
function sent(value: Exact | undefined): string | undefined {
  if (value === undefined) return undefined
  const number = Number(textOf(value))
  return Math.abs(number) > Number.MAX_SAFE_INTEGER || placeholders.has(number) ? undefined : textOf(value)
}

function ratio(one: Exact, other: Exact): Exact | undefined {
  if (other.steps === 0n) return undefined
  const isNegative = one.steps < 0n !== other.steps < 0n
  const above = magnitude(one.steps) * 10n ** BigInt(other.places)
  const below = magnitude(other.steps) * 10n ** BigInt(one.places)
  const inFull = above * 10n ** 15n
  if (inFull % below === 0n) return signed(inFull / below, 15, isNegative)
  return signed((above * 2n * 10n ** 6n + below) / (2n * below), 6, isNegative)
}

const magnitude = (value: bigint) => (value < 0n ? -value : value)
const signed = (steps: bigint, places: number, isNegative: boolean) => ({
  steps: isNegative ? -steps : steps,
  places,
})

const sums: readonly [type: string, words: object, expected: (a: Exact, b: Exact) => Exact | undefined][] = [
  ['SUM', { plus: 'b' }, sum],
  ['DIFFERENCE', { minus: 'b' }, difference],
  ['RATIO', { over: 'b' }, ratio],
  ['HALVES', { plus: { path: 'b', scale: 65_536 } }, (a, b) => sum(a, times(b, exactly('65536')))],
  ['LESS', { minus: { path: 'b', scale: 0.001 } }, (a, b) => difference(a, times(b, exactly('0.001')))],
  ['SCALED', { plus: 'b', scale: 0.1 }, (a, b) => times(sum(a, b), exactly('0.1'))],
  ['SHIFTED', { minus: 'b', offset: -40.7 }, (a, b) => sum(difference(a, b), exactly('-40.7'))],
]

test('sums, differences and ratios of a message are sent as exact decimals', () => {
  const signals = sums.map(([type, words]) => ({ type, path: 'a', ...words }))
  const load = { path: 'a', type: 'number', plus: 'b' }
  const mapper = openMapperOf([truckSource({ signals, fields: { load } })])
  fc.assert(
    fc.property(written, written, (a, b) => {
      const message = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4, a, b }
      const payload = JSON.parse(payloadsIn(mapper.map(messageOf(message)))[0]!.json) as Sent & {
        load?: number
      }
      const found = new Map(payload.signals?.map(({ type, value }) => [type, value]))
      const [one, other] = [exactFrom(a)!, exactFrom(b)!]
      const isRead = sent(one) !== undefined && sent(other) !== undefined
      for (const [type, , expected] of sums) {
        const value = isRead ? expected(one, other) : undefined
        // The value is judged before scale and offset.
        const isShifted = type === 'SCALED' || type === 'SHIFTED'
        const before = type === 'SHIFTED' ? difference(one, other) : sum(one, other)
        const isSent = !isShifted || sent(before) !== undefined
        expect(found.get(type), type).toBe(
          isSent && value !== undefined && (isShifted || sent(value) !== undefined)
            ? textOf(value)
            : undefined,
        )
      }
      expect(payload.load).toBe(isRead ? Number(textOf(sum(one, other))) : undefined)
    }),
    { numRuns: 500 },
  )
})

test('bits are those of the two’s complement, of numbers, decimal and hexadecimal texts', () => {
  const any = fc.oneof(
    fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n),
    fc.bigInt(-(2n ** 53n) + 1n, 2n ** 53n - 1n),
    fc.bigInt(2n ** 31n - 2n, 2n ** 32n + 2n),
    fc.bigInt(-300n, 300n),
  )
  // Where 31, 32 and 53 bits end, the number is read in another way.
  const bit = fc.oneof(fc.nat(63), fc.constantFrom(0, 30, 31, 32, 52, 53, 63))
  fc.assert(
    fc.property(any, bit, bit, (number, one, other) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      const wanted = (BigInt.asUintN(64, number) >> BigInt(low)) & (2n ** BigInt(high - low + 1) - 1n)
      const values: unknown[] = [String(number)]
      if (number >= 0n) values.push(`0x${number.toString(16)}`, `0X${number.toString(16).toUpperCase()}`)
      if (magnitude(number) < 2n ** 53n) values.push(Number(number))
      const inPath = compilePath(parsePath(`din.$bit(${low}-${high})`))
      for (const din of values) {
        const found = bitsOf(din, { low, high })
        expect(BigInt(found as number | string)).toBe(wanted)
        expect(typeof found).toBe(wanted < 2n ** 53n ? 'number' : 'string')
        expect(inPath({ din }, { din }, undefined)).toBe(found)
      }
    }),
    { numRuns: 1000 },
  )
})

test('no value makes a bit throw, and only whole numbers have bits', () => {
  fc.assert(
    fc.property(fc.anything(), fc.nat(63), (value, bit) => {
      const found = bitsOf(value, { low: bit, high: bit })
      expect([0, 1, undefined, unusable]).toContain(found)
    }),
  )
})

test('a table has its own words, numbers, true and false only', () => {
  const words = ['N', '1', 'true', '-0', '1e21', '*', '__proto__', 'constructor', 'toString', '']
  const key = fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 }))
  const value = fc.oneof(fc.string({ maxLength: 3 }), fc.integer(), fc.boolean())
  const inMessage = fc.oneof(key, fc.integer({ min: -2, max: 2 }), fc.constantFrom(1e21, -0), fc.boolean())
  fc.assert(
    fc.property(
      fc.array(fc.tuple(key, value), { minLength: 1, maxLength: 8 }),
      fc.oneof(inMessage, fc.constantFrom<object>({}, [], ['N'])),
      (entries, given) => {
        const find = compileTable(Object.fromEntries(entries))
        const valueOf = (wanted: string) => entries.findLast(([own]) => own === wanted)?.[1]
        const wanted =
          typeof given === 'object' ? unusable : (valueOf(String(given)) ?? valueOf('*') ?? unusable)
        expect(find(given)).toBe(wanted)
      },
    ),
    { numRuns: 500 },
  )
})
