// Births, data and deaths of Sparkplug B, message by message. The rows are in sparkplug.cases.yaml.

import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  createSparkplugDecoder,
  sparkplugTopicOf,
  type SparkplugOptions,
} from '../../../src/mapping/sparkplug/sparkplug.ts'
import { encodeRebirth } from '../../../src/mapping/sparkplug/sparkplug-wire.ts'
import type { StatefulDecoded } from '../../../src/mapping/types.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { openPreset } from '../../support/samples.ts'
import { sparkplugPayload, types, type MetricOf, type PayloadOf } from '../../support/sparkplug-payload.ts'

const ts = 1_767_085_201_000

type Row = Omit<MetricOf, 'type'> & { type?: keyof typeof types; after?: number }
type Expected = {
  gives?: object
  records?: object[]
  ignored?: string
  omitted?: string[]
  rebirth?: string
  refused?: string
}
type Step = Expected & {
  to: string
  at?: number
  again?: boolean
  seq?: number
  metrics?: Row[]
  times?: number
  hex?: string
}
type Case = {
  name: string
  options?: Partial<SparkplugOptions>
  steps: (Step | 'born' | 'restart')[]
  stored?: string[]
  counters?: object
}

const { births, ...tables } = rowsBeside(import.meta.filename) as { births: Step[] } & Record<string, Case[]>

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
    for (const { to, seq = 0, metrics } of births) says(to, { seq, metrics: metricsOf(metrics) })
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

/** The metrics of a row, `times` with other names. */
function metricsOf(rows: readonly Row[] = [], times = 1): MetricOf[] {
  return Array.from({ length: times }, (_, index) =>
    rows.map(({ type, after, ...rest }) => ({
      ...rest,
      ...(times > 1 && { name: `${rest.name} ${index}` }),
      ...(type && { type: types[type] }),
      ...(after !== undefined && { ts: ts + after }),
    })),
  ).flat()
}

function foundIn(decoded: StatefulDecoded): Required<Omit<Expected, 'refused'>> {
  const records = decoded.kind === 'value' ? recordsIn(decoded) : []
  return {
    gives: records.length === 1 ? (records[0]?.metrics ?? {}) : {},
    records: records.map(({ time, ...rest }) => ({ after: Number(time) - ts, ...rest })),
    ignored: decoded.kind === 'ignored' ? decoded.reason : '',
    omitted: [...(decoded.kind === 'value' ? (decoded.omitted ?? []) : [])],
    rebirth: decoded.rebirth?.topic.replace('spBv1.0/Depot7/NCMD/', '') ?? '',
  }
}

describe.each(Object.entries(tables))('%s', (_table, cases) => {
  test.each(cases)('$name', ({ options, steps, stored, counters }) => {
    let world = openDecoder(options)
    for (const step of steps.flatMap((one) => (one === 'born' ? births : [one]))) {
      if (step === 'restart') world = world.reopened()
      if (typeof step === 'string') continue
      const { to, at, again = false, seq, metrics, times, hex, refused, ...expected } = step
      const payload = { ...(seq !== undefined && { seq }), metrics: metricsOf(metrics, times) }
      const decoded = world.says(to, hex === undefined ? payload : Buffer.from(hex, 'hex'), at, !again)
      const found = foundIn(decoded)
      expect(found, to).toEqual({ ...found, omitted: [], rebirth: '', ...expected })
      expect(refusalOf(decoded), to).toContain(
        refused ?? (expected.ignored === undefined ? 'value' : 'ignored'),
      )
    }
    expect([...world.stored.keys()]).toEqual(stored ?? [...world.stored.keys()])
    expect(world.decoder.counters()).toMatchObject(counters ?? {})
  })
})

describe('a payload', () => {
  test('a message without a time gives a record without a time', () => {
    const { says, born } = openDecoder()
    born()
    const bytes = sparkplugPayload({ seq: 2, metrics: [{ alias: 3, float: 10 }] })
    expect(recordsIn(says('DDATA/GW-1/truck-7', bytes))).toMatchObject([{ time: null }])
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
    ['Bytes', { type: types.bytes, raw: Buffer.from([0, 255]) }, '0x00ff'],
    ['an array', { type: types.int32Array, raw: Buffer.from([1, 0, 0, 0]) }, '0x01000000'],
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

describe('the halves of a position', () => {
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
})

test('sequence numbers run from 0 to 255 and start at 0 again', () => {
  const { says, decoder } = openDecoder()
  says('NBIRTH/GW-1', { seq: 0, metrics: metricsOf(births[0]?.metrics) })
  for (let seq = 1; seq < 600; seq += 1) {
    const decoded = says('NDATA/GW-1', { seq: seq % 256, metrics: [{ alias: 50, double: seq }] })
    expect(decoded).not.toHaveProperty('rebirth')
  }
  expect(decoder.counters()).toMatchObject({ gaps: 0, rebirths: 0 })
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
  for (const { to, seq = 0, metrics } of births) map(to, { seq, metrics: metricsOf(metrics) }, true)
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
      verb: 'DATA',
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
