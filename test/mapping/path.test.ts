import { describe, expect, test } from 'vitest'
import { compilePath, parsePath } from '../../src/mapping/path.ts'

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
  "constructor": 14
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
  ])('%s finds nothing, and does not fail', (path) => {
    expect(find(path)).toBeUndefined()
  })

  test('starts at the root of the message with $, also inside a record', () => {
    expect(findIn({ n: 1 }, 'n')).toBe(1)
    expect(findIn({ n: 1 }, '$.gps.lat')).toBe(1)
    expect(findIn({ n: 1 }, '$')).toBe(message)
  })

  test('finds what the message itself calls __proto__ or constructor', () => {
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
  ])('that reads %j is refused with its place', (path, message) => {
    expect(() => parsePath(path)).toThrow(message)
  })
})
