import { describe, expect, test } from 'vitest'
import { compileSources } from '../../src/mapping/compile/compile.ts'
import {
  configOf,
  messageOf,
  openMapperOf,
  payloadsIn,
  sender,
  sentIn,
  truckSource,
  verdictOf,
} from '../support/mapping-world.ts'

const reading = { ts: 1_750_000_000_000, lat: 48.8566, lon: 2.3522 }
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm' }

function mapped(payload: unknown, map = {}, rest = {}) {
  return openMapperOf([truckSource(map, rest)]).map(messageOf(payload))
}
const verdict = (payload: unknown, map = {}, rest = {}) => verdictOf(mapped(payload, map, rest))
const gps = (payload: object, map = {}) => sentIn(mapped({ ...reading, ...payload }, map)).gps

describe('a position', () => {
  const full = {
    speed: { path: 's', unit: 'm/s' },
    heading: { path: 'h' },
    in_motion: { path: 'm' },
  }

  test('is sent with speed, heading and motion', () => {
    expect(gps({ s: 8.23, h: 95, m: 'yes' }, full)).toEqual({
      latitude: 48.8566,
      longitude: 2.3522,
      speed: 29.628,
      speedUnits: 'KILOMETERS_PER_HOUR',
      heading: 95,
      inMotion: true,
    })
  })

  test('is sent without missing and unknown values; wrong values are counted', () => {
    const bare = { latitude: 48.8566, longitude: 2.3522 }
    const mapper = openMapperOf([truckSource(full)])
    const sent = (fields: object) => sentIn(mapper.map(messageOf({ ...reading, ...fields }))).gps
    expect(sent({})).toEqual(bare)
    expect(sent({ s: null, h: null, m: null })).toEqual(bare)
    expect(mapper.counters().omitted.size).toBe(0)
    expect(sent({ s: -1, h: -1 })).toEqual(bare)
    expect(sent({ s: 'fast', h: 361, m: 'maybe' })).toEqual(bare)
    expect(sent({ s: '54,2', h: 'N' })).toEqual(bare)
    expect(Object.fromEntries(mapper.counters().omitted)).toEqual({
      'trucks|speed|negative': 1,
      'trucks|speed|not a number': 2,
      'trucks|heading|below minimum': 1,
      'trucks|heading|above maximum': 1,
      'trucks|heading|not a number': 1,
      'trucks|in_motion|not true or false': 1,
    })
  })

  test('has heading 0 for 360', () => {
    expect(gps({ h: 360 }, full)).toMatchObject({ heading: 0 })
    expect(gps({ h: -0 }, full)).toMatchObject({ heading: 0 })
    expect(gps({ h: 359.9 }, full)).toMatchObject({ heading: 359.9 })
  })

  test.each([
    [{ lat: 91, lon: 2 }, 'OUT_OF_RANGE'],
    [{ lat: -90.000_001, lon: 2 }, 'OUT_OF_RANGE'],
    [{ lat: 2, lon: 180.1 }, 'OUT_OF_RANGE'],
    [{ lat: 4_294_967_295, lon: 4_294_967_295 }, 'OUT_OF_RANGE'],
    [{ lat: '48,8566', lon: '2,3522' }, 'BAD_VALUE'],
    [{ lat: true, lon: 2 }, 'BAD_VALUE'],
    [{ lat: { deg: 48 }, lon: 2 }, 'BAD_VALUE'],
    [{ lat: 2 }, 'HALF_POSITION'],
    [{ lon: 2 }, 'HALF_POSITION'],
    [{ lat: '', lon: 2 }, 'HALF_POSITION'],
    [{}, 'NOTHING_TO_SEND'],
    [{ lat: null, lon: null }, 'NOTHING_TO_SEND'],
  ])('of %j is refused as %s, never clamped', (position, reason) => {
    expect(verdict({ ts: 1, ...position })).toBe(reason)
  })

  test('at the limits of latitude and longitude is valid', () => {
    expect(verdict({ ts: 1, lat: 89.999_999, lon: -180 })).toBe('payloads')
    expect(verdict({ ts: 1, lat: -89.999_999, lon: 180 })).toBe('payloads')
  })

  test('that is refused is reported with the value found', () => {
    expect(mapped({ ts: 1, lat: '48,8566', lon: 2 })).toMatchObject({
      source: 'trucks',
      device: 'truck-7',
      detail: 'The position "48,8566", 2 is not a pair of numbers.',
      windowKey: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
  })

  test('may be in other units, scaled, constant, or have defaults', () => {
    const map = {
      latitude: { path: 'pos.lat', unit: '1e-7deg' },
      longitude: { path: 'pos.lon', unit: '1e-7deg' },
      heading: { path: 'pos.dir', unit: '0.01deg' },
      speed: { path: 'v', scale: 0.1, default: 55 },
      in_motion: { path: 'm', default: false },
    }
    expect(gps({ pos: { lat: 556_613_783, lon: 125_840_983, dir: 19_250 } }, map)).toEqual({
      latitude: 55.6613783,
      longitude: 12.5840983,
      heading: 192.5,
      speed: 5.5,
      speedUnits: 'KILOMETERS_PER_HOUR',
      inMotion: false,
    })
    expect(gps({}, { latitude: { value: 1 }, longitude: { value: 2 } })).toEqual({
      latitude: 1,
      longitude: 2,
    })
  })

  describe('in degrees and minutes', () => {
    const map = {
      latitude: { path: 'n', unit: 'ddmm', hemisphere: { path: 'ns' } },
      longitude: { path: 'e', unit: 'ddmm', hemisphere: { path: 'ew' } },
    }
    const bare = { lat: undefined, lon: undefined }

    test.each([
      [{ n: '4851.396', ns: 'N', e: '00221.132', ew: 'E' }, 48.8566, 2.3522],
      [{ n: 3352.128, ns: 'S', e: 15112.558, ew: 'E' }, -33.8688, 151.209_3],
      [{ n: 4042.768, ns: 'n', e: 7400.36, ew: 'West' }, 40.712_8, -74.006],
      [{ n: -3352.128, ns: 'S', e: 100, ew: 'E' }, -33.8688, 1],
    ])('%j is at %d, %d', (fields, latitude, longitude) => {
      expect(gps({ ...bare, ...fields }, map)).toEqual({ latitude, longitude })
    })

    test.each([
      [{ n: 4860, ns: 'N', e: 221.132, ew: 'E' }, 'BAD_VALUE'],
      [{ n: 4851.396, e: 221.132, ew: 'E' }, 'BAD_VALUE'],
      [{ n: 4851.396, ns: '?', e: 221.132, ew: 'E' }, 'BAD_VALUE'],
      [{ n: 'fast', ns: 'N', e: 221.132, ew: 'E' }, 'BAD_VALUE'],
      [{ n: 9101, ns: 'N', e: 221.132, ew: 'E' }, 'OUT_OF_RANGE'],
      [{ ns: 'N', e: 221.132, ew: 'E' }, 'HALF_POSITION'],
      [{ ns: 'N', ew: 'E' }, 'NOTHING_TO_SEND'],
    ])('%j is refused as %s', (fields, reason) => {
      const result = mapped({ ...reading, ...bare, ...fields }, map)
      expect(result).toMatchObject({ kind: 'unmappable', reason })
    })

    test('a scale of 0.01 is refused with the unit to use instead, also with a negative sign', () => {
      for (const scale of [0.01, -0.01]) {
        const source = truckSource({ latitude: { path: 'lat', scale } })
        const { problems, sources } = compileSources(configOf([source]))
        expect(sources).toEqual([])
        expect(problems).toMatchObject([{ path: ['sources', 0, 'map', 'latitude'] }])
        expect(problems[0]?.message).toContain('Use `unit: ddmm` without a scale')
      }
    })

    test('that is read as degrees is refused with a hint', () => {
      const refused = (fields: object) => mapped({ ...reading, ...fields })
      expect(refused({ lat: 4851.396, lon: 221.132 })).toMatchObject({
        reason: 'OUT_OF_RANGE',
        detail: expect.stringContaining('use `unit: ddmm`') as string,
      })
      expect(refused({ lat: 4_851_396, lon: 221_132 })).not.toMatchObject({
        detail: expect.stringContaining('ddmm') as string,
      })
    })
  })

  test('is in motion above the threshold, if motion is derived from speed', () => {
    const map = { speed: { path: 's' }, in_motion: { from: 'speed', above: 5 } }
    expect(gps({ s: 5.1 }, map)).toMatchObject({ inMotion: true })
    expect(gps({ s: 5 }, map)).toMatchObject({ inMotion: false })
    expect(gps({}, map)).not.toHaveProperty('inMotion')
    expect(gps({ s: -1 }, map)).not.toHaveProperty('inMotion')
  })

  test('can keep another unit of speed, without conversion', () => {
    const map = { speed: { path: 's' }, speed_units: 'MILES_PER_HOUR' }
    expect(gps({ s: 40 }, map)).toMatchObject({ speed: 40, speedUnits: 'MILES_PER_HOUR' })
  })
})

describe('signals', () => {
  const signals = [odometer, { type: 'OBD_TOTAL_ENGINE_TIME', path: 'h', unit: 'ms', part: 'ENGINE' }]

  test('are decimal texts with unit and part, in the order of the config', () => {
    const sent = sentIn(mapped({ ...reading, odo: 386_814_875, h: 737_000 }, { signals })).signals
    const id: unknown = expect.stringMatching(/^[0-9a-f-]{36}$/)
    expect(sent).toEqual([
      { id, type: 'OBD_LIFETIME_ODOMETER', value: '386814.875', valueUnit: 'KILOMETERS' },
      { id, type: 'OBD_TOTAL_ENGINE_TIME', value: '0.204722', valueUnit: 'HOURS', assetPart: 'ENGINE' },
    ])
  })

  test('are sent without a position if the message has none', () => {
    const sent = sentIn(mapped({ ts: 1, odo: 1, lat: null, lon: null }, { signals }))
    expect(sent).not.toHaveProperty('gps')
    expect(sent.signals).toHaveLength(1)
  })

  test.each([4_294_967_295, 2 ** 53, '12,5', -1, true, 'n/a'])('of %j are left out, not rounded', (odo) => {
    expect(sentIn(mapped({ ...reading, odo }, { signals }))).not.toHaveProperty('signals')
    const nothing =
      odo === 4_294_967_295 ? 'not plausible, and no position where the mapping reads it' : 'NOTHING_TO_SEND'
    expect(verdict({ ts: 1, odo }, { signals })).toBe(nothing)
  })

  test('of custom types have the unit of the config, or none', () => {
    const free = [
      { type: 'FUEL_LEVEL', path: 'fuel', scale: 0.4, value_unit: 'PERCENT' },
      { type: 'TEMPERATURE', path: 't', scale: 0.1, offset: -40 },
      { type: 'CONSTANT', value: 7 },
      { type: 'DEFAULTED', path: 'no', default: '0.50' },
    ]
    const sent = sentIn(mapped({ ...reading, fuel: 201, t: 3 }, { signals: free })).signals
    expect(sent?.map(({ type, value, valueUnit }) => [type, value, valueUnit])).toEqual([
      ['FUEL_LEVEL', '80.4', 'PERCENT'],
      ['TEMPERATURE', '-39.7', undefined],
      ['CONSTANT', '7', undefined],
      ['DEFAULTED', '0.5', undefined],
    ])
  })
})

describe('a message', () => {
  test('on a topic that no source matches is unmappable, and the topic is reported', () => {
    const result = openMapperOf([truckSource()]).map(messageOf(reading, { topic: 'else/where' }))
    expect(result).toMatchObject({ kind: 'unmappable', source: null, device: null, reason: 'NO_SOURCE' })
    expect(result).toMatchObject({
      detail: expect.stringMatching(/^No source takes the topic "else\/where"\. Taken are .*\{device\}/),
    })
  })

  test.each([
    [{ lat: 1, lon: 1 }, 'NO_TIME'],
    [{ lat: 1, lon: 1, ts: null }, 'NO_TIME'],
    [{ lat: 1, lon: 1, ts: 'noon' }, 'BAD_TIME'],
    [{ lat: 1, lon: 1, ts: -1 }, 'BAD_TIME'],
    [{ lat: 1, lon: 1, ts: 1e300 }, 'BAD_TIME'],
  ])('%j is refused as %s', (payload, reason) => {
    expect(verdict(payload)).toBe(reason)
  })

  test('without a time gets its arrival time if the source allows it; an invalid time is refused', () => {
    const time = { path: 'ts', format: 'ms', missing: 'arrival' }
    expect(sentIn(mapped({ lat: 1, lon: 1 }, { time })).signalTimestamp).toBe(1_760_000_000_000)
    expect(sentIn(mapped(reading, { time })).signalTimestamp).toBe(reading.ts)
    expect(verdict({ lat: 1, lon: 1, ts: 'noon' }, { time })).toBe('BAD_TIME')
  })

  test('is ignored if `when` is false, with the condition as the reason', () => {
    const when = 'sat > 0 && topic.device != "truck-9"'
    expect(mapped({ ...reading, sat: 0 }, {}, { when })).toEqual({
      kind: 'ignored',
      source: 'trucks',
      reason: `when: ${when}`,
    })
    expect(verdict({ ...reading, sat: 5 }, {}, { when })).toBe('payloads')
  })

  test('that is a will is ignored, unless the source takes wills', () => {
    const will = messageOf(reading, { will: true })
    expect(openMapperOf([truckSource()]).map(will)).toEqual({
      kind: 'ignored',
      source: 'trucks',
      reason: 'will',
    })
    expect(verdictOf(openMapperOf([truckSource({}, { wills: 'take' })]).map(will))).toBe('payloads')
    const death = messageOf(Buffer.alloc(0), { will: true, topic: 'spBv1.0/a/NDEATH/b' })
    const yard = {
      name: 'yard',
      topic: 'spBv1.0/{a}/{verb}/{device}',
      encoding: 'sparkplug',
      map: truckSource().map,
    }
    expect(verdictOf(openMapperOf([yard]).map(death))).not.toBe('will')
    expect(verdictOf(openMapperOf([{ ...yard, wills: 'ignore' }]).map(death))).toBe('will')
    const foreign = messageOf(reading, { will: true, topic: 'status/x' })
    expect(openMapperOf([truckSource()]).map(foreign)).toEqual({
      kind: 'ignored',
      source: '',
      reason: 'will',
    })
  })

  test('notes who sent it, with its device', () => {
    const mapper = openMapperOf([truckSource()])
    mapper.map(messageOf(reading))
    expect(mapper.deviceClock('truck-7')?.sender).toBe(sender)
  })

  test('with the retain flag is mapped, unless the source ignores retained messages', () => {
    const retained = messageOf(reading, { retain: true })
    expect(verdictOf(openMapperOf([truckSource()]).map(retained))).toBe('payloads')
    const ignoring = openMapperOf([truckSource({}, { retained: 'ignore' })])
    expect(verdictOf(ignoring.map(retained))).toBe('retained')
    expect(verdictOf(ignoring.map(messageOf(reading)))).toBe('payloads')
  })

  test.each([
    ['{operator}/{vehicle}', 'a/OP1/0042/x', '0P'],
    ['{clientid}', 'a/OP1/0042/x', 'client-1'],
    ['{username}-{vehicle}', 'a/OP1/0042/x', 'user-0042'],
    ['{certificate}', 'a/OP1/0042/x', 'cn'],
    ['{identity}', 'a/OP1/0042/x', 'proved'],
    ['depot', 'a/OP1/0042/x', 'depot'],
  ])('is of the device that %s names', (device, topic, expected) => {
    const mapper = openMapperOf([truckSource({}, { topic: 'a/{operator}/{vehicle}/#', device })])
    const from = { clientId: 'client-1', userName: 'user', certificateName: 'cn', identity: 'proved' }
    const sent = sentIn(mapper.map(messageOf(reading, { topic, sender: from })))
    expect(sent.deviceIdentifier?.['id']).toBe(expected === '0P' ? 'OP1/0042' : expected)
  })

  test.each([
    [{ topic: 'a/{operator}/{vehicle}/#', device: '{operator}/{vehicle}' }, 'a//0042/x', {}, 'NO_DEVICE'],
    [{ topic: 'a/{device}' }, 'a/', {}, 'NO_DEVICE'],
    [{ topic: 'a', device: '{username}' }, 'a', {}, 'NO_DEVICE'],
    [{ topic: 'a', device: '{clientid}-{identity}' }, 'a', {}, 'NO_DEVICE'],
    [{ topic: 'a', device: '{clientid}-{certificate}' }, 'a', {}, 'NO_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', {}, 'NO_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: '' }, 'NO_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: 1.5 }, 'BAD_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: 2 ** 60 }, 'payloads'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: {} }, 'BAD_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: 'x'.repeat(257) }, 'BAD_DEVICE'],
    [{ topic: 'a/{device}' }, `a/${'x'.repeat(257)}`, {}, 'BAD_DEVICE'],
    [{ topic: 'a', device: { path: 'imei' } }, 'a', { imei: 864_636_060_329_170 }, 'payloads'],
  ])('without a usable name is refused: %j', (rest, topic, fields, expected) => {
    const mapper = openMapperOf([truckSource({}, rest)])
    expect(verdictOf(mapper.map(messageOf({ ...reading, ...fields }, { topic, sender })))).toBe(expected)
  })
})

describe('`each`', () => {
  test('selects the inner record; $ still refers to the whole message', () => {
    const result = mapped(
      { imei: 'T9', VP: reading },
      {},
      { topic: '#', each: 'VP', device: { path: '$.imei' } },
    )
    expect(sentIn(result).deviceIdentifier).toEqual({ id: 'T9' })
  })

  test('makes one payload of each record of a list, in order', () => {
    const records = [1, 2, 3].map((step) => ({ ...reading, ts: reading.ts + step }))
    const sent = payloadsIn(mapped({ records }, {}, { each: 'records' }))
    expect(sent.map(({ deviceTime }) => deviceTime)).toEqual([1, 2, 3].map((step) => reading.ts + step))
    expect(payloadsIn(mapped(records, {}, { each: '$' }))).toHaveLength(3)
  })

  test('skips the records for which `when` is false', () => {
    const records = [{ ...reading, ok: true }, { ok: false }]
    expect(payloadsIn(mapped({ records }, {}, { each: 'records', when: 'ok' }))).toHaveLength(1)
    expect(verdict({ records: [{ ok: false }] }, {}, { each: 'records', when: 'ok' })).toBe('when: ok')
    expect(verdict({ records: [] }, {}, { each: 'records' })).toBe('no records')
  })

  test('maps the good records and keeps the bad ones, one entry for each reason, which names the records', () => {
    const bad = { ...reading, lat: null }
    const outside = { ...reading, lat: 91 }
    const result = mapped({ records: [bad, reading, 7, outside, bad] }, {}, { each: 'records' })
    expect(payloadsIn(result)).toHaveLength(1)
    expect(result.rest).toMatchObject([
      {
        kind: 'unmappable',
        reason: 'HALF_POSITION',
        detail: expect.stringMatching(
          /^Record 1 of the message: There is a longitude but no latitude.* The same applies to 1 more record\.$/,
        ),
        records: [{ index: 0 }, { index: 4 }],
      },
      { reason: 'NOT_AN_OBJECT', records: [{ index: 2 }] },
      {
        reason: 'OUT_OF_RANGE',
        detail: 'Record 4 of the message: The position 91, 2.3522 is out of range.',
        records: [{ index: 3 }],
      },
    ])
  })

  test('refuses a message of bad records only, for the reason of the first', () => {
    const bad = { ...reading, lat: null }
    const result = mapped({ records: [bad, 7, bad] }, {}, { each: 'records' })
    expect(result).toMatchObject({
      kind: 'unmappable',
      reason: 'HALF_POSITION',
      records: [{ index: 0 }, { index: 2 }],
    })
    expect(result.rest).toMatchObject([{ reason: 'NOT_AN_OBJECT', records: [{ index: 1 }] }])
    expect(verdict({ records: [7] }, {}, { each: 'records' })).toBe('NOT_AN_OBJECT')
  })

  test('maps the named records of a kept message only, and none that is another one now', () => {
    const bad = { ...reading, lat: null }
    const message = messageOf({ records: [reading, bad, { ...bad, ts: 2 }], others: [bad, reading] })
    const kept = openMapperOf([truckSource({}, { each: 'records' })]).map(message).rest?.[0]
    const again = { ...message, records: kept?.records ?? [] }
    const cured = { latitude: { path: 'lon' } }
    const mended = openMapperOf([truckSource(cured, { each: 'records' })]).map(again)
    expect(payloadsIn(mended).map(({ deviceTime }) => deviceTime)).toEqual([reading.ts, 2])
    const elsewhere = openMapperOf([truckSource(cured, { each: 'others' })]).map(again)
    expect(elsewhere).toMatchObject({ reason: 'RECORD_CHANGED', records: [{ index: 1 }, { index: 2 }] })
  })

  test('refuses a message with more records than the limit of payloads', () => {
    const records = Array.from({ length: 1001 }, (_, step) => ({ ...reading, ts: step }))
    expect(verdict({ records }, {}, { each: 'records' })).toBe('TOO_MANY')
    expect(verdict({ records: records.slice(1) }, {}, { each: 'records' })).toBe('payloads')
  })

  test.each([{}, { records: null }, { records: 3 }, { records: 'x' }])(
    'that finds no record in %j refuses',
    (payload) => {
      expect(verdict(payload, {}, { each: 'records' })).toBe('NOT_AN_OBJECT')
    },
  )
})

describe('the cache of topics and devices', () => {
  test('is bounded, and evictions change no result', () => {
    // All of them have a share of the memory.
    const others = Array.from({ length: 7 }, (_, index) => ({
      ...truckSource(),
      name: `other-${index}`,
      topic: `other-${index}/{device}`,
      from: [`other-${index}`],
    }))
    const mapper = openMapperOf([truckSource(), ...others])
    const first = mapper.map(messageOf(reading))
    for (let number = 0; number < 70_000; number += 1)
      mapper.map(messageOf('', { topic: `telemetry/v1/flood-${number}` }))
    const { topics, devices } = mapper.counters()
    for (const { entries, evictions } of [topics, devices]) {
      expect(entries).toBeLessThanOrEqual(25_000)
      expect(evictions).toBeGreaterThan(0)
    }
    expect(mapper.map(messageOf(reading))).toEqual(first)
  })

  test.each(['quarantine', 'ignore'] as const)(
    'invented names take little of it, and nothing of listed devices (unknown: %s)',
    (unknown) => {
      const mapper = openMapperOf([truckSource()], { table: 'device\ntruck-7\n', devices: { unknown } })
      const topic = 'telemetry/v1/truck-7'
      const first = mapper.map(messageOf(reading, { topic }))
      for (let number = 0; number < 10_000; number += 1)
        for (const topic of [`telemetry/v1/flood-${number}`, `elsewhere/${number}`])
          mapper.map(messageOf(reading, { topic }))
      const before = mapper.counters()
      expect(before.topics.entries).toBeLessThanOrEqual(4097)
      expect(before.devices.entries).toBeLessThanOrEqual(4097)
      expect(mapper.map(messageOf(reading, { topic }))).toEqual(first)
      expect(mapper.counters().topics.misses).toBe(before.topics.misses)
    },
  )
})
