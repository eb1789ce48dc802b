// The words that expressions replaced: `check` names for each the expression that gives the same value.

import { expect, test } from 'vitest'
import { insteadOfWord } from '../../../src/mapping/source-config/old-words.ts'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4 }
const words = ['bit', 'negative', 'plus', 'minus', 'over', 'decimal_comma', 'unit']

/** The field with the expression that the message names. */
function translated(field: Record<string, unknown>): Record<string, unknown> {
  const sentence = words.map((word) => (word in field ? insteadOfWord(word, field) : undefined)).find(Boolean)
  const [, expr = '""', gone = ''] = /^write expr: (".*") instead of (.*)\.$/.exec(sentence ?? '') ?? []
  const others = Object.entries(field).filter(([word]) => !gone.split(', ').includes(word))
  return { ...Object.fromEntries(others), expr: JSON.parse(expr) as string }
}

test.each<[string, Record<string, unknown>, Record<string, unknown>, number | undefined]>([
  ['a bit that is set', { path: 'din', bit: 3 }, { din: 8 }, 1],
  ['a bit that is not', { path: 'din', bit: 2 }, { din: 8 }, 0],
  ['a range of bits', { path: 'din', bit: '4-7' }, { din: 0xa5 }, 10],
  ['all bits of 16', { path: 'din', bit: '0-15' }, { din: 0x1_2345 }, 0x2345],
  ['a bit above 32', { path: 'din', bit: 40 }, { din: 2 ** 40 }, 1],
  ['a bit of a text', { path: 'din', bit: 63 }, { din: '9223372036854775808' }, 1],
  ['bits of a hexadecimal text', { path: 'din', bit: '4-7' }, { din: '0xA5' }, 10],
  ['the sign bit of a negative number', { path: 'din', bit: 31 }, { din: -1 }, 1],
  ['a bit of a fraction is omitted', { path: 'din', bit: 0 }, { din: 1.5 }, undefined],
  ['a bit of a number beyond 2^53', { path: 'din', bit: 60 }, { din: 2 ** 60 }, 1],
  ['a bit of a word is omitted', { path: 'din', bit: 0 }, { din: 'on' }, undefined],
  ['a bit of nothing', { path: 'din', bit: 0 }, {}, undefined],
  ['a bit, then a table', { path: 's', bit: '0-1', values: { 0: 5, 2: 6 } }, { s: 14 }, 6],
  ['a negative number', { path: 't', negative: 'sign == 1' }, { t: 12.5, sign: 1 }, -12.5],
  ['a positive number', { path: 't', negative: 'sign == 1' }, { t: 12.5, sign: 0 }, 12.5],
  ['a number that was negative before', { path: 't', negative: 'sign == 1' }, { t: -12.5, sign: 1 }, -12.5],
  ['a negative text', { path: 't', negative: 'sign == "-"' }, { t: '12.50', sign: '-' }, -12.5],
  [
    'a negative placeholder is omitted',
    { path: 't', negative: 'sign == 1' },
    { t: 4_294_967_295, sign: 1 },
    undefined,
  ],
  [
    'a negative placeholder in a text is omitted',
    { path: 't', negative: 'sign == 1' },
    { t: '2147483647', sign: 1 },
    undefined,
  ],
  [
    'a negative rounded number is omitted',
    { path: 't', negative: 'sign == 1' },
    { t: 2 ** 60, sign: 1 },
    undefined,
  ],
  ['a sum', { path: 'a', plus: 'b' }, { a: 0.1, b: 0.2 }, 0.3],
  ['a sum of texts', { path: 'a', plus: 'b' }, { a: '1.10', b: '2.2' }, 3.3],
  ['two halves of a number', { path: 'lo', plus: { path: 'hi', scale: 65_536 } }, { lo: 7, hi: 3 }, 196_615],
  ['a difference', { path: 'a', minus: 'b' }, { a: 5, b: 7.25 }, -2.25],
  ['a ratio', { path: 'a', over: 'b' }, { a: 1, b: 8 }, 0.125],
  ['a ratio without end', { path: 'a', over: 'b' }, { a: 2, b: 3 }, 0.666666666666667],
  ['a ratio with two signs', { path: 'a', over: 'b' }, { a: -1, b: -3 }, 0.333333333333333],
  ['a division by zero is omitted', { path: 'a', over: 'b' }, { a: 2, b: 0 }, undefined],
  ['all three', { path: 'a', plus: 'b', minus: 'c', over: 'b' }, { a: 5, b: 2, c: 1 }, 3],
  ['a sum without its second value', { path: 'a', plus: 'b' }, { a: 5 }, undefined],
  ['a sum with a word is omitted', { path: 'a', plus: 'b' }, { a: 5, b: 'x' }, undefined],
  ['a sum of decimal commas', { path: 'a', plus: 'b', decimal_comma: true }, { a: '1,5', b: '2,25' }, 3.75],
  ['a sum with a placeholder is omitted', { path: 'a', plus: 'b' }, { a: 1, b: 4_294_967_295 }, undefined],
  [
    'a placeholder minus a value is omitted',
    { path: 'a', minus: 'b' },
    { a: 4_294_967_295, b: 1 },
    undefined,
  ],
  [
    'a placeholder in a named unit is omitted',
    { path: 'v', unit: { path: 'u', values: { mph: 'mph' } } },
    { v: 4_294_967_295, u: 'mph' },
    undefined,
  ],
  ['the first second value', { path: 'a', plus: ['c', 'b'] }, { a: 5, b: 1 }, 6],
  ['a sum, then scale and offset', { path: 'a', plus: 'b', scale: 0.1, offset: 1 }, { a: 1, b: 2 }, 1.3],
  [
    'a unit by another field',
    { path: 'v', unit: { path: 'u', values: { kph: 'km/h', mph: 'mph' } } },
    { v: 10, u: 'mph' },
    16.09344,
  ],
  [
    'a unit that is not in the table',
    { path: 'v', unit: { path: 'u', values: { kph: 'km/h' } } },
    { v: 10, u: 'mph' },
    undefined,
  ],
  [
    'the unit of messages without one',
    { path: 'v', unit: { path: 'u', values: { kph: 'km/h' }, default: 'm/s' } },
    { v: 10 },
    36,
  ],
])('%s', (_name, field, message, value) => {
  const mapper = openMapperOf([truckSource({ fields: { x: { type: 'number', ...translated(field) } } })])
  const sent = sentIn(mapper.map(messageOf({ ...base, ...message }))) as Record<string, unknown>
  expect(sent['x']).toBe(value)
})

test('a path that cannot be read has no expression', () => {
  expect(insteadOfWord('plus', { path: 'a[', plus: 'b' })).toMatch(/^write an expression/)
  expect(insteadOfWord('scale', { path: 'a' })).toBeUndefined()
  expect(insteadOfWord('unit', { path: 'a', unit: 'km' })).toBeUndefined()
})
