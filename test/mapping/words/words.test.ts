// Each word of a field, as data: a field, a message, and what is sent; through the whole mapper.

import { describe, expect, test } from 'vitest'
import {
  messageOf,
  openMapperOf,
  payloadsIn,
  sentIn,
  truckSource,
  verdictOf,
  type Sent,
} from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000, lat: 52.5, lon: 13.4 }

function mapped(map: Record<string, unknown>, message: Record<string, unknown>, rest = {}): Sent {
  const mapper = openMapperOf([truckSource(map, rest)])
  return sentIn(mapper.map(messageOf({ ...base, ...message })))
}

function fieldOf(field: Record<string, unknown>, message: Record<string, unknown>): unknown {
  const sent = mapped({ fields: { x: { type: 'number', ...field } } }, message) as Record<string, unknown>
  return sent['x']
}

describe('a number', () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, number | undefined]>([
    ['a bit that is set', { path: 'din', bit: 3 }, { din: 8 }, 1],
    ['a bit that is not', { path: 'din', bit: 2 }, { din: 8 }, 0],
    ['a range of bits', { path: 'din', bit: '4-7' }, { din: 0xa5 }, 10],
    ['all bits of 16', { path: 'din', bit: '0-15' }, { din: 0x1_2345 }, 0x2345],
    ['a bit above 32', { path: 'din', bit: 40 }, { din: 2 ** 40 }, 1],
    ['a bit of a text', { path: 'din', bit: 63 }, { din: '9223372036854775808' }, 1],
    ['bits of a hexadecimal text', { path: 'din', bit: '4-7' }, { din: '0xA5' }, 10],
    ['the sign bit of a negative number', { path: 'din', bit: 31 }, { din: -1 }, 1],
    ['a bit of a fraction is omitted', { path: 'din', bit: 0 }, { din: 1.5 }, undefined],
    ['a bit of a number beyond 2^53', { path: 'din', bit: 60 }, { din: 2 ** 60 }, 1],
    ['a bit of a word is omitted', { path: 'din', bit: 0 }, { din: 'on' }, undefined],
    ['a bit of nothing', { path: 'din', bit: 0 }, {}, undefined],
    ['a bit in the path', { path: 'io.din.$bit(4-7)' }, { io: { din: 0xa5 } }, 10],
    ['a word of a table', { path: 's', values: { N: 0, NE: 45 } }, { s: 'NE' }, 45],
    ['a number of a table', { path: 's', values: { 1: 10 } }, { s: 1 }, 10],
    ['true in a table', { path: 's', values: { true: 7 } }, { s: true }, 7],
    ['any other value', { path: 's', values: { N: 0, '*': -1 } }, { s: 'NNE' }, -1],
    ['a value that the table lacks is omitted', { path: 's', values: { N: 0 } }, { s: 'NNE' }, undefined],
    [
      'an inherited name is not in the table',
      { path: 's', values: { N: 0 } },
      { s: 'constructor' },
      undefined,
    ],
    ['a bit, then a table', { path: 's', bit: '0-1', values: { 0: 5, 2: 6 } }, { s: 14 }, 6],
    ['a negative number', { path: 't', negative: 'sign == 1' }, { t: 12.5, sign: 1 }, -12.5],
    ['a positive number', { path: 't', negative: 'sign == 1' }, { t: 12.5, sign: 0 }, 12.5],
    ['a number that was negative before', { path: 't', negative: 'sign == 1' }, { t: -12.5, sign: 1 }, -12.5],
    ['a negative text', { path: 't', negative: 'sign == "-"' }, { t: '12.50', sign: '-' }, -12.5],
    [
      'a negative placeholder is omitted',
      { path: 't', negative: 'sign == 1' },
      { t: 4_294_967_295, sign: 1 },
      undefined,
    ],
    [
      'a negative placeholder in a text is omitted',
      { path: 't', negative: 'sign == 1' },
      { t: '2147483647', sign: 1 },
      undefined,
    ],
    [
      'a negative rounded number is omitted',
      { path: 't', negative: 'sign == 1' },
      { t: 2 ** 60, sign: 1 },
      undefined,
    ],
    ['a sum', { path: 'a', plus: 'b' }, { a: 0.1, b: 0.2 }, 0.3],
    ['a sum of texts', { path: 'a', plus: 'b' }, { a: '1.10', b: '2.2' }, 3.3],
    [
      'two halves of a number',
      { path: 'lo', plus: { path: 'hi', scale: 65_536 } },
      { lo: 7, hi: 3 },
      196_615,
    ],
    ['a difference', { path: 'a', minus: 'b' }, { a: 5, b: 7.25 }, -2.25],
    ['a ratio', { path: 'a', over: 'b' }, { a: 1, b: 8 }, 0.125],
    ['a ratio without end', { path: 'a', over: 'b' }, { a: 2, b: 3 }, 0.666667],
    ['a ratio with two signs', { path: 'a', over: 'b' }, { a: -1, b: -3 }, 0.333333],
    ['a division by zero is omitted', { path: 'a', over: 'b' }, { a: 2, b: 0 }, undefined],
    ['all three', { path: 'a', plus: 'b', minus: 'c', over: 'b' }, { a: 5, b: 2, c: 1 }, 3],
    ['a sum without its second value', { path: 'a', plus: 'b' }, { a: 5 }, undefined],
    ['a sum with a word is omitted', { path: 'a', plus: 'b' }, { a: 5, b: 'x' }, undefined],
    [
      'a sum with a second value that means none',
      { path: 'a', plus: 'b', absent: [-1, '-'] },
      { a: 5, b: -1 },
      undefined,
    ],
    [
      'the first second value that means something',
      { path: 'a', minus: ['b', 'c'], absent: [-1] },
      { a: 5, b: '-1', c: 2 },
      3,
    ],
    [
      'a ratio with a scaled value that means none',
      { path: 'a', over: { path: 'b', scale: 2 }, absent: [255] },
      { a: 5, b: 255 },
      undefined,
    ],
    ['a sum of decimal commas', { path: 'a', plus: 'b', decimal_comma: true }, { a: '1,5', b: '2,25' }, 3.75],
    ['a sum with a placeholder is omitted', { path: 'a', plus: 'b' }, { a: 1, b: 4_294_967_295 }, undefined],
    [
      'a placeholder minus a value is omitted',
      { path: 'a', minus: 'b' },
      { a: 4_294_967_295, b: 1 },
      undefined,
    ],
    [
      'a placeholder in a named unit is omitted',
      { path: 'v', unit: { path: 'u', values: { mph: 'mph' } } },
      { v: 4_294_967_295, u: 'mph' },
      undefined,
    ],
    ['the first second value', { path: 'a', plus: ['c', 'b'] }, { a: 5, b: 1 }, 6],
    ['a sum, then scale and offset', { path: 'a', plus: 'b', scale: 0.1, offset: 1 }, { a: 1, b: 2 }, 1.3],
    [
      'a unit by another field',
      { path: 'v', unit: { path: 'u', values: { kph: 'km/h', mph: 'mph' } } },
      { v: 10, u: 'mph' },
      16.09344,
    ],
    [
      'a unit that is not in the table',
      { path: 'v', unit: { path: 'u', values: { kph: 'km/h' } } },
      { v: 10, u: 'mph' },
      undefined,
    ],
    [
      'the unit of messages without one',
      { path: 'v', unit: { path: 'u', values: { kph: 'km/h' }, default: 'm/s' } },
      { v: 10 },
      36,
    ],
    ['a condition that holds', { path: 'a', when: 'ok == 1' }, { a: 5, ok: 1 }, 5],
    ['a condition that does not', { path: 'a', when: 'ok == 1' }, { a: 5, ok: 0 }, undefined],
    ['a condition with a capture', { path: 'a', when: 'topic.device == "truck-7"' }, { a: 5 }, 5],
    [
      'the first path whose condition holds',
      { path: [{ path: 'can', when: 'canOk == 1' }, 'gnss'] },
      { can: 50, canOk: 0, gnss: 48 },
      48,
    ],
    [
      'a path with a capture in its condition',
      { path: [{ path: 'can', when: 'topic.device == "truck-7"' }, 'gnss'] },
      { can: 50, gnss: 48 },
      50,
    ],
  ])('%s', (_name, field, message, value) => {
    expect(fieldOf(field, message)).toBe(value)
  })
})

describe('other fields', () => {
  const statusMap = { in_motion: { path: 'state', values: { DRIVING: true, IDLE: false } } }

  test.each<[unknown, boolean | undefined]>([
    ['DRIVING', true],
    ['IDLE', false],
    ['ON', undefined],
    [undefined, undefined],
  ])('motion of the state %s is %s', (state, moving) => {
    expect(mapped(statusMap, { state }).gps).toMatchObject(moving === undefined ? {} : { inMotion: moving })
    expect(Object.keys(mapped(statusMap, { state }).gps ?? {}).includes('inMotion')).toBe(
      moving !== undefined,
    )
  })

  test('motion from a bit, of a device with the right firmware', () => {
    const map = { in_motion: { path: 'din', bit: 1, when: 'fw >= 3', default: true } }
    expect(mapped(map, { din: 2, fw: 3 }).gps).toMatchObject({ inMotion: true })
    expect(mapped(map, { din: 1, fw: 3 }).gps).toMatchObject({ inMotion: false })
    expect(mapped(map, { din: 1, fw: 2 }).gps).not.toHaveProperty('inMotion')
  })

  test('an odometer of two values keeps every digit', () => {
    const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'trip', plus: 'start', unit: 'm' }
    const { signals } = mapped({ signals: [odometer] }, { start: 386_814_875, trip: '0.1' })
    expect(signals).toMatchObject([{ value: '386814.8751', valueUnit: 'KILOMETERS' }])
  })

  test('an odometer whose unit the message names', () => {
    const unit = { path: 'u', values: { mi: 'mi', km: 'km' } }
    const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit }
    expect(mapped({ signals: [odometer] }, { odo: 100, u: 'mi' }).signals).toMatchObject([
      { value: '160.9344', valueUnit: 'KILOMETERS' },
    ])
  })

  test('a speed in a unit by another field, and a heading by name', () => {
    const map = {
      speed: { path: 'v', unit: { path: 'u', values: { kn: 'knots' } } },
      heading: { path: 'dir', values: { N: 0, SW: 225 } },
    }
    expect(mapped(map, { v: 10, u: 'kn', dir: 'SW' }).gps).toMatchObject({ speed: 18.52, heading: 225 })
  })

  test.each<[Record<string, unknown>, unknown, number]>([
    [{ unit: 'ddmm', negative: 's == 1' }, '5231.002', -52.5167],
    [{ unit: 'ddmm' }, '5231.002 N', 52.5167],
    [{ unit: 'ddmm' }, 'S5231.002', -52.5167],
    [{ unit: 'ddmm', hemisphere: { path: 'ns' } }, 5231.002, -52.5167],
    [{ unit: 'dms' }, 'N 52 31.0', 52.516666667],
    [{ unit: 'dms' }, '52°31\'00.5"S', -52.516805556],
    [{ unit: 'dms' }, '-52:31:30', -52.525],
    [{ unit: 'dms' }, '33 52 10 S', -33.869444444],
    [{ unit: 'dms' }, '33:52:10s', -33.869444444],
    [{ unit: 'dms' }, '33d52m10s', 33.869444444],
    [{ unit: 'dms' }, '33d52m10sS', -33.869444444],
    [{ unit: 'dms' }, '52.5', 52.5],
    [{ unit: 'dms' }, 52.5, 52.5],
  ])('a latitude %j of %j', (field, lat, latitude) => {
    const map = { latitude: { path: 'lat', ...field }, longitude: { path: 'lon' } }
    expect(mapped(map, { lat, s: 1, ns: 'South' }).gps).toMatchObject({ latitude })
  })

  test.each([
    'N 52 31.0 S',
    'N -52 31',
    '52.5 31',
    '52 61',
    'fifty',
    '52 31.5 10',
    '0131',
    '013100N',
    '33d52m10S',
    'N 33 52 10 S',
  ])('the latitude %s is refused', (lat) => {
    const map = { latitude: { path: 'lat', unit: 'dms' }, longitude: { path: 'lon' } }
    const mapper = openMapperOf([truckSource(map)])
    expect(verdictOf(mapper.map(messageOf({ ...base, lat })))).toMatch(/BAD_VALUE/)
  })

  test.each<[Record<string, unknown>, Record<string, unknown>]>([
    [{ latitude: { path: 'a', unit: 'dms' } }, { a: '13 24 W' }],
    [{ latitude: { path: 'a', unit: 'ddmm' } }, { a: '1324.5E' }],
    [{ latitude: { path: 'a', hemisphere: { path: 'h' } } }, { a: 13, h: 'W' }],
    [{ longitude: { path: 'a', unit: 'dms' } }, { a: '33 52 10 S' }],
    [{ longitude: { path: 'a', unit: 'ddmm' } }, { a: 'N 3352.5' }],
    [{ longitude: { path: 'a', hemisphere: { path: 'h' } } }, { a: 13, h: 'South' }],
  ])('a hemisphere of the other axis is refused: %j of %j', (field, message) => {
    const map = { latitude: { path: 'lat' }, longitude: { path: 'lon' }, ...field }
    const mapper = openMapperOf([truckSource(map)])
    expect(verdictOf(mapper.map(messageOf({ ...base, ...message })))).toBe('BAD_VALUE')
  })

  test('an angle with marks of letters is a longitude', () => {
    const map = { latitude: { path: 'lat' }, longitude: { path: 'lon', unit: 'dms' } }
    expect(mapped(map, { lon: '13d24m36s' }).gps).toMatchObject({ longitude: 13.41 })
  })

  test('lists side by side are records', () => {
    const map = { time: { path: 't', format: 'ms' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } }
    const mapper = openMapperOf([truckSource(map, { each: 'track.$zip()' })])
    const track = { t: [base.ts, base.ts + 1000], lat: [52, 53], lon: [13, 14], name: 'x' }
    const result = mapper.map(messageOf({ track }))
    const places = payloadsIn(result).map(({ json }) => (JSON.parse(json) as Sent).gps)
    expect(places).toMatchObject([
      { latitude: 52, longitude: 13 },
      { latitude: 53, longitude: 14 },
    ])
    const uneven = mapper.map(messageOf({ track: { ...track, lon: [13] } }))
    expect(verdictOf(uneven)).toBe('NOT_AN_OBJECT')
  })

  test('a time with a condition', () => {
    const map = { time: { path: 'ts', format: 'ms', when: 'synced == 1', missing: 'arrival' } }
    expect(mapped(map, { synced: 1 })).toMatchObject({ signalTimestamp: base.ts })
    expect(mapped(map, { synced: 0 }).signalTimestamp).not.toBe(base.ts)
  })
})

describe('what cannot be meant is an error of the config:', () => {
  test.each<[Record<string, unknown>, RegExp]>([
    [{ path: 'a', bit: 64 }, /bit/],
    [{ path: 'a', bit: '7-4' }, /must be a bit from 0 to 63/],
    [{ path: 'a.$bit(64)' }, /needs a bit from 0 to 63/],
    [{ path: 'a', values: {} }, /at least one value/],
    [{ path: 'a', negative: 'sign = 1' }, /sign = 1/],
    [{ path: 'a', plus: 'b[' }, /b\[/],
    [{ path: 'a', plus: { path: 'b', scale: 0 } }, /must not be 0/],
    [{ value: 5, plus: 'b' }, /beside a constant/],
    [{ path: 'a', unit: { path: 'u', values: { kph: 'km/h', deg: 'deg' } } }, /different kinds/],
    [{ path: 'a', unit: { path: 'u', values: { kph: 'furlongs' } } }, /km\/h/],
    [{ path: [{ path: 'a', when: 'ok ==' }] }, /is no expression/],
    [{ path: 'a', when: 'topic.vehicle == 1' }, /has topic.vehicle/],
  ])('%j', (field, problem) => {
    expect(() => fieldOf(field, {})).toThrow(problem)
  })
})
