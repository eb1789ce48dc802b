import { describe, expect, test } from 'vitest'
import { compileConditionParts } from '../../../src/mapping/path/condition-parts.ts'

function parts(text: string, record: unknown) {
  return compileConditionParts(text, ['kind'])({ record, root: record, up: undefined, captures: ['vp'] })
}

describe('a condition that does not hold', () => {
  test('is shown as the parts that fail, with the values that they compare', () => {
    expect(
      parts('sat > 3 and (fix == 1 or fix == 2)\n  and t != "x and y"', { sat: 2, fix: 9, t: 'a' }),
    ).toEqual({
      joined: 'and',
      parts: 3,
      failed: [
        { text: 'sat > 3', values: [{ path: 'sat', value: 2 }] },
        {
          text: '(fix == 1 or fix == 2)',
          values: [
            { path: 'fix', value: 9 },
            { path: 'fix', value: 9 },
          ],
        },
      ],
    })
  })

  test('is shown as its alternatives, none of which holds', () => {
    const found = parts('a > 0 or b > 0 and c > 0 or ["and"] == 1 or {kind} == "x"', { b: 1 })
    expect(found).toMatchObject({ joined: 'or', parts: 4 })
    expect(found.failed).toEqual([
      { text: 'a > 0', values: [{ path: 'a' }] },
      { text: 'b > 0 and c > 0', values: [{ path: 'b', value: 1 }, { path: 'c' }] },
      { text: '["and"] == 1', values: [{ path: 'and' }] },
      { text: '{kind} == "x"', values: [] },
    ])
  })

  test('names its paths as they are written', () => {
    const text = '$match("gps_*").alt > 1 and $.a[0].b[id=5]."c d" == 1 and p.$split(",")[1] == 2'
    const paths = parts(text, {}).failed.flatMap(({ values }) => values.map(({ path }) => path))
    expect(paths).toEqual(['$match("gps_*").alt', '$.a[0].b[id=5]."c d"', 'p.$split(",")[1]'])
  })

  test.each(['brand > 1', 'order.and_more == 2', 'not (a and b)', "x == 'a \\' and b'"])(
    'has one part: %s',
    (text) => {
      expect(parts(text, {}).parts).toBe(1)
    },
  )
})
