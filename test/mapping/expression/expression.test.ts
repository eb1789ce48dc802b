import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileCondition, compileExpression } from '../../../src/mapping/expression/expression.ts'
import { functionRows } from '../../../src/mapping/expression/functions/functions.ts'
import { isNone, NoResult } from '../../../src/mapping/path/no-result.ts'
import { Malformed } from '../../../src/mapping/path/text-cursor.ts'

const record: unknown = JSON.parse(
  '{"lo":5,"hi":2,"t":"130","u":"54","name":"Truck 7","n":null,"e":"","ok":1,"no":"off","list":[{"id":5,"v":8},{"id":6}],' +
    '"gps":{"lat":47.1},"big":4294967295,"wide":9007199254740991,"digits":"1234567890123456789","latlng":"1.5, 2.5",' +
    '"69":1,"gps-fix":3,"topic":"x","o":{"t":[1,2],"v":[8,9]},"uneven":{"t":[1],"v":[]},"nested":[[1,2],[3]]}',
)

function valueOf(text: string): unknown {
  const found = compileExpression(text, ['dev'])(record, { ...(record as object), root: 1 }, undefined, [
    'd1',
  ])
  return found instanceof NoResult ? `no result: ${found.reason}` : found
}

describe('an expression', () => {
  test.each<[string, unknown]>([
    ['lo + hi * 256', 517],
    ['lo / hi', 2.5],
    ['-lo % 3', -2],
    ['0.1 + 0.2', 0.3],
    ['gps.lat * 1000', 47_100],
    ['name + "!"', 'Truck 7!'],
    ['number(t) + number(u)', 184],
    ['[t, u].join()', '13054'],
    ['digits', '1234567890123456789'],
    ['record["69"]', 1],
    ['record["gps-fix"] - 1', 2],
    ['record.topic', 'x'],
    ['topic.dev', 'd1'],
    ['message.root', 1],
    ['list[-1].id', 6],
    ['lo > 3 ? "a" : zz', 'a'],
    ['ok ? 1 : 2', 1],
    ['no ? 1 : 2', 2],
    ['list.filter(x, x.v == 8)[0].id', 5],
    ['list.map(x, x.v)', [8, null]],
    ['list.map(x, has(x.v), x.id)', [5]],
    ['{"a": lo, "b": zz}', { a: 5 }],
    ['o.filter(k, k == "t")', ['t']],
    ['nested.map(x, x.map(y, y + 1))', [[2, 3], [4]]],
    ['nested.exists(x, x.exists(y, y == 3))', true],
    ['list.exists_one(x, x.id == 6)', true],
    ['list.all(x, x.id > 4)', true],
    ['bit(lo, 2)', 1],
    ['bits(lo, 1, 2)', 2],
    ['bits("0xF0000000000000F1", 60, 4)', 15],
    ['signed(65535, 16)', -1],
    ['hex("0x1F4")', 500],
    ['int(number("12.7"))', 12],
    ['round(1.005, 2)', 1.01],
    ['round(-2.5)', -3],
    ['floor(-2.5)', -3],
    ['ceil(2.1)', 3],
    ['abs(-2.5)', 2.5],
    ['min(lo, hi, "1")', 1],
    ['max(list.map(x, x.id))', 6],
    ['millis("2026-11-28T10:00:00Z")', 1_795_860_000_000],
    ['millis("2026-11-28 10:00:00")', 1_795_860_000_000],
    ['millis("2026-11-28T12:00:00 +02:00")', 1_795_860_000_000],
    ['ddmm("5231.000", "S")', -52.516_666_667],
    ['latlng.split(",")[1].trim()', '2.5'],
    ['number("1,5".replace(",", "."))', 1.5],
    ['name.substring(0, 5).upperAscii()', 'TRUCK'],
    ['name.lowerAscii().contains("truck")', true],
    ['name.startsWith("Tr") && name.endsWith("7")', true],
    ['name.matches("^T[a-z]+ [0-9]$")', true],
    ['size(list) + size(name) + size(gps)', 10],
    ['string(lo) + "km"', '5km'],
    ['entries(gps)', [{ key: 'lat', value: 47.1 }]],
    [
      'zip(o)',
      [
        { t: 1, v: 8 },
        { t: 2, v: 9 },
      ],
    ],
  ])('%s', (text, value) => {
    expect(valueOf(text)).toEqual(value)
  })

  test.each([
    'zz + 1',
    'zz.a.b',
    'n * 2',
    '!(zz > 3)',
    'zz ? 1 : 2',
    'zz && ok',
    'zz || no',
    'number(e)',
    'list[7]',
    'list.all(x, x.v > 3)',
    'size(zz)',
    'name.root',
    'constructor',
    'gps.toString',
  ])('%s is no value', (text) => {
    expect(valueOf(text) ?? null).toBeNull()
  })

  test.each([
    ['lo / 0', 'no finite number'],
    ['t + 1', 'number(x) reads a text as one'],
    ['t + u', 'join([a, b])'],
    ['wide + 1', 'beyond 2^53'],
    ['number(digits)', 'beyond 2^53'],
    ['big * 2', 'placeholder'],
    ['name > 3', 'no order'],
    ['name && true', 'neither true nor false'],
    ['number(name)', 'number() has an argument of a type'],
    ['bit(lo, 64)', 'bit() has an argument'],
    ['zip(uneven)', 'lists of one length'],
    ['name.map(x, x)', 'needs a list'],
    ['lo in name', 'needs a list or an object'],
  ])('%s has no result', (text, reason) => {
    expect(valueOf(text)).toContain(reason)
  })

  test.each<[string, boolean]>([
    ['zz == null', true],
    ['zz != 5', true],
    ['lo / 0 == null', true],
    ['has(gps.lat) && !has(gps.lon) && !has(n)', true],
    ['zz > 3 || lo > 3', true],
    ['zz > 3 && false', false],
    ['!(zz > 3 && false)', true],
    ['zz > 3', false],
    ['list.exists(x, x.v > 3)', true],
    ['list.exists(x, x.v > 8)', false],
    ['t == 130 && ok == true && no == false', true],
    ['t in [130] && "t" in o && !(zz in [1])', true],
    ['u < 130 && u < t', true],
    ['zz in zz', false],
  ])('as a condition %s is %s', (text, holds) => {
    expect(compileCondition(text, [])(record, record, [])).toBe(holds)
  })

  test.each([
    ['lo-hi', 'could be a key: write record["lo-hi"]'],
    ['lo = 3', 'compared with =='],
    ['lo & 8 == 8', 'bit(x, n)'],
    ['"69" == 1', 'compares constants'],
    ['["69"] == 1', 'record["69"]'],
    ['lo in (1)', '`in` without a list'],
    ['sized(lo)', 'Did you mean "size"?'],
    ['bit(lo)', 'it is bit(x, n)'],
    ['topic == "x"', 'a key named topic is record.topic'],
    ['topic.event', 'the captures dev'],
    ['packet.tenant', 'packet.user.NAME'],
    ['previous', 'without a key'],
    ['outer.outer.outer.outer.outer.x', 'levels of outer'],
    ['name.matches(t)', 'a constant text'],
    ['name.matches("(")', 'no regular expression'],
    ['id == 1234567890123456789', 'beyond 2^53'],
    ['list.map(x, list.map(y, list.map(z, z)))', 'inside of two others'],
    ['a.?b', 'is no expression'],
    ['b"x"', 'has bytes'],
    ['{lo: 1}', 'no constant text'],
    [`lo${' + 1'.repeat(300)}`, 'maxAstNodes'],
  ])('%s is refused', (text, message) => {
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
      const up = { record: around, up: undefined }
      for (const read of expressions)
        expect(() => read({ a: one, b: other }, other, up, ['vp'])).not.toThrow()
    }),
    { numRuns: 1000 },
  )
})

test('any text is an expression or is refused', () => {
  const words = [
    'a',
    ' ',
    '&&',
    '!',
    ' in ',
    '(',
    ')',
    '"',
    '[',
    ']',
    '==',
    '<',
    '1',
    '{',
    '}',
    ',',
    '.',
    'has(',
    '-',
    '?',
    ':',
    'map(x,',
  ]
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...words), maxLength: 14 }), (text) => {
      let refusal: unknown
      try {
        compileExpression(text, ['a'])({ a: 1 }, {}, undefined, ['x'])
      } catch (error) {
        refusal = error
      }
      expect(refusal === undefined || refusal instanceof Malformed).toBe(true)
    }),
    { numRuns: 5000 },
  )
})

describe('an expression as the value of a field', () => {
  const valueIn = (text: string, record: object) => compileExpression(text, [])(record, record, undefined)

  test.each([
    ['door == 1', { door: 1 }, true],
    ['door == 1', { door: '0' }, false],
    ['bit(din, 1) != 1', { din: 2 }, false],
    ['mode in ["A", "B"]', { mode: 'C' }, false],
    ['door == null', {}, true],
    ['has(door)', {}, false],
    ['door == 1 ? "open" : "closed"', {}, 'closed'],
  ])('%s of %j is %j', (text, record, value) => {
    expect(valueIn(text, record)).toBe(value)
  })

  test.each(['door == 1', 'door != 1', 'bit(door, 1) == 1', 'door == other', '1 == door', 'door in [1, 2]'])(
    'says nothing of what is not there: %s',
    (text) => {
      for (const record of [{}, { door: null }]) expect(isNone(valueIn(text, record))).toBe(true)
    },
  )

  test('is false as a condition without the value', () => {
    expect(compileCondition('door == 1', [])({}, {}, [])).toBe(false)
    expect(compileCondition('door != 1', [])({}, {}, [])).toBe(true)
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
