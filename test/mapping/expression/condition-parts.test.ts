import { describe, expect, test } from 'vitest'
import { compileConditionParts } from '../../../src/mapping/expression/condition-parts.ts'

function parts(text: string, record: unknown) {
  return compileConditionParts(text, ['kind'])({ record, root: record, up: undefined, captures: ['vp'] })
}

describe('a condition that does not hold', () => {
  test('is shown as the parts that fail, with the values that they compare', () => {
    expect(
      parts('sat > 3 && (fix == 1 || fix == 2)\n  && t != "x && y"', { sat: 2, fix: 9, t: 'a' }),
    ).toEqual({
      joined: 'and',
      parts: 3,
      failed: [
        { text: 'sat > 3', values: [{ path: 'sat', value: 2 }] },
        {
          text: '(fix == 1 || fix == 2)',
          values: [
            { path: 'fix', value: 9 },
            { path: 'fix', value: 9 },
          ],
        },
      ],
    })
  })

  test('is shown as its alternatives, none of which holds', () => {
    const found = parts('a > 0 || b > 0 && c > 0 || record["a b"] == 1 || topic.kind == "x"', { b: 1 })
    expect(found).toMatchObject({ joined: 'or', parts: 4 })
    expect(found.failed).toEqual([
      { text: 'a > 0', values: [{ path: 'a' }] },
      { text: 'b > 0 && c > 0', values: [{ path: 'b', value: 1 }, { path: 'c' }] },
      { text: 'record["a b"] == 1', values: [{ path: 'record["a b"]' }] },
      { text: 'topic.kind == "x"', values: [] },
    ])
  })

  test('names its paths as they are written', () => {
    const text = 'message.a[0]["c d"] == 1 && list.exists(x, x.id == 5) && outer.p.split(",")[1] == 2'
    const paths = parts(text, {}).failed.flatMap(({ values }) => values.map(({ path }) => path))
    expect(paths).toEqual(['message.a[0]["c d"]', 'list', 'outer.p'])
  })

  test.each(['brand > 1', 'order.and_more == 2', '!(a && b)', "x == 'a && b'"])(
    'has one part: %s',
    (text) => {
      expect(parts(text, {}).parts).toBe(1)
    },
  )
})
