import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { compileJ1939, groupOf, isGroup, type J1939Signal } from '../../../src/mapping/extract/j1939.ts'

const rows = rowsBeside(import.meta.filename) as {
  groups: [id: unknown, group: number][]
  no_groups: unknown[]
  frames: [frames: unknown, values: object][]
  no_hours: unknown[]
  by_type: [type: J1939Signal['type'], bytes: string, value: number | null][]
  bits: [length: number, bytes: string, value: number | null][]
  two_bits: [bytes: string, value: number | null][]
}

const hours = signal({ pgn: 65_253, type: 'u32le', scale: 0.05 })
const speed = signal({ pgn: 65_265, at: 1, type: 'u16le', scale: 0.00390625 })
const brake = signal({ pgn: 65_265, at: 0, type: 'bits', bit: 2, length: 2 })

function signal(rest: Partial<J1939Signal> & { pgn: number }): J1939Signal {
  return { at: 0, type: 'u8', scale: 1, offset: 0, absent: [], source: 0, ...rest }
}

const hoursId = 0x18fee500
const speedId = 0x18fef100

describe('an identifier', () => {
  test.each(rows.groups)('%s belongs to group %d', (id, group) => {
    expect(groupOf(id)).toBe(group)
  })

  test.each([...rows.no_groups, undefined, Number.NaN])('%j is none', (id) => {
    expect(groupOf(id)).toBe(-1)
  })

  test('of an addressed group ends in 00', () => {
    expect([0xef00, 0xf000, 0xfee5, 0x1ef00, 0].every(isGroup)).toBe(true)
    expect([0xef01, 1, 0x1ef01, 0x40000].some(isGroup)).toBe(false)
  })
})

describe('frames', () => {
  const read = compileJ1939('bus', { hours, speed, brake })

  test.each(rows.frames)('%j give %j', (frames, values) => {
    expect(read(frames)).toEqual(values)
  })

  test.each(rows.no_hours)('with %j give no hours', (data) => {
    expect(read([{ id: hoursId, data }])).toBeUndefined()
  })

  test('a counter at the end of its range is no value', () => {
    expect(read([{ id: hoursId, data: 'FFFFFFFA' }])).toBeUndefined()
    expect(read([{ id: hoursId, data: '000000FA' }])).toBeUndefined()
    expect(read([{ id: hoursId, data: 'FFFFFFF9' }])).toEqual({ hours: 209_715_199.95 })
  })

  test.each(rows.two_bits)('two bits say off, on, error and not available: %s is %j', (data, value) => {
    expect(read([{ id: speedId, data: `${data}FFFF` }])?.['brake'] ?? null).toBe(value)
  })

  test.each(rows.by_type)('as %s %s is %s', (type, data, value) => {
    expect(
      compileJ1939('bus', { a: signal({ pgn: 65_253, type }) })([{ id: hoursId, data }])?.['a'] ?? null,
    ).toBe(value)
  })

  test.each(rows.bits)('%d bits of %s are %s', (length, data, value) => {
    const a = signal({ pgn: 65_253, type: 'bits', bit: 0, length })
    expect(compileJ1939('bus', { a })([{ id: hoursId, data }])?.['a'] ?? null).toBe(value)
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
      compileJ1939('bus', { hours: { ...hours, source } })(some)?.['hours']

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
    )
  })
})
