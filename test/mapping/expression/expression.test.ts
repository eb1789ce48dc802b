import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileCondition, compileExpression } from '../../../src/mapping/expression/expression.ts'
import { functionRows } from '../../../src/mapping/expression/functions/functions.ts'
import { isNone, NoResult } from '../../../src/mapping/path/value.ts'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { outerOf, placed } from '../../support/placed.ts'

const rows = rowsBeside(import.meta.filename) as {
  record: object
  values: Record<string, unknown>
  no_value: string[]
  no_result: Record<string, string>
  conditions: Record<string, boolean>
  refused: Record<string, string>
  nothing_of_nothing: string[]
}
const { record } = rows

function valueOf(text: string): unknown {
  const found = compileExpression(text, ['dev'])(
    placed(record, { root: { ...record, root: 1 }, captures: ['d1'] }),
  )
  return found instanceof NoResult ? `no result: ${found.reason}` : found
}

describe('an expression', () => {
  test.each(Object.entries(rows.values))('%s is %j', (text, value) => {
    expect(valueOf(text)).toEqual(value)
  })

  test.each(rows.no_value)('%s is no value', (text) => {
    expect(valueOf(text) ?? null).toBeNull()
  })

  test.each(Object.entries(rows.no_result))('%s has no result', (text, reason) => {
    expect(valueOf(text)).toContain(reason)
  })

  test.each(Object.entries(rows.conditions))('as a condition %s is %s', (text, holds) => {
    expect(compileCondition(text, [])(placed(record))).toBe(holds)
  })

  const long: [string, string] = [`lo${' + 1'.repeat(300)}`, 'maxAstNodes']
  test.each([...Object.entries(rows.refused), long])('%s is refused', (text, message) => {
    expect(() => compileExpression(text, ['dev'])).toThrow(Malformed)
    expect(() => compileExpression(text, ['dev'])).toThrow(message)
  })
})

test('each function has an example that compiles', () => {
  for (const { example } of functionRows) expect(() => compileExpression(example, ['kind'])).not.toThrow()
})

test('no expression throws, for any value', () => {
  const expressions = [
    'a.b > 3 || a == "x" && !b',
    'outer.a in [1, "x", b, null]',
    'entries(record)[0].value <= b || has(message.a[0])',
    'a + b * 2 - a[b] % -b',
    'a.map(x, [x.k, b, {"k": x}].exists(y, y in b))',
    ...functionRows.map(({ name, parameters, example }) =>
      name === 'matches'
        ? example
        : `${name}(${parameters
            .split(', ')
            .map((_, at) => (at % 2 ? 'b' : 'a'))
            .join(', ')})`,
    ),
  ].map((text) => compileExpression(text, ['kind']))
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (one, other, around) => {
      const place = placed({ a: one, b: other }, { root: other, up: outerOf(around), captures: ['vp'] })
      for (const read of expressions) expect(() => read(place)).not.toThrow()
    }),
  )
})

test('any text is an expression or is refused', () => {
  const words = 'a !()"[]<1{},.-?:'.split('').concat('&&', ' in ', '==', 'has(', 'map(x,')
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...words), maxLength: 14 }), (text) => {
      let refusal: unknown
      try {
        compileExpression(text, ['a'])(placed({ a: 1 }, { root: {}, captures: ['x'] }))
      } catch (error) {
        refusal = error
      }
      expect(refusal === undefined || refusal instanceof Malformed).toBe(true)
    }),
  )
})

describe('an expression as the value of a field', () => {
  const valueIn = (text: string, record: object) => compileExpression(text, [])(placed(record))

  test.each([
    ['door == 1', { door: 1 }, true],
    ['door == 1', { door: '0' }, false],
    ['bit(din, 1) != 1', { din: 2 }, false],
    ['mode in ["A", "B"]', { mode: 'C' }, false],
    ['door == null', {}, true],
    ['has(door)', {}, false],
    // A door that is not known is neither.
    ['door == 1 ? "open" : "closed"', {}, undefined],
    ['has(door) && door == 1 ? "open" : "closed"', {}, 'closed'],
    ['unit == "mi" ? speed * 1.609344 : speed', { speed: 100 }, undefined],
  ])('%s of %j is %j', (text, record, value) => {
    expect(valueIn(text, record)).toBe(value)
  })

  test.each(rows.nothing_of_nothing)('says nothing of what is not there: %s', (text) => {
    for (const record of [{}, { door: null }]) expect(isNone(valueIn(text, record))).toBe(true)
  })

  test('is false as a condition without the value', () => {
    expect(compileCondition('door == 1', [])(placed({}))).toBe(false)
    expect(compileCondition('door != 1', [])(placed({}))).toBe(true)
  })
})

test.each([
  ['a ? b', /Expected :, got the end/],
  ['a + * b', /Unexpected token: \*/],
  ['a ?? b', /\?/],
  ['$x == 1', /\$ belongs to paths/],
])('what is wrong with %s is said in the characters of the text', (text, said) => {
  expect(() => compileExpression(text, [])).toThrow(said)
  expect(() => compileExpression(text, [])).not.toThrow(/[A-Z]{4,}/)
})
