// Each option of a field, as data: a field, a message, and what is sent; through the whole mapper.

import { describe, expect, test } from 'vitest'
import {
  messageOf,
  openMapperOf,
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

  test.each<[Record<string, unknown>, unknown, number]>([
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

  test('a time with a condition', () => {
    const map = { time: { path: 'ts', format: 'ms', when: 'synced == 1', missing: 'arrival' } }
    expect(mapped(map, { synced: 1 })).toMatchObject({ signalTimestamp: base.ts })
    expect(mapped(map, { synced: 0 }).signalTimestamp).not.toBe(base.ts)
  })
})

describe('what cannot be meant is an error of the config:', () => {
  test.each<[Record<string, unknown>, RegExp]>([
    [{ path: 'a.$bit(6)' }, /is an expression now: bit\(a, 6\)/],
    [{ path: 'a.$zip()' }, /is an expression now: zip\(a\)/],
    [{ path: '$previous.a' }, /is an expression now: previous.a/],
    [{ path: 'a', expr: 'b' }, /not both/],
    [{ path: 'a', values: {} }, /at least one value/],
    [{ value: 5, values: { a: 1 } }, /beside a constant/],
    [{ path: [{ path: 'a', when: 'ok ==' }] }, /is no expression/],
    [{ path: 'a', when: 'topic.vehicle == 1' }, /has topic.vehicle/],
  ])('%j', (field, problem) => {
    expect(() => fieldOf(field, {})).toThrow(problem)
  })
})
