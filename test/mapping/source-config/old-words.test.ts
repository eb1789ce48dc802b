// Words of `map` that expressions replaced: `check` names the expression that gives the same value.

import { expect, test } from 'vitest'
import { insteadOfWord } from '../../../src/mapping/source-config/old-words.ts'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4 }

/** The expression that the message names. */
function exprFor(word: string, field: object): string {
  const sentence = insteadOfWord(['sources', 0, 'map', 'fields', 'x', word], field)
  const [, expr = '""'] = /^write expr: (".*") instead of path, \w+\.$/.exec(sentence ?? '') ?? []
  return JSON.parse(expr) as string
}

function valueBy(expr: string, message: object, more: object = {}): unknown {
  const fields = { x: { type: 'number', expr, ...more } }
  const mapper = openMapperOf([truckSource({ fields })])
  return (sentIn(mapper.map(messageOf({ ...base, ...message }))) as Record<string, unknown>)['x']
}

test.each<[string, unknown, object, number | undefined]>([
  ['a decimal comma', 'a', { a: '2,25' }, 2.25],
  ['a decimal point', 'a', { a: '2.25' }, 2.25],
  ['a word is omitted', 'a', { a: 'on' }, undefined],
  ['the first of two', ['b', 'a.c'], { b: '1,5', a: { c: '2,5' } }, 1.5],
  ['the second of two', ['b', 'a.c'], { a: { c: '2,5' } }, 2.5],
  ['none of two', ['b', 'a.c'], {}, undefined],
])('%s', (_name, path, message, value) => {
  expect(valueBy(exprFor('decimal_comma', { path, decimal_comma: true }), message)).toBe(value)
})

test.each<[string, object, object, number | undefined]>([
  ['the value of the message', { path: 'a' }, { a: 5 }, 5],
  ['the default', { path: 'a' }, {}, 7],
  ['the second path', { path: ['b', 'a'] }, { a: 5 }, 5],
  ['the default where the value means none', { path: 'a', absent: [-1, '-'] }, { a: -1 }, 7],
  ['no value where it cannot be used', { path: 'a' }, { a: 'fast' }, undefined],
])('instead of a default: %s', (_name, field, message, value) => {
  const { absent } = field as { absent?: unknown }
  const more = absent === undefined ? {} : { absent }
  expect(valueBy(exprFor('default', { ...field, default: 7 }), message, more)).toBe(value)
})

test('a position has no default, and a speed one unit', () => {
  const map = ['sources', 0, 'map']
  expect(insteadOfWord([...map, 'latitude', 'default'], { path: 'a', default: 1 })).toMatch(/^remove it/)
  expect(insteadOfWord([...map, 'speed_units'], {})).toContain('unit: mph')
  expect(insteadOfWord(['delivery', 'retry_rules', 'default'], {})).toBeUndefined()
})

test('a path that cannot be read has no expression', () => {
  const at = (word: string) => ['map', 'fields', 'x', word]
  expect(insteadOfWord(at('decimal_comma'), { path: ['a', 'a['] })).toMatch(/^write an expression/)
  expect(insteadOfWord(at('decimal_comma'), {})).toMatch(/^write an expression/)
  expect(insteadOfWord(at('scale'), { path: 'a' })).toBeUndefined()
})
