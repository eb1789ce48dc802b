import { describe, expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { configOf, messageOf, openMapperOf, truckSource, type World } from '../../support/mapping-world.ts'

const full = {
  speed: { path: 'v', unit: 'km/h' },
  heading: { path: 'h' },
  signals: [
    { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' },
    { type: 'OBD_TOTAL_ENGINE_TIME', path: 'hours', unit: 'h', part: 'ENGINE' },
    { type: 'FUEL_LEVEL', path: 'fuel', value_unit: 'PERCENT' },
    { type: 'TRAILER_TEMPERATURE', path: 'cold', value_unit: 'FAHRENHEIT' },
  ],
  fields: {
    'gps.altitude': { path: 'alt', type: 'number' },
    batteryLevel: { path: 'batt', type: 'number' },
    cargoTemperature: { path: 'temp', type: 'number' },
  },
}
const reading = { ts: 1_759_999_990_000, lat: 48.8566, lon: 2.3522 }

function open(options: { map?: object; source?: object; world?: World } = {}) {
  const source = truckSource({ ...full, ...options.map }, options.source as Record<string, unknown>)
  const mapper = openMapperOf([source], options.world)
  const payload = (fields: object) => {
    const result = mapper.map(messageOf({ ...reading, ...fields }))
    if (result.kind !== 'payloads') throw new Error(JSON.stringify(result))
    return JSON.parse(result.payloads[0]?.json ?? '{}') as Sent
  }
  return { mapper, payload, counts: () => Object.fromEntries(mapper.counters().omitted) }
}

type Sent = {
  gps: Record<string, unknown>
  signals?: { type: string; value: string }[]
} & Record<string, unknown>

/** The values of a payload by the keys of the message. */
function valuesOf({ gps, signals = [], ...top }: Sent) {
  const signal = (type: string) => signals.find((one) => one.type === type)?.value
  const all = {
    v: gps['speed'],
    h: gps['heading'],
    odo: signal('OBD_LIFETIME_ODOMETER'),
    hours: signal('OBD_TOTAL_ENGINE_TIME'),
    fuel: signal('FUEL_LEVEL'),
    cold: signal('TRAILER_TEMPERATURE'),
    batt: top['batteryLevel'],
    temp: top['cargoTemperature'],
    alt: gps['altitude'],
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

describe('a value that no vehicle can have is left out', () => {
  test.each([
    ['v', 999_999, 'speed|above maximum'],
    ['v', 250.01, 'speed|above maximum'],
    ['h', 360.5, 'heading|above maximum'],
    ['h', -1, 'heading|below minimum'],
    ['odo', 526_385_151.875, 'OBD_LIFETIME_ODOMETER|above maximum'],
    ['odo', '81000000000', 'OBD_LIFETIME_ODOMETER|above maximum'],
    ['odo', '1e8', 'OBD_LIFETIME_ODOMETER|above maximum'],
    ['odo', '10000000.1', 'OBD_LIFETIME_ODOMETER|above maximum'],
    ['hours', 16_777_215, 'OBD_TOTAL_ENGINE_TIME|above maximum'],
    ['hours', 200_001, 'OBD_TOTAL_ENGINE_TIME|above maximum'],
    ['fuel', 100.4, 'FUEL_LEVEL|above maximum'],
    ['fuel', -1, 'FUEL_LEVEL|below minimum'],
    ['cold', 302.1, 'TRAILER_TEMPERATURE|above maximum'],
    ['cold', -76.1, 'TRAILER_TEMPERATURE|below minimum'],
    ['batt', 255, 'batteryLevel|above maximum'],
    ['temp', -273, 'cargoTemperature|below minimum'],
    ['alt', 32_767, 'gps.altitude|above maximum'],
  ])('%s of %s, counted as %s; the rest of the payload is sent', (key, value, reason) => {
    const { payload, counts, mapper } = open()
    const good = { v: 54, odo: 1000, batt: 50 }
    const { [key]: _bad, ...rest } = valuesOf(payload(good)) as Record<string, unknown>
    expect(valuesOf(payload({ ...good, [key]: value }))).toEqual(rest)
    expect(counts()).toEqual({ [`trucks|${reason}`]: 1 })
    const [field, why] = reason.split('|')
    expect(mapper.withheldOf('truck-7')).toEqual([
      { source: 'trucks', field, reason: why, count: 1, isSent: false, lastValue: Number(value) },
    ])
    expect(mapper.withheldOf('truck-8')).toEqual([])
  })

  test.each([
    ['v', [0, 250]],
    ['h', [0, 359.9]],
    ['odo', ['0', '9999999.9', '10000000']],
    ['hours', ['0', '200000']],
    ['fuel', ['0', '100']],
    ['cold', ['-76', '302']],
    ['batt', [0, 100]],
    ['temp', [-60, 150]],
    ['alt', [-500, 10_000]],
  ] as const)('a value of %s at its bounds is sent', (key, values) => {
    const plausibility = { odometer: { jumps: 'off' }, engine_hours: { jumps: 'off' } }
    const { payload, counts } = open({ source: { plausibility } })
    for (const value of values) expect(valuesOf(payload({ [key]: value }))).toEqual({ [key]: value })
    expect(counts()).toEqual({})
  })
})

describe('the config decides', () => {
  const wild = { v: 999_999, odo: '81000000000' }

  test('flag sends a value that is not plausible and counts it, off does neither', () => {
    const { payload, mapper, counts } = open({
      source: { plausibility: { speed: { action: 'flag' }, odometer: { action: 'off' } } },
    })
    expect(valuesOf(payload(wild))).toEqual(wild)
    expect(counts()).toEqual({})
    expect(Object.fromEntries(mapper.counters().flagged)).toEqual({ 'trucks|speed|above maximum': 1 })
    expect(mapper.withheldOf('truck-7')).toMatchObject([{ field: 'speed', isSent: true, lastValue: 999_999 }])
  })

  test('a source overrides the top level option by option', () => {
    const world = { plausibility: { speed: { max: 100, action: 'flag' }, fuel: { max: 120 } } }
    const { payload, mapper } = open({ source: { plausibility: { speed: { max: 90 } } }, world })
    expect(valuesOf(payload({ v: 95, fuel: 110 }))).toEqual({ v: 95, fuel: '110' })
    expect(Object.fromEntries(mapper.counters().flagged)).toEqual({ 'trucks|speed|above maximum': 1 })
  })

  test('a quantity named for a field has its bounds, and none has none', () => {
    const fields = {
      state: { path: 'batt', type: 'number', quantity: 'battery' },
      cargoTemperature: { path: 'temp', type: 'number', quantity: 'none' },
    }
    const { payload } = open({ map: { fields } })
    expect(payload({ batt: 101, temp: 900 })).toMatchObject({ cargoTemperature: 900 })
    expect(payload({ batt: 101 })).not.toHaveProperty('state')
  })

  test('a rule that excludes every value, or a quantity of another unit, is a problem of the config', () => {
    const problemsOf = (source: object, world: World = {}) =>
      compileSources(configOf([truckSource(full, source as Record<string, unknown>)], world)).problems
    expect(problemsOf({ plausibility: { speed: { min: 300 } } })).toEqual([
      {
        path: ['sources', 0, 'plausibility', 'speed'],
        message: 'must have `min` less than or equal to `max`.',
      },
    ])
    expect(problemsOf({}, { plausibility: { fuel: { max: -1 } } })).toEqual([
      { path: ['plausibility', 'fuel'], message: 'must have `min` less than or equal to `max`.' },
    ])
    const signals = [{ type: 'X', path: 'x', unit: 'km', quantity: 'temperature' }]
    const [problem] = compileSources(configOf([truckSource({ signals })])).problems
    expect(problem?.message).toBe('has the quantity temperature, whose values are not in KILOMETERS.')
  })

  test('bounds apply in the unit that is sent', () => {
    const mph = { speed_units: 'MILES_PER_HOUR', speed: { path: 'v' } }
    const { payload } = open({ map: mph })
    expect(valuesOf(payload({ v: 155 }))).toEqual({ v: 155 })
    expect(valuesOf(payload({ v: 156 }))).toEqual({})
    const other = open({ map: { speed_units: 'BEAUFORT', speed: { path: 'v' } } })
    expect(valuesOf(other.payload({ v: 900 }))).toEqual({ v: 900 })
  })
})

test('the memory of one device is bounded, and all values are counted in all', () => {
  const names = Array.from({ length: 40 }, (_, index) => `fuel_level_${index}`)
  const fields = Object.fromEntries(names.map((name) => [name, { path: name, type: 'number' }]))
  const { payload, mapper } = open({ map: { fields } })
  payload(Object.fromEntries(names.map((name) => [name, 101])))
  expect(mapper.withheldOf('truck-7')).toHaveLength(32)
  expect(mapper.counters().omitted.size).toBe(40)
})

test('a value that is left out has no part in the payloadId', () => {
  const { mapper } = open()
  const idOf = (fields: object) => {
    const result = mapper.map(messageOf({ ...reading, ...fields }))
    return result.kind === 'payloads' ? result.payloads[0]?.payloadId : null
  }
  expect(idOf({ v: 999_999, odo: '81000000000' })).toBe(idOf({}))
})

test('a record with nothing else to send is ignored, and the other records of its message are sent', () => {
  const records = [{ odo: 526_385_151.875 }, { odo: 1000 }, { odo: 4_294_967_294 }]
  const list = records.map((one, index) => ({ ts: reading.ts + index, ...one }))
  const mapper = openMapperOf([truckSource(full, { each: '$' })])
  const result = mapper.map(messageOf(list))
  expect(result.kind === 'payloads' && result.payloads).toHaveLength(1)
  for (const one of [list[0], list[2]])
    expect(mapper.map(messageOf([one]))).toMatchObject({
      kind: 'ignored',
      reason: 'not plausible, and no position where the mapping reads it',
    })
  const elsewhere = { ts: 1, odo: 526_385_151.875, lat: 0, lon: 0 }
  expect(mapper.map(messageOf([elsewhere]))).toMatchObject({ kind: 'ignored', reason: 'not plausible' })
  expect(mapper.map(messageOf([{ ts: 1, odo: 'x' }]))).toMatchObject({ reason: 'NOTHING_TO_SEND' })
})
