import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createSparkplugDecoder, type SparkplugOptions } from '../../../src/mapping/sparkplug/sparkplug.ts'
import { sparkplugTopicOf } from '../../../src/mapping/sparkplug/sparkplug-topic.ts'
import { encodeRebirth } from '../../../src/mapping/sparkplug/sparkplug-wire.ts'
import type { StatefulDecoded } from '../../../src/mapping/types.ts'
import { openPreset } from '../../support/samples.ts'
import { sparkplugPayload, types, type MetricOf, type PayloadOf } from '../../support/sparkplug-payload.ts'

const ts = 1_767_085_201_000

const nodeMetrics: readonly MetricOf[] = [
  { name: 'bdSeq', type: types.uint64, long: 4 },
  { name: 'Node Control/Rebirth', type: types.boolean, bool: false },
  { name: 'Yard/Temperature', type: types.double, alias: 50, double: -3.5 },
]

const truckMetrics: readonly MetricOf[] = [
  { name: 'GPS/Latitude', type: types.double, alias: 1, double: 51.3127 },
  { name: 'GPS/Longitude', type: types.double, alias: 2, double: 9.4797 },
  { name: 'GPS/Speed', type: types.float, alias: 3, float: 63.7 },
  { name: 'Vehicle/Odometer', type: types.uint64, alias: 4, long: 512_340_987 },
]

/** A decoder, and functions that send messages to it. */
function openDecoder(options: Partial<SparkplugOptions> = {}) {
  const decoder = createSparkplugDecoder({ source: 'yard', ...options })
  const stored = new Map<string, Buffer>()
  return { decoder, stored, says, born, reopened }

  /** `NDATA/GW-1`, `DDATA/GW-1/crane`; times at which it arrives are counted from 0. */
  function says(what: string, payload: PayloadOf | Buffer, at = 0, live = true): StatefulDecoded {
    const bytes = Buffer.isBuffer(payload) ? payload : sparkplugPayload({ ts, ...payload })
    const decoded = decoder.forTopic(`spBv1.0/Depot7/${what}`)(bytes, at, live)
    for (const { key, value } of decoded.writes ?? []) {
      if (value === null) stored.delete(key)
      else stored.set(key, value)
    }
    return decoded
  }

  function born(): void {
    says('NBIRTH/GW-1', { seq: 0, metrics: nodeMetrics })
    says('DBIRTH/GW-1/truck-7', { seq: 1, metrics: truckMetrics })
  }

  /** The next start: another decoder, with what the store has. */
  function reopened() {
    const next = openDecoder(options)
    next.decoder.restore(stored)
    for (const [key, value] of stored) next.stored.set(key, value)
    return next
  }
}

function recordsIn(decoded: StatefulDecoded) {
  if (decoded.kind !== 'value') throw new Error(JSON.stringify(decoded))
  return (decoded.value as { records: { time: unknown; historical: boolean; metrics: object }[] }).records
}

/** The metrics of a message's only record. */
function metricsIn(decoded: StatefulDecoded) {
  const [record, ...more] = recordsIn(decoded)
  if (!record || more.length > 0) throw new Error(`not one record but ${more.length + 1}`)
  return record.metrics
}

function refusalOf(decoded: StatefulDecoded): string {
  return decoded.kind === 'refused' ? `${decoded.reason}: ${decoded.detail}` : decoded.kind
}

describe('births and data', () => {
  test('a birth also contains data', () => {
    const { says } = openDecoder()
    says('NBIRTH/GW-1', { seq: 0, metrics: nodeMetrics })
    expect(recordsIn(says('DBIRTH/GW-1/truck-7', { seq: 1, metrics: truckMetrics }))).toEqual([
      {
        time: ts,
        historical: false,
        metrics: {
          'GPS/Latitude': 51.3127,
          'GPS/Longitude': 9.4797,
          'GPS/Speed': 63.7,
          'Vehicle/Odometer': 512_340_987,
        },
      },
    ])
  })

  test('data that names its metrics by alias is read by the birth of its device, and of its node', () => {
    const { says, born } = openDecoder()
    born()
    const truck = says('DDATA/GW-1/truck-7', {
      seq: 2,
      metrics: [
        { alias: 4, long: 512_340_999 },
        { alias: 3, float: 12.3 },
      ],
    })
    expect(truck).not.toHaveProperty('rebirth')
    expect(metricsIn(truck)).toEqual({ 'Vehicle/Odometer': 512_340_999, 'GPS/Speed': 12.3 })
    expect(metricsIn(says('NDATA/GW-1', { seq: 3, metrics: [{ alias: 50, double: 1.5 }] }))).toEqual({
      'Yard/Temperature': 1.5,
    })
  })

  test('metrics of one time are one record; historical metrics are separate records', () => {
    const { says, born } = openDecoder()
    born()
    const metrics = [
      { alias: 3, float: 10, ts: ts + 2000 },
      { alias: 4, long: 7, ts: ts + 1000, historical: true },
      { alias: 4, long: 8, ts: ts + 2000 },
      { alias: 3, float: 9, ts: ts + 1000, historical: true },
      { alias: 3, float: 11, ts: ts + 2000 },
    ]
    expect(recordsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics }))).toEqual([
      { time: ts + 2000, historical: false, metrics: { 'GPS/Speed': 10, 'Vehicle/Odometer': 8 } },
      { time: ts + 1000, historical: true, metrics: { 'Vehicle/Odometer': 7, 'GPS/Speed': 9 } },
      { time: ts + 2000, historical: false, metrics: { 'GPS/Speed': 11 } },
    ])
  })

  test('a message without a time gives a record without a time', () => {
    const { says, born } = openDecoder()
    born()
    const bytes = sparkplugPayload({ seq: 2, metrics: [{ alias: 3, float: 10 }] })
    expect(recordsIn(says('DDATA/GW-1/truck-7', bytes))).toMatchObject([{ time: null }])
  })

  test('a new birth of a node replaces its aliases', () => {
    const { says, born } = openDecoder()
    born()
    says('NBIRTH/GW-1', {
      seq: 0,
      metrics: [{ name: 'Yard/Gate', type: types.boolean, alias: 50, bool: true }],
    })
    expect(metricsIn(says('NDATA/GW-1', { seq: 1, metrics: [{ alias: 50, bool: false }] }))).toEqual({
      'Yard/Gate': false,
    })
    expect(refusalOf(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 4, long: 9 }] }))).toContain(
      'NO_BIRTH',
    )
  })

  test('a compressed payload is read', () => {
    const { says, born } = openDecoder()
    born()
    const body = gzipSync(sparkplugPayload({ ts, seq: 2, metrics: [{ alias: 3, float: 10 }] }))
    const metrics = [{ name: 'algorithm', type: types.string, text: 'GZIP' }]
    expect(metricsIn(says('DDATA/GW-1/truck-7', { uuid: 'SPBV1.0_COMPRESSED', body, metrics }))).toEqual({
      'GPS/Speed': 10,
    })
  })

  test('a payload that unpacks to more than the limit of a message is refused', () => {
    const body = gzipSync(Buffer.alloc(20 * 1024 * 1024))
    const metrics = [{ name: 'algorithm', type: types.string, text: 'GZIP' }]
    const { says } = openDecoder()
    expect(refusalOf(says('NDATA/GW-1', { uuid: 'SPBV1.0_COMPRESSED', body, metrics }))).toContain(
      'TOO_LARGE: The message has more than 262144 bytes when it is unpacked',
    )
  })
})

test('a birth that cannot be read, or is too large, deletes the previous birth', () => {
  const { says, born, stored } = openDecoder({ bytesMax: 20_000 })
  born()
  says('NBIRTH/GW-2', { seq: 0, metrics: nodeMetrics })
  expect(refusalOf(says('NBIRTH/GW-2', Buffer.from('12ff', 'hex')))).toContain('TRUNCATED')
  expect(refusalOf(says('DBIRTH/GW-1/truck-7', Buffer.from('12ff', 'hex')))).toContain('TRUNCATED')
  expect([...stored.keys()]).toEqual(['sparkplug/yard/Depot7/GW-1'])
  const metrics = Array.from({ length: 100 }, (_, index) => ({ name: `m${index}`, type: types.int8, int: 1 }))
  expect(refusalOf(says('NBIRTH/GW-1', { seq: 0, metrics }))).toContain(
    'TOO_MANY: The birth of "Depot7/GW-1"',
  )
  expect(stored.size).toBe(0)
  expect(refusalOf(says('NDATA/GW-1', { seq: 1, metrics: [{ alias: 50, double: 1 }] }))).toContain('NO_BIRTH')
})

describe('values by their type', () => {
  const minusOne = 0xffff_ffff_ffff_ffffn

  test.each<[string, MetricOf, unknown]>([
    ['Int8 of one byte', { type: types.int8, int: 0xfb }, -5],
    ['Int8 with its sign extended', { type: types.int8, int: -5 }, -5],
    ['Int16', { type: types.int16, int: -300 }, -300],
    ['Int32', { type: types.int32, int: -70_000 }, -70_000],
    ['Int64', { type: types.int64, long: minusOne }, -1],
    ['Int64 of many digits', { type: types.int64, long: -9_007_199_254_740_993n }, '-9007199254740993'],
    ['Int64 at its end', { type: types.int64, long: 1n << 63n }, '-9223372036854775808'],
    ['UInt8', { type: types.uint8, int: 251 }, 251],
    ['UInt32', { type: types.uint32, int: 4_294_967_295 }, 4_294_967_295],
    [
      'UInt64 that a double holds',
      { type: types.uint64, long: 9_007_199_254_740_991n },
      9_007_199_254_740_991,
    ],
    ['UInt64 that no double holds', { type: types.uint64, long: minusOne }, '18446744073709551615'],
    ['Float', { type: types.float, float: 12.3 }, 12.3],
    ['Float of eight digits', { type: types.float, float: 0.123_456_789 }, 0.123_456_79],
    ['Double', { type: types.double, double: 12.300000190734863 }, 12.300000190734863],
    ['zero', { type: types.double, double: 0 }, 0],
    ['Boolean', { type: types.boolean, bool: false }, false],
    ['Boolean as a number', { type: types.boolean, int: 1 }, true],
    ['String', { type: types.string, text: 'Größe' }, 'Größe'],
    ['DateTime', { type: types.dateTime, long: ts }, ts],
    ['Bytes', { type: types.bytes, raw: Buffer.from([0, 255]) }, '00ff'],
    ['an array', { type: types.int32Array, raw: Buffer.from([1, 0, 0, 0]) }, '01000000'],
    ['null', { type: types.double, null: true }, null],
  ])('%s', (_, metric, expected) => {
    const { says } = openDecoder()
    const metrics = [{ name: 'v', alias: 0, ...metric }]
    expect(metricsIn(says('DBIRTH/GW-1/a', { metrics }))).toEqual({ v: expected })
    const { type: _type, ...untyped } = metric
    expect(metricsIn(says('DDATA/GW-1/a', { metrics: [{ alias: 0, ...untyped }] }))).toEqual({ v: expected })
  })

  test.each([
    ['NaN', { type: types.double, double: Number.NaN }],
    ['an infinity', { type: types.float, float: Number.NEGATIVE_INFINITY }],
    ['a data set', { type: types.dataSet }],
    ['a template', { type: types.template }],
  ])('%s is absent', (_, metric) => {
    const { says } = openDecoder()
    const metrics = [
      { name: 'v', ...metric },
      { name: 'w', type: types.int8, int: 1 },
    ]
    expect(metricsIn(says('NBIRTH/GW-1', { metrics }))).toEqual({ w: 1 })
  })

  test('a metric may have any name', () => {
    const { says } = openDecoder()
    const metrics = ['__proto__', 'constructor', 'toString', ''].map((name) => ({
      name,
      type: types.int8,
      int: 7,
    }))
    const found = metricsIn(says('NBIRTH/GW-1', { metrics: metrics.slice(0, 3) }))
    expect(Object.entries(found)).toEqual([
      ['__proto__', 7],
      ['constructor', 7],
      ['toString', 7],
    ])
    expect(Object.getPrototypeOf(found)).toBe(Object.prototype)
  })
})

describe('a position whose latitude and longitude arrive separately', () => {
  const at = (alias: number, double: number, afterMs: number): MetricOf => ({
    alias,
    double,
    ts: ts + afterMs,
  })

  test('a latitude alone is completed by the longitude that is still valid', () => {
    const { says, born } = openDecoder()
    born()
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [at(1, 51.32, 1000)] }))).toEqual({
      'GPS/Latitude': 51.32,
      'GPS/Longitude': 9.4797,
    })
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 3, metrics: [at(2, 9.48, 2000)] }))).toEqual({
      'GPS/Latitude': 51.32,
      'GPS/Longitude': 9.48,
    })
  })

  test('a latitude and a longitude shortly after each other are one position', () => {
    const { says, born } = openDecoder()
    born()
    const metrics = [at(1, 51.32, 1000), at(2, 9.48, 1003), { alias: 3, float: 5, ts: ts + 1000 }]
    expect(recordsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics }))).toEqual([
      { time: ts + 1000, historical: false, metrics: { 'GPS/Speed': 5 } },
      { time: ts + 1003, historical: false, metrics: { 'GPS/Latitude': 51.32, 'GPS/Longitude': 9.48 } },
    ])
  })

  test('a latitude and a longitude minutes apart are two positions', () => {
    const { says, born } = openDecoder()
    born()
    const metrics = [at(1, 51.32, 0), at(2, 9.48, 120_000)]
    expect(recordsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics })).map(({ metrics }) => metrics)).toEqual([
      { 'GPS/Latitude': 51.32, 'GPS/Longitude': 9.4797 },
      { 'GPS/Latitude': 51.32, 'GPS/Longitude': 9.48 },
    ])
  })

  test('a null coordinate removes the position', () => {
    const { says, born } = openDecoder()
    born()
    const gone = { seq: 2, metrics: [{ alias: 1, null: true }] }
    expect(metricsIn(says('DDATA/GW-1/truck-7', gone))).toEqual({
      'GPS/Latitude': null,
      'GPS/Longitude': null,
    })
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 3, metrics: [{ alias: 2, double: 9 }] }))).toEqual({
      'GPS/Longitude': 9,
      'GPS/Latitude': null,
    })
  })

  test('older measurements do not change the current position, nor the reverse', () => {
    const { says, born } = openDecoder()
    born()
    const before = (metric: MetricOf) => ({ ...metric, historical: true })
    const kept = [
      before(at(1, 48, -9000)),
      before({ alias: 4, long: 7, ts: ts - 9000 }),
      before(at(1, 49, -5000)),
      before(at(2, 8, -4999)),
    ]
    const decoded = says('DDATA/GW-1/truck-7', { seq: 2, metrics: kept })
    expect(recordsIn(decoded)).toEqual([
      { time: ts - 9000, historical: true, metrics: { 'Vehicle/Odometer': 7 } },
      { time: ts - 4999, historical: true, metrics: { 'GPS/Latitude': 49, 'GPS/Longitude': 8 } },
    ])
    expect(decoded).toMatchObject({ omitted: ['position|half'] })
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 3, metrics: [at(2, 9.48, 0)] }))).toMatchObject({
      'GPS/Latitude': 51.3127,
    })
  })

  test.each([
    ['lat', 'lon'],
    ['Position.lat', 'Position.lng'],
    ['LATITUDE', 'LONGITUDE'],
    ['gpsLat', 'gpsLong'],
  ])('%s and %s are halves of one', (latitude, longitude) => {
    const { says } = openDecoder()
    const metrics = [
      { name: latitude, type: types.double, double: 1 },
      { name: longitude, type: types.double, double: 2 },
    ]
    says('DBIRTH/GW-1/a', { metrics })
    expect(metricsIn(says('DDATA/GW-1/a', { metrics: [{ name: latitude, double: 3 }] }))).toEqual({
      [latitude]: 3,
      [longitude]: 2,
    })
  })

  test('after a restart a single coordinate is omitted, since the other one is unknown', () => {
    const first = openDecoder()
    first.born()
    const { says } = first.reopened()
    const metrics = [at(1, 51.32, 0), { alias: 3, float: 5, ts }]
    const decoded = says('DDATA/GW-1/truck-7', { metrics })
    expect(metricsIn(decoded)).toEqual({ 'GPS/Speed': 5 })
    expect(decoded).toMatchObject({ omitted: ['position|half'] })
  })
})

describe('data without a matching birth', () => {
  test('is refused, and a rebirth is requested from the node, once a minute', () => {
    const { says } = openDecoder()
    const data = { seq: 9, metrics: [{ alias: 4, long: 5 }] }
    expect(says('DDATA/GW-1/truck-7', data, 1000)).toEqual({
      kind: 'refused',
      reason: 'NO_BIRTH',
      detail:
        'No birth certificate of "Depot7/GW-1/truck-7" is known that explains which metric with alias 4 is.',
      rebirth: { topic: 'spBv1.0/Depot7/NCMD/GW-1', bytes: encodeRebirth(1000) },
    })
    expect(says('DDATA/GW-1/truck-7', data, 60_999)).not.toHaveProperty('rebirth')
    expect(says('DDATA/GW-2/truck-8', data, 60_999)).toHaveProperty(
      'rebirth.topic',
      'spBv1.0/Depot7/NCMD/GW-2',
    )
    expect(says('DDATA/GW-1/truck-7', data, 61_000)).toHaveProperty(
      'rebirth.topic',
      'spBv1.0/Depot7/NCMD/GW-1',
    )
  })

  test('is refused if the birth is known but not the alias', () => {
    const { says, born } = openDecoder()
    born()
    expect(refusalOf(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 77, long: 5 }] }))).toBe(
      'NO_BIRTH: The birth certificate of "Depot7/GW-1/truck-7" does not explain which metric with alias 77 is.',
    )
  })

  test('is refused if a value has another type than in the birth, since the alias may have changed', () => {
    const { says, born } = openDecoder()
    born()
    expect(refusalOf(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 4, double: 5 }] }))).toContain(
      'NO_BIRTH: The birth certificate of "Depot7/GW-1/truck-7" does not explain why the metric "Vehicle/Odometer"',
    )
  })

  test('is used if it contains names and types, and a rebirth is requested', () => {
    const { says } = openDecoder()
    const metrics = [
      { name: 'GPS/Latitude', double: 1.5 },
      { name: 'Vehicle/Odometer', type: types.uint64, long: 5 },
    ]
    const decoded = says('DDATA/GW-1/truck-7', { seq: 9, metrics })
    expect(metricsIn(decoded)).toEqual({ 'GPS/Latitude': 1.5, 'Vehicle/Odometer': 5 })
    expect(decoded).toHaveProperty('rebirth.topic', 'spBv1.0/Depot7/NCMD/GW-1')
  })

  test('of a device causes a rebirth request although the birth of the node is known', () => {
    const { says, born } = openDecoder()
    born()
    const decoded = says('DDATA/GW-1/truck-9', { seq: 2, metrics: [{ name: 'GPS/Speed', float: 1 }] })
    expect(metricsIn(decoded)).toEqual({ 'GPS/Speed': 1 })
    expect(decoded).toHaveProperty('rebirth.topic', 'spBv1.0/Depot7/NCMD/GW-1')
  })

  test('is refused if the sign of a whole number is ambiguous', () => {
    const { says } = openDecoder()
    expect(refusalOf(says('NDATA/GW-1', { metrics: [{ name: 'a', long: 5 }] }))).toBe(
      'NO_BIRTH: No birth certificate of "Depot7/GW-1" is known that explains of which type the metric "a" is.',
    )
  })
})

describe('sequence numbers', () => {
  test('run from 0 to 255 and start at 0 again', () => {
    const { says, decoder } = openDecoder()
    says('NBIRTH/GW-1', { seq: 0, metrics: nodeMetrics })
    for (let seq = 1; seq < 600; seq += 1) {
      const decoded = says('NDATA/GW-1', { seq: seq % 256, metrics: [{ alias: 50, double: seq }] })
      expect(decoded).not.toHaveProperty('rebirth')
    }
    expect(decoder.counters()).toMatchObject({ gaps: 0, rebirths: 0 })
  })

  test('a gap is counted, a rebirth is requested, and the values are used', () => {
    const { says, born, decoder } = openDecoder()
    born()
    const decoded = says('DDATA/GW-1/truck-7', { seq: 4, metrics: [{ alias: 3, float: 1 }] })
    expect(metricsIn(decoded)).toEqual({ 'GPS/Speed': 1 })
    expect(decoded).toHaveProperty('rebirth.topic', 'spBv1.0/Depot7/NCMD/GW-1')
    expect(says('NDATA/GW-1', { seq: 5, metrics: [{ alias: 50, double: 1 }] })).not.toHaveProperty('rebirth')
    expect(decoder.counters()).toMatchObject({ gaps: 1, rebirths: 1 })
  })

  test('a repeated message is no gap', () => {
    const { says, born, decoder } = openDecoder()
    born()
    for (const seq of [2, 2, 3]) says('DDATA/GW-1/truck-7', { seq, metrics: [{ alias: 3, float: 1 }] })
    expect(decoder.counters().gaps).toBe(0)
  })
})

describe('deaths', () => {
  const death = (bdSeq: number) => ({ metrics: [{ name: 'bdSeq', type: types.int64, long: bdSeq }] })

  test('of a node delete its birth and those of its devices', () => {
    const { says, born, stored } = openDecoder()
    born()
    expect(stored.size).toBe(2)
    expect(says('NDEATH/GW-1', death(4))).toMatchObject({ kind: 'ignored', reason: 'death' })
    expect(stored.size).toBe(0)
    expect(refusalOf(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 3, float: 1 }] }))).toContain(
      'NO_BIRTH',
    )
  })

  test('of an earlier connection are ignored', () => {
    const { says, born, stored } = openDecoder()
    born()
    expect(says('NDEATH/GW-1', death(3))).toEqual({ kind: 'ignored', reason: 'old death' })
    expect(stored.size).toBe(2)
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 3, float: 1 }] }))).toBeDefined()
  })

  test('of a device delete only its own birth', () => {
    const { says, born, stored } = openDecoder()
    born()
    expect(says('DDEATH/GW-1/truck-7', { seq: 2 })).toMatchObject({ kind: 'ignored', reason: 'death' })
    expect([...stored.keys()]).toEqual(['sparkplug/yard/Depot7/GW-1'])
    expect(metricsIn(says('NDATA/GW-1', { seq: 3, metrics: [{ alias: 50, double: 1 }] }))).toBeDefined()
  })
})

describe('after a restart', () => {
  test('aliases are known, and one rebirth is requested, since a birth may have been missed', () => {
    const first = openDecoder()
    first.born()
    const { says } = first.reopened()
    const decoded = says('DDATA/GW-1/truck-7', { seq: 77, metrics: [{ alias: 4, long: 6 }] })
    expect(metricsIn(decoded)).toEqual({ 'Vehicle/Odometer': 6 })
    expect(decoded).toHaveProperty('rebirth.topic', 'spBv1.0/Depot7/NCMD/GW-1')
    const next = says('DDATA/GW-1/truck-7', { seq: 78, metrics: [{ alias: 4, long: 7 }] }, 600_000)
    expect(next).not.toHaveProperty('rebirth')
  })

  test('the death of an earlier connection is still recognised', () => {
    const first = openDecoder()
    first.born()
    const { says } = first.reopened()
    expect(says('NDEATH/GW-1', { metrics: [{ name: 'bdSeq', type: types.uint64, long: 1 }] })).toEqual({
      kind: 'ignored',
      reason: 'old death',
    })
  })

  test('if state was lost, the rest is read and the loss is counted', () => {
    const first = openDecoder()
    first.born()
    const [key = '', value = Buffer.alloc(0)] = [...first.stored][1] ?? []
    for (let length = 0; length < value.length; length += 7)
      first.stored.set(`${key}-${length}`, value.subarray(0, length))
    first.stored.set(`${key}-of-another-version`, Buffer.from(String(value).replace('"v":1', '"v":2')))
    first.stored.set('sparkplug/yard/x', value)
    first.stored.set('sparkplug/yard//n', value)
    first.stored.set('sparkplug/yard/a/b/c/d', value)
    first.stored.set('sparkplug/other/Depot7/GW-1', value)
    first.stored.set('coalesce/yard/7', Buffer.from('{}'))
    const { decoder } = first.reopened()
    expect(decoder.counters()).toMatchObject({
      nodes: 1,
      devices: 1,
      damaged: Math.ceil(value.length / 7) + 4,
    })
  })

  test('after a failed write, births that were not committed are unknown', () => {
    const { says, born, decoder } = openDecoder()
    born()
    decoder.restore([])
    expect(decoder.counters()).toMatchObject({ nodes: 0, devices: 0, bytes: 0 })
    expect(refusalOf(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [{ alias: 3, float: 1 }] }))).toContain(
      'NO_BIRTH',
    )
  })
})

describe('a message that is mapped again later', () => {
  test('changes neither births nor sequence numbers', () => {
    const { says, born, decoder, stored } = openDecoder()
    born()
    const before = decoder.counters()
    const keys = [...stored]
    const again = (what: string, payload: PayloadOf) => says(what, payload, 0, false)
    expect(metricsIn(again('DDATA/GW-1/truck-7', { seq: 200, metrics: [{ alias: 3, float: 1 }] }))).toEqual({
      'GPS/Speed': 1,
    })
    expect(again('DDATA/GW-9/x', { metrics: [{ alias: 3, float: 1 }] })).not.toHaveProperty('rebirth')
    expect(metricsIn(again('NBIRTH/GW-1', { seq: 0, metrics: truckMetrics }))).toMatchObject({
      'GPS/Speed': 63.7,
    })
    expect(metricsIn(again('DBIRTH/GW-1/truck-8', { metrics: truckMetrics }))).toMatchObject({
      'GPS/Speed': 63.7,
    })
    again('NDEATH/GW-1', { metrics: [{ name: 'bdSeq', type: types.uint64, long: 4 }] })
    again('DDEATH/GW-1/truck-7', { seq: 9 })
    expect(decoder.counters()).toEqual(before)
    expect([...stored]).toEqual(keys)
    expect(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [] })).not.toHaveProperty('rebirth')
  })
})

describe('a single coordinate that is mapped again later', () => {
  const half = (alias: number, double: number, afterMs: number) => ({ alias, double, ts: ts + afterMs })

  test('is completed only by its own message, else omitted', () => {
    const { says, born } = openDecoder()
    born()
    const again = (metrics: MetricOf[]) => says('DDATA/GW-1/truck-7', { seq: 200, metrics }, 0, false)
    const both = again([half(1, 51.32, 1000), half(2, 9.48, 1003)])
    expect(recordsIn(both).map(({ metrics }) => metrics)).toEqual([
      { 'GPS/Latitude': 51.32, 'GPS/Longitude': 9.48 },
    ])
    expect(both).not.toHaveProperty('omitted')
    const alone = again([half(1, 51.9, 1000), { alias: 4, long: 7, ts: ts + 1000 }])
    expect(metricsIn(alone)).toEqual({ 'Vehicle/Odometer': 7 })
    expect(alone).toMatchObject({ omitted: ['position|half'] })
    expect(recordsIn(again([half(1, 51.9, 1000)]))).toEqual([])
    // It does not change the current position either.
    expect(metricsIn(says('DDATA/GW-1/truck-7', { seq: 2, metrics: [half(2, 9.5, 2000)] }))).toEqual({
      'GPS/Latitude': 51.3127,
      'GPS/Longitude': 9.5,
    })
  })
})

test('a single coordinate of a kept message is omitted and counted, and its odometer is sent', async () => {
  const mapper = await openPreset('sparkplug-b')
  const sender = { clientId: 'gw-1', userName: null, certificateName: null, identity: null }
  const map = (what: string, payload: PayloadOf, live: boolean) =>
    mapper.map(
      {
        topic: `spBv1.0/Depot7/${what}`,
        bytes: sparkplugPayload({ ts, ...payload }),
        qos: 1,
        retain: false,
        dup: false,
        sender,
        arrivedAt: ts + 1000,
      },
      live,
    )
  map('NBIRTH/GW-1', { seq: 0, metrics: nodeMetrics }, true)
  map('DBIRTH/GW-1/truck-7', { seq: 1, metrics: truckMetrics }, true)
  const metrics: MetricOf[] = [
    { alias: 1, double: 51.9 },
    { alias: 4, long: 512_341_000 },
  ]
  const result = map('DDATA/GW-1/truck-7', { seq: 2, metrics }, false)
  const [payload] = result.kind === 'payloads' ? result.payloads : []
  expect(JSON.parse(payload?.json ?? '{}')).toMatchObject({ signals: [{ value: '512341' }] })
  expect(JSON.parse(payload?.json ?? '{}')).not.toHaveProperty('gps')
  expect(mapper.counters().omitted.get('sparkplug-b|position|half')).toBe(1)
})

describe('topics', () => {
  test.each([
    ['spBv1.0/Depot7/NCMD/GW-1', 'command'],
    ['spBv1.0/Depot7/DCMD/GW-1/truck-7', 'command'],
    ['spBv1.0/STATE/scada', 'host state'],
    ['STATE/scada', 'host state'],
  ])('%s is ignored', (topic, reason) => {
    const { decoder } = openDecoder()
    expect(decoder.forTopic(topic)(Buffer.from('{"online":true}'), 0, true)).toEqual({
      kind: 'ignored',
      reason,
    })
  })

  test.each([
    'spBv1.0',
    'spBv1.0/Depot7',
    'spBv1.0/Depot7/NDATA',
    'spBv1.0/Depot7/NDATA/GW-1/truck-7',
    'spBv1.0/Depot7/DDATA/GW-1',
    'spBv1.0/Depot7/DDATA/GW-1/truck/7',
    'spBv1.0/Depot7/XDATA/GW-1',
    'spBv1.0//NDATA/GW-1',
    'spBv1.0/Depot7/NDATA/',
    'telemetry/v1/truck-7',
  ])('%s is not a topic of Sparkplug', (topic) => {
    expect(sparkplugTopicOf(topic)).toBeNull()
    const { decoder } = openDecoder()
    expect(refusalOf(decoder.forTopic(topic)(Buffer.alloc(4), 0, true))).toBe(
      'BAD_FRAME: The topic is not a topic of Sparkplug B.',
    )
  })

  test('leading levels are skipped, and are part of the command topic', () => {
    expect(sparkplugTopicOf('plant/spBv1.0/Depot7/DDATA/GW-1/truck-7')).toEqual({
      verb: 'DDATA',
      nodeName: 'Depot7/GW-1',
      device: 'truck-7',
      commandTopic: 'plant/spBv1.0/Depot7/NCMD/GW-1',
    })
  })
})

test('a rebirth request is the command of the specification', () => {
  expect(encodeRebirth(ts)).toEqual(
    sparkplugPayload({
      ts,
      metrics: [{ name: 'Node Control/Rebirth', ts, type: types.boolean, bool: true }],
    }),
  )
})
