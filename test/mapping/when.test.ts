import { describe, expect, test } from 'vitest'
import { compileCondition } from '../../src/mapping/when.ts'

const record: unknown = JSON.parse(
  '{"lat":60.1,"sat":"7","loc":"GPS","valid":true,"ign":0,"none":null,"position.valid":"yes","a":{"b":[1,2]},"or":5}',
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
    'valid == 1',
    'loc',
    'none',
    'true and false',
    'not valid or false',
    'false and true or false',
    'exists(none)',
    '{event} == "due"',
    'constructor != null',
  ])('%s does not hold', (text) => {
    expect(holds(text)).toBe(false)
  })

  test('binds `and` closer than `or`', () => {
    expect(holds('true or true and false')).toBe(true)
    expect(holds('(true or true) and false')).toBe(false)
  })

  test.each([
    ['', 'ends where a value is expected'],
    ['lat ==', 'ends where a value is expected'],
    ['lat = 3', 'cannot be read at position 5'],
    ['lat == 1 lon == 2', 'cannot be read at position 10'],
    ['(lat == 1', 'lacks a ")"'],
    ['exists(lat', 'lacks a ")" after exists('],
    ['lat and', 'ends where a value is expected'],
    ['and lat', 'has "and" for a value'],
    ['{evnt} == "vp"', 'a capture "{evnt}" that the topic does not name (the topic has {event}, {vehicle})'],
    ['loc == "GPS', 'a quote that is never closed'],
    [`${'('.repeat(200)}lat${')'.repeat(200)}`, 'is nested too deep'],
  ])('that reads %j is refused with its place', (text, message) => {
    expect(() => holds(text)).toThrow(message)
  })
})
