import { describe, expect, test } from 'vitest'
import { compileCondition } from '../../../src/mapping/expression/expression.ts'
import { celOfOldCondition } from '../../../src/mapping/expression/old-conditions.ts'

const record: unknown = JSON.parse(
  '{"lat":60.1,"sat":"7","loc":"GPS","valid":true,"ign":0,"none":null,"position.valid":"yes","a":{"b":[1,2]},"or":5,"69":1,"io":{"239":1},"latlng":"0.0,0.0","list":[{"id":5,"v":6}],"in":7}',
)

function holds(text: string): boolean {
  const translated = celOfOldCondition(text) ?? ''
  return compileCondition(translated, ['event', 'vehicle'])(record, record, ['vp', '0042'])
}

describe('a condition of the language before 0.2 means the same in CEL', () => {
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
    'not (none < 3)',
    'not (none < 3 or ign)',
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
    'not (none < 3) and none < 3',
  ])('%s does not hold', (text) => {
    expect(holds(text)).toBe(false)
  })
})

test.each([
  ['not (a < 3 or b)', '(a < 3 || b) != true'],
  ['(a or b) and c', '(a || b) && c'],
  ['$properties.tenant == "a b"', 'packet.user.tenant == "a b"'],
  ['$packet.content_type != "x"', 'packet.content_type != "x"'],
  ['$up.$up."a key" == 1', 'outer.outer["a key"] == 1'],
  ['topic == "x" and if == 2', 'record.topic == "x" && record["if"] == 2'],
  ['din.$bit(3) == 1 and din.$bit(4-6) == 5', 'bit(din, 3) == 1 && bits(din, 4, 3) == 5'],
  ['exists($first().lat)', 'has(entries(record)[0].value.lat)'],
  ['uplink-message > 1', 'record["uplink-message"] > 1'],
])('%s is written as %s', (text, translated) => {
  expect(celOfOldCondition(text)).toBe(translated)
})

test.each(['lat == 3 and', 'lat = 3', 'lat && sat', '{event', 'lat in (1', `${'('.repeat(99)}a`])(
  '%s has no translation',
  (text) => {
    expect(celOfOldCondition(text)).toBeUndefined()
  },
)

test.each([
  'lat > 60 and sat > 3',
  '["69"] != 2',
  'exists(lat)',
  '{event} == "vp"',
  'sat in (7)',
  'gps-fix == 1',
])('%s is refused with its translation', (text) => {
  expect(() => compileCondition(text, ['event'])).toThrow(celOfOldCondition(text))
})
