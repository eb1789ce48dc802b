import { describe, expect, test } from 'vitest'
import {
  configOf,
  messageOf,
  openMapperOf,
  payloadsIn,
  sentIn,
  truckSource,
  verdictOf,
  type World,
} from '../support/mapping-world.ts'
import { compileSources } from '../../src/mapping/compile/compile.ts'

const reading = { ts: 1_750_000_000_000, lat: 48.8566, lon: 2.3522 }

function mapperOf(rest: Record<string, unknown>, map: Record<string, unknown> = {}, world: World = {}) {
  return openMapperOf([truckSource(map, rest)], world)
}

function problemsOf(source: Record<string, unknown>) {
  return compileSources(configOf([source])).problems.map(({ path, message }) => [path.join('.'), message])
}

describe('topics', () => {
  test('of one source may be several; a capture that a topic lacks is empty', () => {
    const mapper = mapperOf({
      topic: ['by-id/{device}', 'by-route/{route}/{unit#}'],
      device: ['{device}', '{route}:{unit}'],
    })
    const deviceOf = (topic: string) => payloadsIn(mapper.map(messageOf(reading, { topic })))[0]?.device
    expect(deviceOf('by-id/7')).toBe('7')
    expect(deviceOf('by-route/3/a/b')).toBe('3:a/b')
  })

  test('that are excluded are ignored without reading their messages', () => {
    const mapper = mapperOf({ topic: 'fleet/{device}/#', exclude: ['fleet/+/commands', 'fleet/+/dump/#'] })
    const verdict = (topic: string) => verdictOf(mapper.map(messageOf('not json', { topic })))
    expect(verdict('fleet/7/commands')).toBe('excluded topic')
    expect(verdict('fleet/7/dump/1/2')).toBe('excluded topic')
    expect(verdict('fleet/7/commands/more')).toBe('NOT_JSON')
  })
})

describe('a device of a family', () => {
  const families = { truck: ['FMC6*', 'FMX640'], car: ['FMC1*'] }
  const signals = [
    { type: 'OBD_LIFETIME_ODOMETER', path: 'a', unit: 'm', families: ['truck'] },
    { type: 'OBD_LIFETIME_ODOMETER', path: 'b', unit: 'km', families: ['car'] },
    { type: 'FUEL', path: 'c' },
  ]
  const rest = { families, warn_without_model: 'odometer and engine hours' }
  const message = messageOf({ ...reading, a: 5000, b: 7, c: 50 })
  const valuesOf = (own: object, world?: World) => {
    const mapper = mapperOf({ ...rest, ...own }, { signals }, world)
    return sentIn(mapper.map(message)).signals?.map(({ value }) => value)
  }

  test('has the signals of its model, which the device table or else the source names', () => {
    expect(valuesOf({ model: 'FMC650' })).toEqual(['5', '50'])
    expect(valuesOf({ model: 'fmc130' })).toEqual(['7', '50'])
    expect(valuesOf({ model: 'FMC650' }, { table: 'device,model\ntruck-7,FMC130\n' })).toEqual(['7', '50'])
  })

  test('without a known model has no such signals, and is counted once', () => {
    const mapper = mapperOf(rest, { signals })
    expect(sentIn(mapper.map(message)).signals).toMatchObject([{ type: 'FUEL' }])
    mapper.map(message)
    expect(Object.fromEntries(mapper.counters().withoutModel)).toEqual({
      trucks: { devices: 1, what: 'odometer and engine hours' },
    })
    expect(valuesOf({ model: 'FMC65' })).toEqual(['5', '50'])
    expect(valuesOf({ model: 'FMX6400' })).toEqual(['50'])
  })

  test('must be a family that the source defines', () => {
    expect(problemsOf(truckSource({ signals }))).toEqual([
      ['sources.0.map.signals.0.families', 'names the family truck; the source has no `families`.'],
      ['sources.0.map.signals.1.families', 'names the family car; the source has no `families`.'],
    ])
  })
})

describe('a signal', () => {
  const gnss = { type: 'OBD_LIFETIME_ODOMETER', path: 'gnss', unit: 'm', origin: 'gnss' }
  const obd = { type: 'OBD_LIFETIME_ODOMETER', path: 'obd', unit: 'm' }
  const valueOf = (fields: object, signals: object[], rest = {}) =>
    sentIn(mapperOf(rest, { signals }).map(messageOf({ ...reading, ...fields }))).signals?.[0]?.value

  test('that the vehicle did not measure is sent only if `origins` allows its origin', () => {
    expect(valueOf({ gnss: 1000 }, [gnss])).toBeUndefined()
    const trip = { ...gnss, path: 'trip', origin: 'trip' }
    expect(valueOf({ gnss: 1000 }, [gnss, trip], { origins: ['trip'] })).toBeUndefined()
    expect(valueOf({ gnss: 1000 }, [gnss, trip], { origins: ['trip', 'gnss'] })).toBe('1')
  })

  test('comes from the first entry of its type and part that has a value', () => {
    const rest = { origins: ['gnss'] }
    expect(valueOf({ gnss: 1000, obd: 386_814_875 }, [obd, gnss], rest)).toBe('386814.875')
    expect(valueOf({ gnss: 1000, obd: 4_294_967_295 }, [obd, gnss], rest)).toBe('1')
    const parts = [
      { ...obd, part: 'A' },
      { ...obd, part: 'B' },
    ]
    const sent = sentIn(mapperOf({}, { signals: parts }).map(messageOf({ ...reading, obd: 1000 })))
    expect(sent.signals?.map(({ assetPart }) => assetPart)).toEqual(['A', 'B'])
  })

  test('can have values that mean “none”, alternative paths, and conditions', () => {
    const signals = [{ ...obd, path: ['x', 'obd'], absent: [0, '-'], when: 'topic.device == "truck-7"' }]
    expect(valueOf({ obd: 2000 }, signals)).toBe('2')
    expect(valueOf({ x: '-', obd: 2000 }, signals)).toBe('2')
    expect(valueOf({ x: 3000, obd: 2000 }, signals)).toBe('3')
    expect(valueOf({ x: 0, obd: '0' }, signals)).toBeUndefined()
    expect(valueOf({ obd: 2000 }, [{ ...signals[0], when: 'topic.device == "other"' }])).toBeUndefined()
  })
})

describe('extra fields', () => {
  const fields = {
    'gps.altitude': { path: 'alt', type: 'number' },
    'trip.driver.name': { path: 'driver', type: 'text' },
    'trip.open': { path: 'open', type: 'boolean' },
  }

  test('are placed by their names, and omitted without a value', () => {
    const mapper = mapperOf({}, { fields })
    const all = sentIn(mapper.map(messageOf({ ...reading, alt: 35.5, driver: 'J. "Jo"', open: 'yes' })))
    expect(all).toMatchObject({ gps: { altitude: 35.5 }, trip: { driver: { name: 'J. "Jo"' }, open: true } })
    expect(sentIn(mapper.map(messageOf(reading)))).not.toHaveProperty('trip')
  })

  test('of another type than configured are omitted and counted', () => {
    const mapper = mapperOf({}, { fields })
    expect(sentIn(mapper.map(messageOf({ ...reading, alt: 'high', open: 'maybe' })))).not.toHaveProperty(
      'trip',
    )
    expect(Object.fromEntries(mapper.counters().omitted)).toEqual({
      'trucks|gps.altitude|not a number': 1,
      'trucks|trip.open|not a boolean': 1,
    })
  })

  test('change the payloadId', () => {
    const idOf = (fuel: number) =>
      sentIn(
        mapperOf({}, { fields: { fuel: { path: 'fuel', type: 'number' } } }).map(
          messageOf({ ...reading, fuel }),
        ),
      ).payloadId
    expect(idOf(1)).toBe(idOf(1))
    expect(idOf(1)).not.toBe(idOf(2))
  })

  test('cannot have the name of a standard field of the payload', () => {
    const number = { path: 'x', type: 'number' }
    const own = { 'gps.latitude': number, signals: number, a: number, 'a.b': number }
    expect(problemsOf(truckSource({ fields: own })).map(([path]) => path)).toEqual([
      'sources.0.map.fields.gps.latitude',
      'sources.0.map.fields.signals',
      'sources.0.map.fields.a',
    ])
  })
})

describe('motion derived from the speed', () => {
  const map = { speed: { path: 's' }, in_motion: { path: 'm', from: 'speed', above: 5, below: 2 } }

  test('is used if the device sends no motion, has hysteresis, and does not change the payloadId', () => {
    const mapper = mapperOf({}, map)
    const sent = (fields: object, after: number) =>
      sentIn(mapper.map(messageOf({ ...reading, ts: reading.ts + after, ...fields })))
    expect(sent({ s: 3 }, 0).gps).toMatchObject({ inMotion: false })
    expect(sent({ s: 6 }, 1000).gps).toMatchObject({ inMotion: true })
    const moving = sent({ s: 3 }, 2000)
    expect(moving.gps).toMatchObject({ inMotion: true })
    expect(sent({ s: 3, m: 0 }, 3000).gps).toMatchObject({ inMotion: false })
    const fresh = sentIn(mapperOf({}, map).map(messageOf({ ...reading, ts: reading.ts + 2000, s: 3 })))
    expect(fresh.gps).toMatchObject({ inMotion: false })
    expect(fresh.payloadId).toBe(moving.payloadId)
  })
})

describe('nested records', () => {
  const each = [{ path: ['data', '$'] }, '$entries()', 'value']
  const mapper = mapperOf({ topic: 'api', each, device: { path: '$up.key' }, when: 'outer.key != "self"' })
  const devicesIn = (message: object) =>
    payloadsIn(mapper.map(messageOf(message, { topic: 'api' }))).map(({ device }) => device)

  test('can read the record that contains them', () => {
    const vehicles = {
      a: [reading, { ...reading, ts: reading.ts + 1 }],
      b: reading,
      self: [reading],
      count: 3,
    }
    expect(devicesIn({ data: vehicles })).toEqual(['a', 'a', 'b'])
    expect(devicesIn({ data: [vehicles, { c: reading }] })).toEqual(['a', 'a', 'b', 'c'])
    expect(devicesIn(vehicles)).toEqual(['a', 'a', 'b'])
  })

  test('can read every outer record, up to the whole message', () => {
    const mapper = mapperOf({
      topic: 'api',
      each: ['data', '$entries()', 'value'],
      device: { path: '$up.$up.id' },
      when: 'outer.key in ["gps", "history"] && outer.outer.outer.kind == "stats"',
    })
    const at = (after: number) => ({ ...reading, ts: reading.ts + after })
    const vehicles = [
      { id: 'a', gps: [at(0), at(1)], history: [], other: [at(2)] },
      { id: 'b', name: 'B', gps: at(3), history: [at(4), null, 'x'] },
    ]
    const message = messageOf({ kind: 'stats', data: vehicles }, { topic: 'api' })
    const sent = payloadsIn(mapper.map(message)).map(({ device, deviceTime }) => [device, deviceTime])
    expect(sent).toEqual([
      ['a', reading.ts],
      ['a', reading.ts + 1],
      ['b', reading.ts + 3],
      ['b', reading.ts + 4],
    ])
  })

  test('are at most a thousand in one message', () => {
    const of = (vehicles: number) =>
      mapper.map(
        messageOf(
          { data: Array.from({ length: vehicles }, (_, index) => ({ [`v${index}`]: reading, x: 1, y: 2 })) },
          { topic: 'api' },
        ),
      )
    expect(payloadsIn(of(1000))).toHaveLength(1000)
    expect(of(1001)).toMatchObject({ kind: 'unmappable', reason: 'TOO_MANY' })
    expect(of(20_000)).toMatchObject({ kind: 'unmappable', reason: 'TOO_MANY' })
  })

  test('are as many as `max_records` says, in a list and in a chain', () => {
    const list = Array.from({ length: 1500 }, (_, step) => ({ ...reading, ts: reading.ts + step }))
    const byMost = (most: number, each: unknown) =>
      openMapperOf([truckSource({}, { each, max_records: most })]).map(messageOf({ list }))
    for (const each of ['list', ['$', 'list']]) {
      expect(payloadsIn(byMost(1500, each))).toHaveLength(1500)
      expect(byMost(1499, each)).toMatchObject({
        reason: 'TOO_MANY',
        detail: 'The list has more than 1499 records (max_records of the source).',
      })
    }
  })
})

describe('a device that the table does not have', () => {
  const listed = { ...reading, id: 'listed' }
  const device = { path: 'id' }

  test('is ignored if the config says so, also where no provider is its own', () => {
    const world = {
      devices: { unknown: 'ignore' },
      table: 'device,provider\nlisted,north\n',
      providers: ['north'],
    }
    const list = messageOf([listed, { ...listed, id: 'new' }], { topic: 'x' })
    const result = mapperOf({ topic: 'x', device, each: '$' }, {}, world).map(list)
    expect(result.kind).toBe('payloads')
    expect(result.rest).toBeUndefined()
    expect(mapperOf({}, {}, world).map(messageOf(listed, { topic: 'telemetry/v1/new' }))).toMatchObject({
      kind: 'ignored',
      reason: 'unknown device',
    })
  })

  test('has its messages quarantined if the config says so, until it is listed', () => {
    const world = { devices: { unknown: 'quarantine' }, table: 'device\nlisted\n' }
    const kept = { kind: 'quarantined', device: 'new', reason: 'UNKNOWN_DEVICE' }
    const alone = mapperOf({}, {}, world).map(messageOf(listed, { topic: 'telemetry/v1/new' }))
    expect(alone).toMatchObject(kept)
    const list = messageOf([listed, { ...listed, id: 'new' }], { topic: 'x' })
    expect(mapperOf({ topic: 'x', device, each: '$' }, {}, world).map(list)).toMatchObject({
      kind: 'payloads',
      rest: [{ ...kept, records: [{ index: 1 }] }],
    })
    expect(mapperOf({ topic: 'x', device }, {}, world).map(messageOf(listed, { topic: 'x' })).kind).toBe(
      'payloads',
    )
  })
})

describe('a provider', () => {
  const world = { providers: ['north', 'south'], table: 'device,provider\nt2,north\n' }

  test('comes from the device table, else from the topic', () => {
    const mapper = mapperOf({ topic: '{fleet}/{device}', provider: '{fleet}' }, {}, world)
    const providerOf = (topic: string) => payloadsIn(mapper.map(messageOf(reading, { topic })))[0]?.provider
    expect(providerOf('south/t1')).toBe('south')
    expect(providerOf('south/t2')).toBe('north')
    expect(providerOf('nowhere/t2')).toBe('north')
  })

  test('that is not in the config makes the message unmappable, however the device is named', () => {
    for (const [rest, topic] of [
      [{ topic: '{fleet}/{device}' }, 'nowhere/t1'],
      [{ topic: '{fleet}', device: { path: 'id' } }, 'nowhere'],
    ] as const) {
      const mapper = mapperOf({ ...rest, provider: '{fleet}' }, {}, world)
      expect(verdictOf(mapper.map(messageOf({ ...reading, id: 't1' }, { topic })))).toBe('UNKNOWN_PROVIDER')
    }
  })
})

describe('values collected from several topics', () => {
  test('cannot be selected by a capture of the topic', () => {
    const source = {
      name: 'vans',
      topic: 'vans/{device}/{metric}',
      encoding: 'scalar',
      coalesce: { name: '{metric}' },
      when: 'topic.metric == "lat"',
      fix: { valid: 'topic.device != "x" && lock == "yes"' },
      extract: [{ from: 'raw', as: 'json', into: 'more', when: 'topic.metric == "raw"' }],
      map: {
        latitude: { path: 'lat' },
        longitude: { path: [{ path: 'lon', when: 'topic.metric == "lon"' }] },
        speed: { expr: 'topic.metric == "r" ? -v : v' },
        signals: [{ type: 'X', path: 'x', when: 'topic.metric == "x"' }],
        fields: { f: { path: 'f', type: 'text', when: 'topic.metric == "f"' } },
      },
    }
    expect(problemsOf(source)).toEqual(
      [
        'when',
        'fix.valid',
        'extract.0.when',
        'map.longitude.path.0.when',
        'map.speed.expr',
        'map.signals.0.when',
        'map.fields.f.when',
      ].map((place) => [
        `sources.0.${place}`,
        'uses a capture of the topic, but collected values come on several topics.',
      ]),
    )
  })
})
