// The word of version 0.1 that expressions replaced: `check` names the expression that gives the same value.

import { expect, test } from 'vitest'
import { insteadOfWord } from '../../../src/mapping/source-config/old-words.ts'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4 }

/** The expression that the message names. */
function exprFor(path: unknown): string {
  const sentence = insteadOfWord('decimal_comma', { path, decimal_comma: true })
  const [, expr = '""'] = /^write expr: (".*") instead of path, decimal_comma\.$/.exec(sentence ?? '') ?? []
  return JSON.parse(expr) as string
}

test.each<[string, unknown, object, number | undefined]>([
  ['a decimal comma', 'a', { a: '2,25' }, 2.25],
  ['a decimal point', 'a', { a: '2.25' }, 2.25],
  ['a word is omitted', 'a', { a: 'on' }, undefined],
  ['the first of two', ['b', 'a.c'], { b: '1,5', a: { c: '2,5' } }, 1.5],
  ['the second of two', ['b', 'a.c'], { a: { c: '2,5' } }, 2.5],
  ['none of two', ['b', 'a.c'], {}, undefined],
])('%s', (_name, path, message, value) => {
  const fields = { x: { type: 'number', expr: exprFor(path) } }
  const mapper = openMapperOf([truckSource({ fields })])
  const sent = sentIn(mapper.map(messageOf({ ...base, ...message }))) as Record<string, unknown>
  expect(sent['x']).toBe(value)
})

test('a path that cannot be read has no expression', () => {
  expect(insteadOfWord('decimal_comma', { path: ['a', 'a['] })).toMatch(/^write an expression/)
  expect(insteadOfWord('decimal_comma', {})).toMatch(/^write an expression/)
  expect(insteadOfWord('scale', { path: 'a' })).toBeUndefined()
})
