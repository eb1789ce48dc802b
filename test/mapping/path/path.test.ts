import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'
import { compilePath, compilePaths, parsePath } from '../../../src/mapping/path/path.ts'
import { outerOf, placed } from '../../support/placed.ts'

const rows = rowsBeside(import.meta.filename) as {
  message: unknown
  values: Record<string, unknown>
  nothing: string[]
  prototype: string[]
  refused: Record<string, string>
  first: [paths: string | string[], record: unknown, value: unknown][]
}
const { message } = rows

const findIn = (record: unknown, path: string) =>
  compilePath(parsePath(path))(placed(record, { root: message }))
const find = (path: string) => findIn(message, path)

describe('a path', () => {
  test.each(Object.entries(rows.values))('%s finds its value', (path, value) => {
    expect(find(path)).toBe(value)
  })

  test.each(rows.nothing)('%s finds nothing, and does not fail', (path) => {
    expect(find(path)).toBeUndefined()
  })

  test('starts at the root of the message with $, also inside a record', () => {
    expect(findIn({ n: 1 }, 'n')).toBe(1)
    expect(findIn({ n: 1 }, '$.gps.lat')).toBe(1)
    expect(findIn({ n: 1 }, '$')).toBe(message)
  })

  test('starts at the record one level out with $up', () => {
    const up = { key: 'Device A', deep: { '1': 2 } }
    for (const [path, value] of [
      ['$up.key', 'Device A'],
      ['$up.deep."1"', 2],
      ['$up["deep"]["1"]', 2],
      ['$up', up],
    ] as const)
      expect(compilePath(parsePath(path))(placed({ key: 1 }, { root: message, up: outerOf(up) }))).toBe(value)
  })

  test('starts further out with $up.$up, if that level exists', () => {
    const up = outerOf({ n: 1 }, { n: 2, $up: 9 }, { n: 3 })
    const from = (path: string) => compilePath(parsePath(path))(placed({ n: 0 }, { root: message, up }))
    expect(['$up.n', '$up.$up.n', '$up.$up.$up.n', '$up.$up.$up.$up.n'].map(from)).toEqual([
      1,
      2,
      3,
      undefined,
    ])
    expect(from('$up.$up')).toEqual({ n: 2, $up: 9 })
    expect(from('$up.$up["$up"]')).toBe(9)
    expect(from('$up.$upper')).toBeUndefined()
  })

  test('splits a text into parts and trims them', () => {
    expect(find('latlng.$split(",")')).toEqual(['48.85', '2.35'])
    expect(find('lines.$split(";")')).toEqual(['a', 'b', '', 'd'])
    expect(find('lines.$split(",")')).toEqual(['a;b;;d'])
    expect(findIn('1,2', '$split(",")[1]')).toBe('2')
  })

  test('treats an object as a list of its own keys and values', () => {
    expect(find('devices.$entries()')).toEqual([
      { key: 'T 1', value: { ts: 21 } },
      { key: 'T-2', value: [] },
      { key: '__proto__', value: 22 },
    ])
  })

  test('selects the same part as from the full list of parts', () => {
    const text = fc.string({ unit: fc.constantFrom(',', ' ', 'a', '1', '::', 'é') })
    fc.assert(
      fc.property(text, fc.constantFrom(',', '::', ' '), fc.nat(6), (value, separator, index) => {
        const all = findIn(value, `$split("${separator}")`) as string[]
        expect(findIn(value, `$split("${separator}")[${index}]`)).toBe(all[index])
      }),
    )
  })

  test('finds keys of the message named __proto__ or constructor', () => {
    expect(find('__proto__.polluted')).toBe(13)
    expect(find('constructor')).toBe(14)
  })

  test.each(rows.prototype)('never reaches the prototype through %s', (path) => {
    expect(findIn(JSON.parse('{"gps":{}}'), path)).toBeUndefined()
  })

  test.each(['abc', 12, true, null, undefined, [], [[]]])('finds no key in %j', (value) => {
    expect(findIn(value, 'length')).toBeUndefined()
    expect(findIn(value, '$first()')).toBeUndefined()
    expect(findIn(value, '[0].x')).toBeUndefined()
  })

  test.each(Object.entries(rows.refused))('that reads %j is refused with its place', (path, message) => {
    expect(() => parsePath(path)).toThrow(message)
  })
})

describe('a list of paths', () => {
  const first = (paths: string | readonly string[], record: unknown) => compilePaths(paths)(placed(record))

  test.each([...rows.first, [['a', 'b'], { a: '', b: null }, undefined] as const])(
    '%j of %j is the first value that exists: %j',
    (paths, record, value) => {
      expect(first(paths, record)).toBe(value)
    },
  )

  test('reads each path from its own start', () => {
    const read = compilePaths(['$up.x', '$.x', 'x'])
    expect(read(placed({ x: 1 }, { root: { x: 2 }, up: outerOf({ x: 3 }) }))).toBe(3)
    expect(read(placed({ x: 1 }, { root: { x: 2 } }))).toBe(2)
    expect(read(placed({ x: 1 }, { root: {} }))).toBe(1)
  })

  test('is refused if it is empty or contains an invalid path', () => {
    expect(() => compilePaths([])).toThrow('needs a path')
    expect(() => compilePaths(['a', 'b..c'])).toThrow('has an empty key at position 3 of "b..c"')
  })
})

test('no path throws, for any value', () => {
  const paths = [
    'a.b',
    'a[0].b',
    'a[-1]',
    'a[b=1].c',
    'a[__proto__=1]',
    'a.$split(",")[1]',
    'a.$split(",")',
    '$first().$first()',
    '$entries()[0].value.$entries()[-1]',
    '$up.a',
    '$up.$up.a',
    '$.a',
  ].map((path) => compilePath(parsePath(path)))
  const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify({ a: value, b: [value] })))
  fc.assert(
    fc.property(fc.oneof(json, fc.anything()), (value) => {
      for (const read of paths) expect(() => read(placed(value, { up: outerOf(value) }))).not.toThrow()
    }),
  )
})

test('any text is a valid path or is refused with the position of the fault', () => {
  const unit = fc.constantFrom('$up', ...'a$.[]"\'=0-(), \\'.split(''))
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
      let refusal: unknown = new Malformed('')
      try {
        compilePath(parsePath(text))(placed(message))
      } catch (error) {
        refusal = error
      }
      expect(refusal).toBeInstanceOf(Malformed)
    }),
  )
})
