import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'
import { compileCondition } from '../../../src/mapping/path/condition.ts'

const record: unknown = JSON.parse(
  '{"lat":60.1,"sat":"7","loc":"GPS","valid":true,"ign":0,"none":null,"position.valid":"yes","a":{"b":[1,2]},"or":5,"69":1,"io":{"239":1},"latlng":"0.0,0.0","list":[{"id":5,"v":6}],"in":7}',
)

function holds(text: string): boolean {
  return compileCondition(text, ['event', 'vehicle'])(record, record, ['vp', '0042'])
}

describe('a condition', () => {
  test.each([
    'lat != null',
    'none == null',
    'absent == null',
    'lat > 60 and lat < 61',
    'lat>=60.1 and lat<=60.1',
    'sat > 3',
    'sat == 7',
    '3 < sat',
    'loc == "GPS"',
    "loc == 'GPS'",
    'loc != "ODO"',
    '{event} == "vp"',
    '{event} == "vp" or {event} == "due"',
    '{vehicle} == 42',
    'valid',
    'not ign',
    'valid == true',
    'valid == 1',
    '1 == valid',
    'valid == "yes"',
    'valid != "off"',
    'ign == false',
    'sat == 7 and sat != true and sat != false',
    'loc != true and loc != false and none != false',
    'ign == 0',
    'exists(lat) and not exists(none)',
    'exists(a.b[-1])',
    "['position.valid']",
    'exists("position.valid")',
    '$.lat == lat',
    'a.b[1] == 2',
    '["or"] == 5',
    'false or valid and true',
    'not (false or false)',
    'not not valid',
    '(lat != null)',
    '-1 < lat',
    'loc < "H"',
    '  lat   !=   null  ',
    '["69"] != 2',
    "['69'] == 1",
    '$."69" == 1',
    '$["69"] == 1',
    'io."239" == 1',
    'sat > 0 and ["69"] != 2 and io.239 == 1',
    '{event} in ("vp", "due")',
    '{event} in ("vp")',
    "{event} not in ('due','arr')",
    'not {event} in ("due")',
    'sat in (5, 6, 7)',
    'sat in ("7")',
    'none in (null)',
    'absent not in (1, 2) and lat in ( 60.1 )',
    'lat in (none, lat)',
    'in == 7 and in in (7)',
    'latlng.$split(",")[0] == 0',
    'latlng.$split(",")[1] in (0)',
    'list[id=5].v == 6',
    'exists(list[id=5]) and not exists(list[id=6])',
    'ORDER == null and INDEX == null',
    '["a&&b"] == null and $."a||b" == null and a&b == null',
  ])('%s holds', (text) => {
    expect(holds(text)).toBe(true)
  })

  test.each([
    'lat == null',
    'none > 0',
    'absent <= 0',
    'absent >= 0',
    'loc == "gps"',
    'loc > 3',
    'loc',
    'none',
    'true and false',
    'not valid or false',
    'false and true or false',
    'exists(none)',
    '{event} == "due"',
    'constructor != null',
    '["69"] == 2',
    '{event} in ("due", "arr")',
    '{event} not in ("vp")',
    'absent in (1, 2)',
    'loc in ("gps")',
    'list[id=5].v == 5',
    '$up.key != null',
  ])('%s does not hold', (text) => {
    expect(holds(text)).toBe(false)
  })

  test('binds `and` closer than `or`', () => {
    expect(holds('true or true and false')).toBe(true)
    expect(holds('(true or true) and false')).toBe(false)
  })

  test('reads from the record one level out with $up', () => {
    const condition = compileCondition('$up."a key" == "A" and $up.n in (1)', [])
    expect(condition({}, {}, [], { record: { 'a key': 'A', n: 1 }, up: undefined })).toBe(true)
    expect(condition({}, {}, [], { record: { n: 1 }, up: undefined })).toBe(false)
    expect(condition({ 'a key': 'A', n: 1 }, {}, [])).toBe(false)
    const further = compileCondition('$up.$up.id == 7 and exists($up.$up.id)', [])
    expect(further({}, {}, [], { record: {}, up: { record: { id: 7 }, up: undefined } })).toBe(true)
    expect(further({}, {}, [], { record: { id: 7 }, up: undefined })).toBe(false)
  })

  test.each([
    ['"69" != 2', 'compares two constants; a key that needs quotes is written ["69"]'],
    ['lat > 3 and 1 < 2', 'compares two constants'],
    ['lat in', 'lacks a "(" after "in"'],
    ['lat in 5', 'lacks a "(" after "in"'],
    ['lat in ()', 'has an empty key'],
    ['lat in (1', 'lacks a ")"'],
    ['lat in (1,)', 'has an empty key'],
    ['lat in (1 2)', 'lacks a ")"'],
    ['lat not 5', 'has "not" after a value without "in"'],
    ['', 'ends where a value is expected'],
    ['lat ==', 'ends where a value is expected'],
    ['lat = 3', 'has = instead of "==" at position 5 of "lat = 3"'],
    ['lat=3', 'has = instead of "==" at position 4'],
    ['(lat == 3) = true', 'has = instead of "==" at position 12'],
    ['lat === 3', 'has === instead of "==" at position 5'],
    ['lat !== 3', 'has !== instead of "!="'],
    ['lat <> 3', 'has <> instead of "!="'],
    ['lat => 3', 'has => instead of ">="'],
    ['lat =< 3', 'has =< instead of "<="'],
    ['lat == = 3', 'has = where a value is expected; comparisons are == != < <= > >=, at position 8'],
    ['lat > 3 && sat > 2', 'has && instead of "and" at position 9'],
    ['valid && ign', 'has && instead of "and"'],
    ['valid&&ign', 'has && instead of "and" at position 6'],
    ['(lat > 3 || sat > 2)', 'has || instead of "or"'],
    ['valid||ign', 'has || instead of "or"'],
    ['lat in (1 || 2)', 'has || instead of "or"'],
    ['lat > 3 AND sat > 2', 'has AND instead of "and"'],
    ['valid OR ign', 'has OR instead of "or"'],
    ['!valid', 'has ! instead of "not" at position 1'],
    ['lat > 3 and !valid', 'has ! instead of "not" at position 13'],
    ['din & 8', 'has & 8; this bit is read with din.$bit(3), at position 5 of "din & 8"'],
    ['din&8', 'this bit is read with din.$bit(3), at position 4'],
    ['(io.din & 0x10) != 0', 'has & 0x10; this bit is read with io.din.$bit(4),'],
    ['["69"] & 1 == 1', 'this bit is read with ["69"].$bit(0),'],
    ['din & 12', 'these bits are read with din.$bit(2-3),'],
    ['din & 10 == 10', 'these bits are read with din.$bit(1), din.$bit(3),'],
    ['din & mask', 'has &; a bit is read with $bit, such as din.$bit(3),'],
    ['{event} & 0', 'has &; a bit is read with $bit, such as din.$bit(3),'],
    ['din | 8', 'has | instead of "or"'],
    [
      "loc == GPS'",
      'has a quote that begins no text; a text has one on both sides, such as "vp", at position 11',
    ],
    ["loc == 'GPS", 'has a quote that is never closed at position 8'],
    ['loc == \u201cGPS\u201d', 'has \u201c instead of a quote'],
    ['lat == 1 lon == 2', 'cannot be read at position 10'],
    ['(lat == 1', 'lacks a ")"'],
    ['exists(lat', 'lacks a ")" after exists('],
    ['lat and', 'ends where a value is expected'],
    ['and lat', 'has "and" where a value is expected'],
    ['{evnt} == "vp"', 'a capture "{evnt}" that the topic does not name (the topic has {event}, {vehicle})'],
    ['loc == "GPS', 'a quote that is never closed'],
    [`${'('.repeat(200)}lat${')'.repeat(200)}`, 'is nested too deep'],
  ])('that reads %j is refused with its place', (text, message) => {
    expect(() => holds(text)).toThrow(message)
  })
})

test('no condition throws, for any value', () => {
  const conditions = [
    'a.b > 3 or a == "x" and not b',
    '$up.a in (1, "x", b, null)',
    '$first() <= b or exists($.a[0])',
    '{event} != a',
  ].map((text) => compileCondition(text, ['event']))
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (one, root, around) => {
      const up = { record: around, up: undefined }
      for (const condition of conditions) expect(condition(one, root, ['vp'], up)).toBeTypeOf('boolean')
      for (const condition of conditions)
        expect(condition({ a: one, b: root }, root, ['vp'], up)).toBeTypeOf('boolean')
    }),
    { numRuns: 1000 },
  )
})

test('any text is a valid condition or is refused with the position of the fault', () => {
  const words = [
    'a',
    ' ',
    'and',
    'not',
    'in',
    '(',
    ')',
    '"',
    "'",
    '=',
    '==',
    '<',
    '!',
    '1',
    '{',
    '}',
    ',',
    '[',
    ']',
  ]
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...words, '$up', '.', '$', 'exists('), maxLength: 12 }),
      (text) => {
        expect(isReadOrRefused(() => compileCondition(text, ['a'])({ a: 1 }, {}, ['x']))).toBe(true)
      },
    ),
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
