import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'
import { compilePath, compilePaths, parsePath } from '../../../src/mapping/path/path.ts'

const message: unknown = JSON.parse(`{
  "gps": { "lat": 1, "deep": { "er": { "still": 2 } } },
  "position.latitude": 3,
  "a b": { "[c]": 4 },
  "ain#1": 5,
  "records": [ { "n": 6 }, { "n": 7 } ],
  "quoted": { "it's": 8, "say \\"hi\\"": 9 },
  "Itäkeskus": 10,
  "$type": 11,
  "numbered": { "239": 12 },
  "__proto__": { "polluted": 13 },
  "constructor": 14,
  "latlng": "48.85 , 2.35",
  "lines": "a;b;;d",
  "analogues": [ { "id": 1, "val": 15 }, null, 7, { "id": "5", "val": 16 }, { "id": 5, "val": 17 } ],
  "odd keys": [ { "a]b": "x y", "val": 18 }, { "flag": true, "val": 19 }, { "empty": "", "val": 20 } ],
  "devices": { "T 1": { "ts": 21 }, "T-2": [], "__proto__": 22 },
  "$up": 23
}`)

const findIn = (record: unknown, path: string) => compilePath(parsePath(path))(record, message)
const find = (path: string) => findIn(message, path)

describe('a path', () => {
  test.each([
    ['gps.lat', 1],
    ['gps.deep.er.still', 2],
    ['"position.latitude"', 3],
    [`'position.latitude'`, 3],
    ["['a b'].'[c]'", 4],
    ['["a b"]["[c]"]', 4],
    ['ain#1', 5],
    ['records[0].n', 6],
    ['records[1].n', 7],
    ['records[-1].n', 7],
    ['records[-2].n', 6],
    [`quoted."it's"`, 8],
    [String.raw`quoted."say \"hi\""`, 9],
    ['Itäkeskus', 10],
    ['$type', 11],
    ['numbered.239', 12],
    ['$first().lat', 1],
    ['gps.$first()', 1],
    ['$.gps.lat', 1],
    ['$["position.latitude"]', 3],
    ['$."position.latitude"', 3],
    ['latlng.$split(",")[0]', '48.85'],
    ['latlng.$split(",")[1]', '2.35'],
    ['latlng.$split(",")[-1]', '2.35'],
    ["lines.$split(';')[3]", 'd'],
    ['lines.$split(";")[2]', ''],
    ['lines.$split(";;")[1]', 'd'],
    ['analogues[id=5].val', 16],
    ['analogues[id="5"].val', 16],
    ["analogues['id' = 1].val", 15],
    ['"odd keys"["a]b"="x y"].val', 18],
    ['["odd keys"][flag=true].val', 19],
    ['"odd keys"[empty=""].val', 20],
    ['devices.$entries()[key="T 1"].value.ts', 21],
    ['devices.$entries()[0].value.ts', 21],
    ['["$up"]', 23],
  ])('%s finds its value', (path, value) => {
    expect(find(path)).toBe(value)
  })

  test.each([
    'no',
    'gps.no',
    'gps.lat.no',
    'records[2]',
    'records[-3]',
    'records.length',
    'gps[0]',
    'lat.$first()',
    'latlng.$split(",")[2]',
    'latlng.$split(",")[-3]',
    'ain#1.$split(",")',
    'records.$split(",")',
    'analogues[id=2]',
    'analogues[id=5.0]',
    'analogues[no=5]',
    'analogues[id=""]',
    'devices[key=1]',
    'records.$entries()',
    'ain#1.$entries()',
    '$up',
    '$up.gps',
  ])('%s finds nothing, and does not fail', (path) => {
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
      expect(compilePath(parsePath(path))({ key: 1 }, message, { record: up, up: undefined })).toBe(value)
  })

  test('starts further out with $up.$up, if that level exists', () => {
    const up = { record: { n: 1 }, up: { record: { n: 2, $up: 9 }, up: { record: { n: 3 }, up: undefined } } }
    const from = (path: string) => compilePath(parsePath(path))({ n: 0 }, message, up)
    expect(['$up.n', '$up.$up.n', '$up.$up.$up.n', '$up.$up.$up.$up.n'].map(from)).toEqual([
      1,
      2,
      3,
      undefined,
    ])
    expect(from('$up.$up')).toBe(up.up.record)
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

  test.each([
    '__proto__',
    '__proto__.toString',
    'constructor',
    'constructor.name',
    'gps.toString',
    'hasOwnProperty',
  ])('never reaches the prototype through %s', (path) => {
    expect(findIn(JSON.parse('{"gps":{}}'), path)).toBeUndefined()
  })

  test.each(['abc', 12, true, null, undefined, [], [[]]])('finds no key in %j', (value) => {
    expect(findIn(value, 'length')).toBeUndefined()
    expect(findIn(value, '$first()')).toBeUndefined()
    expect(findIn(value, '[0].x')).toBeUndefined()
  })

  test.each([
    ['', 'has an empty key at position 1'],
    ['gps..lat', 'has an empty key at position 5'],
    ['gps.', 'has an empty key at position 5'],
    ['.gps', 'has an empty key at position 1'],
    ['a b', 'belongs in a quoted key'],
    ['a(b)', 'belongs in a quoted key'],
    ['"abc', 'a quote that is never closed'],
    ['a[', 'needs a number'],
    ['a[x]', 'needs a number'],
    ['a[1', 'lacks a "]"'],
    ['a[99999999999]', 'needs a number'],
    ['a[=5]', 'has an empty key'],
    ['a[id=]', 'lacks a value after "="'],
    ['a[id==5]', 'lacks a value after "="'],
    ['a[id=5', 'lacks a "]"'],
    ['a[id=x y]', 'lacks a "]"'],
    ['a[id="5]', 'a quote that is never closed'],
    ['a.$split()', 'needs a quoted separator'],
    ['a.$split("")', 'needs a quoted separator'],
    ['a.$split(",")x', 'belongs in a quoted key'],
    ['a.$last()', 'an unknown function; known are $first()'],
    ['$up.$up.$up.$up.$up.a', 'has more than 4 levels of $up at position 17'],
    ['$up.a.$up', 'has $up after its start'],
    ['$.$up', 'has $up after its start'],
    ['a.$up', 'has $up after its start'],
  ])('that reads %j is refused with its place', (path, message) => {
    expect(() => parsePath(path)).toThrow(message)
  })
})

describe('a list of paths', () => {
  const first = (paths: string | string[], record: unknown) => compilePaths(paths)(record, record)

  test.each([
    [['a', 'b'], { a: 1, b: 2 }, 1],
    [['a', 'b'], { b: 2 }, 2],
    [['a', 'b'], { a: null, b: 2 }, 2],
    [['a', 'b'], { a: '', b: 2 }, 2],
    [['a', 'b'], { a: 0, b: 2 }, 0],
    [['a', 'b'], { a: false, b: 2 }, false],
    [['a', 'b', 'c.d'], { c: { d: 3 } }, 3],
    [['a', 'b'], { a: '', b: null }, undefined],
    [['a'], { a: null }, null],
    ['a', { a: 1 }, 1],
  ])('%j of %j is the first value that exists: %j', (paths, record, value) => {
    expect(first(paths, record)).toBe(value)
  })

  test('reads each path from its own start', () => {
    const read = compilePaths(['$up.x', '$.x', 'x'])
    expect(read({ x: 1 }, { x: 2 }, { record: { x: 3 }, up: undefined })).toBe(3)
    expect(read({ x: 1 }, { x: 2 })).toBe(2)
    expect(read({ x: 1 }, {})).toBe(1)
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
      for (const read of paths)
        expect(() => read(value, value, { record: value, up: undefined })).not.toThrow()
    }),
    { numRuns: 1000 },
  )
})

test('any text is a valid path or is refused with the position of the fault', () => {
  const unit = fc.constantFrom(
    'a',
    '$',
    '.',
    '[',
    ']',
    '"',
    "'",
    '=',
    '0',
    '-',
    '(',
    ')',
    ',',
    ' ',
    '$up',
    '\\',
  )
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
      expect(isReadOrRefused(() => compilePath(parsePath(text))(message, message))).toBe(true)
    }),
    { numRuns: 5000 },
  )
})

function isReadOrRefused(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch (error) {
    return error instanceof Malformed
  }
}
