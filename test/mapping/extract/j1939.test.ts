import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileJ1939, groupOf, isGroup, type J1939Signal } from '../../../src/mapping/extract/j1939.ts'

const hours = signal({ pgn: 65_253, type: 'u32le', scale: 0.05 })
const speed = signal({ pgn: 65_265, at: 1, type: 'u16le', scale: 0.00390625 })
const brake = signal({ pgn: 65_265, at: 0, type: 'bits', bit: 2, length: 2 })

function signal(rest: Partial<J1939Signal> & { pgn: number }): J1939Signal {
  return { at: 0, type: 'u8', scale: 1, offset: 0, absent: [], source: 0, ...rest }
}

const hoursId = 0x18fee500
const speedId = 0x18fef100

describe('an identifier', () => {
  test.each([
    [0x18fee500, 65_253],
    [419_357_952, 65_253],
    ['18FEE500', 65_253],
    ['0x18fee517', 65_253],
    ['0X18FEE5FE', 65_253],
    ['419357952', 65_253],
    [0x98fee500, 65_253],
    [0x18fef100, 65_265],
    [0x0cf00400, 61_444],
    [0x18ef1201, 0xef00],
    [0x18ea00f9, 0xea00],
    [0x19fef100, 0x1fef1],
    [0x1aef1201, 0x2ef00],
    [0x7ff, 0],
    ['cf00400', 61_444],
  ])('%s belongs to group %d', (id, group) => {
    expect(groupOf(id)).toBe(group)
  })

  test.each([
    -1,
    0.5,
    2 ** 29,
    2 ** 31 + 2 ** 29,
    2 ** 32,
    Number.NaN,
    '',
    '0x',
    '20000000',
    '18FEE50G',
    '999999999',
    '0x018FEE500',
    '4193579520',
    null,
    undefined,
    true,
    {},
    [419_357_952],
  ])('%j is none', (id) => {
    expect(groupOf(id)).toBe(-1)
  })

  test('of an addressed group ends in 00', () => {
    expect([0xef00, 0xf000, 0xfee5, 0x1ef00, 0].every(isGroup)).toBe(true)
    expect([0xef01, 1, 0x1ef01, 0x40000].some(isGroup)).toBe(false)
  })
})

describe('frames', () => {
  const read = compileJ1939({ hours, speed, brake })

  test.each([
    [[{ id: hoursId, data: 'D45A000012345678' }], { hours: 1162.6 }],
    [[{ id: '18FEE500', data: 'd4 5a 00 00' }], { hours: 1162.6 }],
    [[{ id: hoursId, data: [0xd4, 0x5a, 0, 0] }], { hours: 1162.6 }],
    [{ id: hoursId, data: 'D45A0000' }, { hours: 1162.6 }],
    [[{ id: speedId, data: 'F30050FFFFFFFFFF' }], { speed: 80, brake: 0 }],
    [
      [
        { id: hoursId, data: 'D45A0000' },
        { id: speedId, data: 'F70050' },
      ],
      { hours: 1162.6, speed: 80, brake: 1 },
    ],
    [
      [
        { id: hoursId, data: 'FFFFFFFF' },
        { id: hoursId, data: 'FE000000' },
        { id: hoursId, data: '01000000' },
      ],
      { hours: 12.7 },
    ],
  ])('%j give %j', (frames, values) => {
    expect(read(frames)).toEqual(values)
  })

  test.each([
    'FFFFFFFF',
    '000000FF',
    '000000FE',
    '000000FB',
    'D45A00',
    'D45A0',
    'engine',
    '',
    null,
    [256, 0, 0, 0],
    [-1, 0, 0, 0],
    ['1', 0, 0, 0],
    1,
  ])('with %j give no hours', (data) => {
    expect(read([{ id: hoursId, data }])).toBeUndefined()
  })

  test('a counter at the end of its range is no value', () => {
    expect(read([{ id: hoursId, data: 'FFFFFFFA' }])).toBeUndefined()
    expect(read([{ id: hoursId, data: '000000FA' }])).toBeUndefined()
    expect(read([{ id: hoursId, data: 'FFFFFFF9' }])).toEqual({ hours: 209_715_199.95 })
  })

  test.each([
    [0, '00', 0],
    [0, '04', 1],
    [0, '08', undefined],
    [0, '0C', undefined],
  ])('two bits say off, on, error and not available', (_, data, value) => {
    expect(read([{ id: speedId, data: `${data}FFFF` }])?.['brake']).toBe(value)
  })

  test.each([
    ['u8', 'FA', 250],
    ['u8', 'FB', undefined],
    ['u8', 'FE', undefined],
    ['u8', 'FF', undefined],
    ['u16le', 'FFF9', 63_999],
    ['u16le', '00FA', undefined],
    ['u16le', '00FB', undefined],
    ['u16le', 'FFFF', undefined],
    ['u24le', 'FFFFF9', 16_383_999],
    ['u24le', '0000FA', undefined],
    ['u24le', '0000FE', undefined],
    ['u32le', '000000FF', undefined],
  ] as const)('as %s %s is %s', (type, data, value) => {
    expect(compileJ1939({ a: signal({ pgn: 65_253, type }) })([{ id: hoursId, data }])?.['a']).toBe(value)
  })

  test.each([
    [8, 'FA', 250],
    [8, 'FB', undefined],
    [16, 'FFFA', 64_255],
    [16, '00FB', undefined],
  ])('%d bits of %s are %s', (length, data, value) => {
    const a = signal({ pgn: 65_253, type: 'bits', bit: 0, length })
    expect(compileJ1939({ a })([{ id: hoursId, data }])?.['a']).toBe(value)
  })

  test('of one address the first frame with a value is used', () => {
    const frames = [
      { id: hoursId, data: 'D45A0000' },
      { id: hoursId, data: '00000000' },
    ]
    expect(read(frames)).toEqual({ hours: 1162.6 })
    expect(read(frames.toReversed())).toEqual({ hours: 0 })
  })

  describe('of several controllers', () => {
    /** 716.25 h of the engine, 0.5 h of a second controller, 3 h of a third one. */
    const frames = [
      { id: hoursId + 61, data: '0A000000' },
      { id: hoursId, data: 'F5370000' },
      { id: hoursId + 3, data: '3C000000' },
    ]
    const hoursOf = (source: J1939Signal['source'], some: readonly object[] = frames) =>
      compileJ1939({ hours: { ...hours, source } })(some)?.['hours']

    test('those of the engine are used, whatever comes first', () => {
      expect(read(frames)).toEqual({ hours: 716.25 })
      expect(read(frames.toReversed())).toEqual({ hours: 716.25 })
      expect(read(frames.filter(({ id }) => id !== hoursId))).toBeUndefined()
    })

    test('those of the address in the config are used', () => {
      expect(hoursOf(61)).toBe(0.5)
      expect(hoursOf(3)).toBe(3)
      expect(hoursOf(4)).toBeUndefined()
    })

    test('those of the first address in a list are used, and any stands for all others', () => {
      expect(hoursOf([4, 3, 0])).toBe(3)
      expect(hoursOf([0, 'any'])).toBe(716.25)
      expect(hoursOf('any')).toBe(0.5)
      expect(hoursOf([4, 'any'])).toBe(0.5)
      expect(hoursOf([0, 'any'], frames.slice(2))).toBe(3)
    })

    test('an address whose value is absent leaves it to the next one', () => {
      const absent = [...frames, { id: hoursId + 1, data: 'FFFFFFFF' }]
      expect(hoursOf([1, 0], absent)).toBe(716.25)
    })
  })

  test.each([null, undefined, 1, 'x', [], [null], [[]], [{}], [{ id: hoursId }]])('%j are none', (frames) => {
    expect(read(frames)).toBeUndefined()
  })

  test('are read without an exception, whatever bytes they contain', () => {
    const frame = fc.record({
      id: fc.oneof(fc.constantFrom(hoursId, speedId, '18FEE500'), fc.anything()),
      data: fc.oneof(fc.string({ unit: fc.constantFrom('0', 'F', 'f', '7', ' ', 'x') }), fc.anything()),
    })
    fc.assert(
      fc.property(fc.oneof(fc.array(fc.oneof(frame, fc.anything())), fc.anything()), (frames) => {
        expect(() => read(frames)).not.toThrow()
      }),
      { numRuns: 3000 },
    )
  })
})
