import { describe, expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { sourcesSchema } from '../../../src/mapping/config.ts'
import { configOf, truckSource } from '../../support/mapping-world.ts'

function problemsOf(sources: readonly unknown[], world = {}): [string, string][] {
  return compileSources(configOf(sources, world)).problems.map(({ path, message }) => [
    path.join('.'),
    message,
  ])
}

describe('the sources of a config', () => {
  test('of the documented example have no problem', () => {
    const source = {
      name: 'trucks',
      topic: 'telemetry/v1/{device}',
      map: {
        time: { path: 'ts', format: 'ms' },
        latitude: { path: 'gps.lat' },
        longitude: { path: 'gps.lon' },
        speed: { path: 'gps.speed', unit: 'km/h' },
        heading: { path: 'gps.heading' },
        in_motion: { path: 'gps.moving' },
        signals: [
          { type: 'OBD_LIFETIME_ODOMETER', path: 'odometer.value', unit: 'km' },
          { type: 'OBD_TOTAL_ENGINE_TIME', path: 'engineHours.value', unit: 'h', part: 'ENGINE' },
        ],
      },
    }
    expect(problemsOf([source])).toEqual([])
  })

  test('may name only origins and families that they have', () => {
    const signal = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km', origin: 'gnss' }
    const families = { truck: ['FMB6*'] }
    expect(problemsOf([truckSource({ signals: [signal] }, { origins: ['gnss'] })])).toEqual([])
    expect(problemsOf([truckSource({ signals: [signal] }, { origins: ['gnss', 'gps'] })])).toEqual([
      ['sources.0.origins.1', 'names the origin "gps"; known are gnss. Did you mean "gnss"?'],
    ])
    expect(problemsOf([truckSource({}, { origins: ['gnss'] })])).toEqual([
      ['sources.0.origins.0', 'names the origin "gnss"; no signal of the source has an `origin`.'],
    ])
    expect(
      problemsOf([truckSource({ signals: [{ ...signal, families: ['trucks'] }] }, { families })]),
    ).toEqual([
      ['sources.0.map.signals.0.families', 'names the family trucks; known are truck. Did you mean "truck"?'],
    ])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ path: 'fuel[', type: 'number' }, 'in its brackets at position 6 of "fuel["'],
    [{ path: 'fuel', type: 'text', unit: 'km/h' }, 'which need the type number, not text'],
    [
      { path: 'fuel', type: 'number', scale: 1e300 },
      'has the number 1e+300, which is too large or too small',
    ],
  ])('with an extra field that cannot be read have a problem: %j', (field, message) => {
    expect(problemsOf([truckSource({ fields: { fuel: field } })])).toEqual([
      ['sources.0.map.fields.fuel', expect.stringContaining(message)],
    ])
  })

  test('with an unknown function have the one that is meant, in whole sentences', () => {
    const unknown = (expr: string) => problemsOf([truckSource({ speed: { expr, unit: 'km/h' } })])
    expect(unknown('flor(x)')).toEqual([
      ['sources.0.map.speed', 'has the unknown function flor(). Did you mean "floor"?'],
    ])
    expect(unknown('x.bas64decode()')).toEqual([
      ['sources.0.map.speed', 'has the unknown function bas64decode().'],
    ])
  })

  test('have all their problems reported at once, each with its position', () => {
    const sources = [
      truckSource(
        { speed: { path: 'gps..speed' }, heading: { path: 'a b' } },
        { when: 'lat = 1', each: '[' },
      ),
      truckSource({}, { topic: 'telemetry/v1/{truck}', device: '{truk}', when: 'lat = 1', each: '[' }),
      truckSource({}, { name: 'third', topic: 'a/#/b' }),
    ]
    expect(problemsOf(sources, { devices: { unknown: 'quarantine' } })).toEqual([
      ['sources.0.each', expect.stringContaining('needs a number such as [0]')],
      ['sources.0.when', expect.stringContaining('values are compared with ==')],
      ['sources.0.map.speed', 'has an empty key at position 5 of "gps..speed".'],
      ['sources.0.map.heading', expect.stringContaining('belongs in a quoted key')],
      ['sources.1.name', 'must be unique: "trucks" is the name of another source too.'],
      [
        'sources.1.topic',
        'is never reached: the source "trucks" above takes the same messages, by the same `when`.',
      ],
      ['sources.1.each', expect.stringContaining('needs a number such as [0]')],
      ['sources.1.when', expect.stringContaining('values are compared with ==')],
      ['sources.1.device', expect.stringContaining('names {truk}, which is neither a capture')],
      ['sources.2.topic', 'may have "#" only as its last level.'],
    ])
  })

  test('with more $up than levels of `each` are refused', () => {
    const own = { each: ['data', '$up.x'], device: { path: '$up.$up.$up.id' }, when: 'outer.outer.a == 1' }
    expect(problemsOf([truckSource({ speed: { path: ['$up.s', '$up.$up.$up.s'] } }, own)])).toEqual([
      ['sources.0.device.path', 'goes 3 levels out with $up, but there are only 2.'],
      ['sources.0.map.speed.path', 'goes 3 levels out with $up, but there are only 2.'],
    ])
    const extract = [{ from: '$up.a', as: 'json', into: 'a' }]
    expect(problemsOf([truckSource({}, { each: 'data', when: 'outer.a == 1', extract })])).toEqual([
      ['sources.0.when', 'goes 1 level out with $up, but there is no record around it.'],
      ['sources.0.extract.0', 'goes 1 level out with $up, but there is no record around it.'],
    ])
  })

  test.each([
    [{ latitude: undefined, longitude: undefined }, 'map', 'must have latitude and longitude, or signals'],
    [{ longitude: undefined }, 'map.latitude', 'needs longitude too'],
    [{ latitude: undefined }, 'map.longitude', 'needs latitude too'],
    [{ latitude: {} }, 'map.latitude', 'needs a path, an expression or a value'],
    [{ latitude: { path: 'lat', value: 3 } }, 'map.latitude', 'a path, an expression or a value, not both'],
    [{ speed: { path: 's', unit: 'm/s' }, speed_units: 'KNOTS' }, 'map.speed.unit', 'converts to km/h'],
    [{ in_motion: { from: 'speed', above: 5 } }, 'map.in_motion', 'needs speed too'],
    [{ speed: { path: 's' }, in_motion: { from: 'speed' } }, 'map.in_motion', 'needs "above"'],
    [{ in_motion: { above: 5 } }, 'map.in_motion', 'without "from: speed"'],
    [
      { speed: { path: 's' }, in_motion: { from: 'speed', above: 5, value: true } },
      'map.in_motion',
      'cannot have another value',
    ],
    [{ speed: { path: 's' }, in_motion: { from: 'speed', above: 5, below: 6 } }, 'map.in_motion', '"below"'],
    [{ time: { format: 'ms' } }, 'map.time', 'needs a path'],
    [{ time: { format: 'arrival', path: 'ts' } }, 'map.time', 'does not read'],
    [{ time: { format: 'ms', path: 'ts', zone: 'utc' } }, 'map.time', 'which the format ms does not read'],
    [
      { signals: [{ type: 'OBD_LIFETIME_ODOMETER', path: 'o', unit: 'h' }] },
      'map.signals.0',
      'is in KILOMETERS',
    ],
    [
      { signals: [{ type: 'X', path: 'o', unit: 'm', value_unit: 'MILES' }] },
      'map.signals.0',
      'becomes KILOMETERS',
    ],
    [{ signals: [{ type: 'X', value: '1,5' }] }, 'map.signals.0', 'not a decimal number'],
    [{ signals: [{ type: 'X' }] }, 'map.signals.0', 'needs a path, an expression or a value'],
    ...[{ scale: 2 }, { offset: 2 }, { quantity: 'none' }, { unit: 'mph' }].map(
      (number): [Record<string, unknown>, string, string] => [
        { fields: { x: { path: 'x', type: 'text', ...number } } },
        'map.fields.x',
        'need the type number, not text',
      ],
    ),
  ])('that map %j are told so at %s', (map, path, message) => {
    expect(problemsOf([truckSource(map)])).toEqual([[`sources.0.${path}`, expect.stringContaining(message)]])
  })

  test('that derive position fields without a position are refused', () => {
    const map = {
      latitude: undefined,
      longitude: undefined,
      speed: { path: 's' },
      signals: [{ type: 'X', path: 'x' }],
    }
    expect(problemsOf([truckSource(map)])).toEqual([
      ['sources.0.map.speed', expect.stringContaining('with a position only')],
    ])
  })

  test('without a device in the topic must configure how the device is named', () => {
    expect(problemsOf([truckSource({}, { topic: 'fleet' })])).toEqual([
      ['sources.0.device', expect.stringContaining('is required, since the topic has no {device}')],
    ])
    for (const device of ['{clientid}', '{username}', '{certificate}', 'fixed', { path: 'imei' }])
      expect(problemsOf([truckSource({}, { topic: 'fleet', device })])).toEqual([])
    expect(problemsOf([truckSource({}, { topic: 'fleet', device: '{clientid' })])).toHaveLength(1)
    expect(problemsOf([truckSource({}, { topic: 'fleet', device: 'a}b' })])).toHaveLength(1)
    expect(problemsOf([truckSource({}, { topic: 'fleet', device: { path: 'a..b' } })])).toHaveLength(1)
  })

  test.each([
    truckSource({ speed: { path: 's', unit: 'kmh' } }),
    truckSource({ speed: { path: 's', scale: 0 } }),
    truckSource({ time: { path: 't', format: 'unix' } }),
    truckSource({ altitude: { path: 'alt' } }),
    truckSource({}, { encoding: 'xml' }),
    { name: 'x', topic: 'x' },
  ])('with an unknown word are refused by the schema: %j', (source) => {
    expect(sourcesSchema.safeParse([source]).success).toBe(false)
  })
})

test.each([
  { type: 'TYRE_{wheel}', path: 'p' },
  { type: 'TYRE', path: 'p', part: 'WHEEL_{wheel}' },
])('a placeholder that would be sent as it is written is a problem: %j', (signal) => {
  const { success, error } = sourcesSchema.safeParse([truckSource({ signals: [signal] })])
  expect(success).toBe(false)
  expect(error?.issues[0]?.message).toMatch(/^is sent as it is written/)
})
