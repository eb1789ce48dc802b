import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { compileExtract, compileExtractor } from '../../../src/mapping/extract/extract.ts'
import { extractSchema } from '../../../src/mapping/extract/extract-config.ts'

function extractorOf(entries: readonly unknown[], captureNames: readonly string[] = []) {
  const config = extractSchema.parse(entries)
  return compileExtract(config.map((entry) => compileExtractor(entry, captureNames)))
}

function extracted(entries: readonly unknown[], record: unknown): unknown {
  return extractorOf(entries)(record, { captures: [] })
}

const rows = rowsBeside(import.meta.filename) as {
  packed: [as: string, data: string][]
  not_packed: [as: string, data: unknown][]
  no_json: unknown[]
  refused: object[]
}

/** Latitude, longitude, and a byte with two flags and a heading, as a small tracker sends them. */
const layout = {
  latitude: { at: 0, type: 'i32le', scale: 1e-7 },
  longitude: { at: 4, type: 'i32le', scale: 1e-7, absent: [0x7fffffff] },
  heading: { at: 8, type: 'bits', bit: 2, length: 6, scale: 5.625 },
  moving: { at: 8, type: 'bits', bit: 0 },
}
// 488566000 = 0x1D1EECF0, -23522000 = 0xFE991530, heading 16 x 5.625 and moving.
const position = Buffer.from('f0ec1e1d301599fe41', 'hex')
const found = { latitude: 48.8566, longitude: -2.3522, heading: 90, moving: 1 }

describe('packed bytes', () => {
  test.each(rows.packed)('in %s are unpacked to numbers: %s', (as, data) => {
    expect(extracted([{ from: 'data', as, into: 'raw', layout }], { data })).toEqual({ data, raw: found })
  })

  test('of each record are unpacked where the message is a list', () => {
    const data = position.toString('hex')
    const records = [{ data }, 'no record', { data: 'none' }]
    const entries = [{ from: 'data', as: 'hex', into: 'raw', layout }]
    expect(extracted(entries, records)).toEqual([{ data, raw: found }, ...records.slice(1)])
    const others = records.slice(1)
    expect(extracted(entries, others)).toBe(others)
  })

  test.each(rows.not_packed)('in %s that are none add nothing: %j', (as, data) => {
    const record = { data }
    expect(extracted([{ from: 'data', as, into: 'raw', layout }], record)).toBe(record)
  })

  test('that are too short omit the fields beyond their end', () => {
    const data = position.subarray(0, 5).toString('hex')
    expect(extracted([{ from: 'data', as: 'hex', into: 'raw', layout }], { data })).toEqual({
      data,
      raw: { latitude: 48.8566 },
    })
  })

  test('without a layout are a text', () => {
    const data = Buffer.from('{"lat":48.85}').toString('base64')
    const entries = [
      { from: 'data', as: 'base64', into: 'text' },
      { from: 'text', as: 'json', into: 'decoded' },
    ]
    expect(extracted(entries, { data })).toEqual({ data, text: '{"lat":48.85}', decoded: { lat: 48.85 } })
    expect(extracted(entries, { data: '/w==' })).toEqual({ data: '/w==' })
  })
})

test('NMEA sentences in a text become a list of fixes', () => {
  const raw = '$GNRMC,090001.00,A,4656.8856,N,00726.8466,E,30.7,112.0,301225,,,A*74'
  const entries = [{ from: 'raw', as: 'nmea', into: 'nmea' }]
  expect(extracted(entries, { raw })).toMatchObject({
    raw,
    nmea: { records: [{ time: 1_767_085_201_000, latitude: '4656.8856' }] },
  })
  expect(extracted(entries, { raw: 'hello' })).toEqual({ raw: 'hello' })
})

describe('what is extracted', () => {
  const json = { from: 'payload', as: 'json', into: 'decoded.part' }

  test('is added to the message under one key with its name', () => {
    expect(extracted([json], { payload: '[1]', a: 2 })).toEqual({
      payload: '[1]',
      a: 2,
      'decoded.part': [1],
    })
  })

  test('never overwrites a key of the message, not even null', () => {
    const record = { payload: '1', 'decoded.part': null }
    expect(extracted([json], record)).toBe(record)
  })

  test('does not change the message', () => {
    const record = Object.freeze({ payload: '1' })
    expect(extracted([json], record)).toEqual({ payload: '1', 'decoded.part': 1 })
    expect(record).toEqual({ payload: '1' })
  })

  test('named __proto__ is an ordinary key', () => {
    const found = extracted([{ ...json, into: '__proto__' }], { payload: '{"polluted":1}' }) as object
    expect(Object.keys(found)).toEqual(['payload', '__proto__'])
    expect(Object.getPrototypeOf(found)).toBe(Object.prototype)
    expect('polluted' in found).toBe(false)
    expect('polluted' in {}).toBe(false)
    const record: unknown = JSON.parse('{"payload":"1","__proto__":{"a":1}}')
    expect(JSON.stringify(extracted([json], record))).toBe(
      '{"payload":"1","__proto__":{"a":1},"decoded.part":1}',
    )
  })

  test('comes from the first path with a value, or from the root', () => {
    expect(extracted([{ ...json, from: ['no', 'payload'] }], { payload: '1' })).toMatchObject({
      'decoded.part': 1,
    })
    const extract = extractorOf([{ ...json, from: '$.payload' }])
    expect(extract({ payload: '2' }, { captures: [] })).toEqual({ payload: '2', 'decoded.part': 2 })
  })

  test('can depend on a condition over the message, its captures and earlier extracted values', () => {
    const extract = extractorOf(
      [
        { ...json, into: 'first', when: 'port == 1 && topic.kind == "up"' },
        { ...json, into: 'second', when: 'has(first) && has(message.first)' },
      ],
      ['kind'],
    )
    const record = { payload: '1', port: 1 }
    expect(extract(record, { captures: ['up'] })).toEqual({ ...record, first: 1, second: 1 })
    expect(extract(record, { captures: ['down'] })).toBe(record)
  })

  test.each([[[{ a: 1 }]], [null], ['text'], [1], [undefined]])('from %j is nothing', (record) => {
    expect(extracted([json], record)).toBe(record)
  })

  test.each(rows.no_json)('from %j as JSON is nothing', (payload) => {
    const record = { payload }
    expect(extracted([json], record)).toBe(record)
  })
})

describe('an entry of `extract`', () => {
  const packed = { from: 'data', as: 'hex', into: 'raw' }
  test.each(rows.refused)('%j is refused', (entry) => {
    expect(extractSchema.safeParse([entry]).success).toBe(false)
  })

  test('with an invalid path or condition is refused when it is compiled', () => {
    expect(() => extractorOf([{ ...packed, from: 'a..b' }])).toThrow('has an empty key')
    expect(() => extractorOf([{ ...packed, when: 'a =' }])).toThrow('compared with ==')
    expect(() => extractorOf([{ ...packed, when: 'topic.no == 1' }])).toThrow('has topic.no')
  })
})

test('extraction never throws, for any value', () => {
  const extract = extractorOf([
    { from: 'x', as: 'base64', into: 'a', layout },
    { from: 'x', as: 'hex', into: 'b', layout },
    { from: 'x', as: 'base64', into: 'c' },
    { from: 'x', as: 'json', into: 'd' },
    {
      from: 'x',
      as: 'j1939',
      into: 'e',
      signals: { hours: { pgn: 65_253, at: 0, type: 'u32le', scale: 0.05 } },
    },
  ])
  const hex = fc.string({ unit: fc.constantFrom('0', 'F', 'f', ' ', 'x', '=', '+', '_', '"', '{') })
  fc.assert(
    fc.property(fc.oneof(fc.anything(), hex), (x) => {
      expect(() => extract(x, { captures: [] })).not.toThrow()
      expect(extract({ x }, { captures: [] })).toMatchObject({ x })
    }),
  )
})
