import { afterEach, describe, expect, test, vi } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { Message } from '../../../src/domain/message.ts'
import type { Mapper } from '../../../src/mapping/mapping.ts'
import { configOf, messageOf, openMapperOf, payloadIn, truckSource } from '../../support/mapping-world.ts'
import { compareBothWays } from './differential.ts'

afterEach(() => void vi.restoreAllMocks())

const map = {
  speed: { path: 'speed', unit: 'm/s' },
  heading: { path: 'heading' },
  signals: [{ type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm' }],
  fields: { driver: { path: 'driver', type: 'text' } },
}

/** The message after one of the same device: the first one of a device is parsed. */
function mapSecond(mapper: Mapper, bytes: string): ReturnType<Mapper['map']> {
  mapper.map(messageOf('{"ts":1759999000000,"lat":48.8,"lon":2.3,"odo":1000}'))
  return mapper.map(messageOf(bytes))
}

const usual =
  '{"ts":1760000000000,"lat":48.85660,"lon":2.3522,"speed":8.23,"heading":360,"odo":1500,"driver":"A"}'

describe('a usual message is not parsed, and becomes the payload that it becomes when it is parsed', () => {
  test.each([
    ['of numbers of a few digits', '8.23', '29.628'],
    ['with an exponent', '823e-2', '29.628'],
    ['with more than 15 digits', '8.2300000000000001', '29.628'],
    ['with a minus before zero', '-0', '0'],
  ])('%s', (_, written, speed) => {
    const bytes = usual.replace('8.23', written)
    const expected = payloadIn(mapSecond(openMapperOf([truckSource(map)], { fastPath: false }), bytes))
    const mapper = openMapperOf([truckSource(map)])
    mapSecond(mapper, '{"ts":1759999500000,"lat":48.8,"lon":2.3,"odo":1000}')
    const parse = vi.spyOn(JSON, 'parse')
    const payload = payloadIn(mapper.map(messageOf(bytes)))
    expect(parse).not.toHaveBeenCalled()
    expect(payload).toEqual(expected)
    expect(payload.json).toContain(`"gps":{"latitude":48.8566,"longitude":2.3522,"speed":${speed},`)
  })
})

test.each(['asset_id', 'operator', 'carrier'])(
  'text beyond ASCII in the device table is sent as it is: %s',
  (column) => {
    const table = `device,${column}\ntruck-7,K\u00d6\u4e2d\n`
    const expected = payloadIn(mapSecond(openMapperOf([truckSource(map)], { table, fastPath: false }), usual))
    expect(expected.json).toContain('K\u00d6\u4e2d')
    expect(payloadIn(mapSecond(openMapperOf([truckSource(map)], { table }), usual))).toEqual(expected)
  },
)

describe('a message is parsed', () => {
  const cases: [string, string][] = [
    ['with an escape sequence', usual.replace('"A"', '"\\u0041"')],
    ['with a key twice', usual.replace('{', '{"lat":1,')],
    ['with a number as text', usual.replace('8.23', '"8.23"')],
    ['with a value out of bounds', usual.replace('8.23', '99.5')],
    ['with a text beyond ASCII that is sent', usual.replace('"A"', '"\u00c4"')],
    ['of more than 2 KB', usual.replace('{', `{"x":"${'x'.repeat(2048)}",`)],
    ['with a counter that falls', usual.replace('1500', '10')],
    ['with a byte order mark', `\ufeff${usual}`],
    ['that ends too early', usual.slice(0, -1)],
  ]
  test.each(cases)('%s', (_, bytes) => {
    const expected = mapSecond(openMapperOf([truckSource(map)], { fastPath: false }), bytes)
    const mapper = openMapperOf([truckSource(map)])
    mapSecond(mapper, '{"ts":1759999500000,"lat":48.8,"lon":2.3,"odo":1000}')
    const parse = vi.spyOn(JSON, 'parse')
    const result = mapper.map(messageOf(bytes))
    expect(parse).toHaveBeenCalled()
    expect(result.kind).toBe(expected.kind)
    expect(payloadsOf(result)).toEqual(payloadsOf(expected))
  })
})

function payloadsOf(result: ReturnType<Mapper['map']>) {
  return result.kind === 'payloads' ? result.payloads : null
}

test('a tracker that is in another vehicle since the last start has the counters of that one', () => {
  const sent = [true, false].map((fastPath) => {
    const table = (asset: string) => `device,asset_id\ntruck-7,${asset}\n`
    const before = openMapperOf([truckSource(map)], { fastPath, table: table('T1') })
    mapSecond(before, usual)
    const after = openMapperOf([truckSource(map)], { fastPath, table: table('T2') })
    after.restore([...before.entries()])
    const ids = [900_000, 901_000].map((odo, index) =>
      after.map(messageOf(`{"ts":${1_760_000_060_000 + index * 60_000},"lat":48.8,"lon":2.3,"odo":${odo}}`)),
    )
    return [ids.map(payloadsOf), [...after.entries()].map(([key, value]) => [key, value.toString('hex')])]
  })
  expect(sent[0]).toEqual(sent[1])
})

test('the largest payload of a source has room: one long text in many fields, and many signals', () => {
  const names = Array.from({ length: 60 }, (_, index) => `field${index}`)
  const large = {
    signals: names.map((type) => ({ type, path: 'raw', scale: 1e20 })),
    fields: Object.fromEntries(names.map((name) => [name, { path: 'text', type: 'text' }])),
  }
  const bytes = `{"ts":1760000000000,"lat":48.8,"lon":2.3,"raw":123456.789,"text":"${'x'.repeat(1900)}"}`
  const rest = { topic: `telemetry/v1/${'d'.repeat(256)}` }
  const [mapped, expected] = [true, false].map((fastPath) => {
    const mapper = openMapperOf([truckSource(large)], { fastPath })
    const parse = vi.spyOn(JSON, 'parse')
    const payload = payloadIn(mapper.map(messageOf(bytes, rest)))
    expect(parse).toHaveBeenCalledTimes(fastPath ? 0 : 1)
    parse.mockRestore()
    return payload
  })
  expect(mapped).toEqual(expected)
})

test('a source with unusual messages only looks at few of them, and maps usual ones again after some', () => {
  const mapper = openMapperOf([truckSource(map)])
  mapSecond(mapper, '{"ts":1759999500000,"lat":48.8,"lon":2.3,"odo":1000}')
  for (let index = 0; index < 500; index += 1) mapper.map(messageOf('{"ts":"?"}'))
  const parse = vi.spyOn(JSON, 'parse')
  for (let index = 0; index < 100; index += 1)
    mapper.map(messageOf(`{"ts":${1_759_999_600_000 + index * 1000},"lat":48.8,"lon":2.3}`))
  expect(parse.mock.calls.length).toBeGreaterThan(0)
  expect(parse.mock.calls.length).toBeLessThanOrEqual(16)
})

test('a kept message is parsed when it is mapped again, so that nothing is remembered of it', () => {
  const mapper = openMapperOf([truckSource(map)])
  mapSecond(mapper, '{"ts":1759999500000,"lat":48.8,"lon":2.3,"odo":1000}')
  const parse = vi.spyOn(JSON, 'parse')
  const message: Message = messageOf(usual)
  mapper.map(message, false)
  expect(parse).toHaveBeenCalled()
})

describe('sources', () => {
  const planOf = (source: Record<string, unknown>) => {
    const { sources, problems } = compileSources(configOf([source]))
    expect(problems).toEqual([])
    return sources[0]?.fastPlan ?? null
  }

  test.each<[string, Record<string, unknown>]>([
    ['plain', truckSource(map)],
    ['a device in the message', truckSource(map, { topic: 'x', device: { path: 'imei' } })],
    ['conditions', truckSource(map, { when: 'sat > 3', fix: { valid: 'gps.ok and {device} != "x"' } })],
    [
      'motion from the speed',
      truckSource({ speed: { path: 'speed' }, in_motion: { from: 'speed', above: 5 } }),
    ],
    ['several paths', truckSource({ speed: { path: ['speed', 'gps."sp.eed"'] } })],
    ['local times', truckSource({ time: { path: 'ts', format: 'dmy', zone: 'device' } })],
  ])('have a plan: %s', (_, source) => {
    expect(planOf(source)).not.toBeNull()
  })

  test.each<[string, Record<string, unknown>]>([
    ['a list', truckSource(map, { each: 'records' })],
    ['another step than keys', truckSource({ speed: { path: 'speeds[0]' } })],
    ['values that mean "absent"', truckSource({ speed: { path: 'speed', absent: [-1] } })],
    ['numbers with a comma', truckSource({ speed: { path: 'speed', decimal_comma: true } })],
    ['a constant', truckSource({ speed: { value: 5 } })],
    ['a condition over a list', truckSource(map, { when: 'sats[0] > 3' })],
    ['the time of a fix', truckSource(map, { fix: { time: { path: 'fixed', format: 'ms' } } })],
    ['thinning', truckSource(map, { thin: { every: '10s' } })],
    ['other bytes than JSON', truckSource(map, { encoding: 'csv' })],
    ['a bit', truckSource({ in_motion: { path: 'din', bit: 3 } })],
    ['a bit in a path', truckSource({ in_motion: { path: 'din.$bit(3)' } })],
    ['a table of words', truckSource({ in_motion: { path: 'state', values: { on: true } } })],
    ['a sign', truckSource({ speed: { path: 'v', negative: 'back' } })],
    ['a sum', truckSource({ speed: { path: 'v', plus: 'w' } })],
    ['a difference', truckSource({ speed: { path: 'v', minus: 'w' } })],
    ['a ratio', truckSource({ speed: { path: 'v', over: 'w' } })],
    [
      'a unit in the message',
      truckSource({ speed: { path: 'v', unit: { path: 'u', values: { k: 'km/h' } } } }),
    ],
    ['a condition of a field', truckSource({ speed: { path: 'v', when: 'ok' } })],
    ['a condition of a path', truckSource({ speed: { path: [{ path: 'v', when: 'ok' }] } })],
    ['a condition of a signal', truckSource({ signals: [{ type: 'X', path: 'x', when: 'ok' }] })],
    ['a condition of the time', truckSource({ time: { path: 'ts', format: 'ms', when: 'ok' } })],
    ['a condition over a bit', truckSource(map, { when: 'din.$bit(3)' })],
    ['lists side by side', truckSource(map, { each: 'track.$zip()' })],
    ['a previous value', truckSource({ signals: [{ type: 'X', path: 'x', minus: '$previous.x' }] })],
    ['degrees and minutes', truckSource({ latitude: { path: 'lat', unit: 'ddmm' } })],
    ['a hemisphere', truckSource({ latitude: { path: 'lat', hemisphere: { path: 'ns' } } })],
    [
      'a date beside the time',
      truckSource({ time: { path: 'ts', date: { path: 'day' }, format: 'dmy', zone: 'utc' } }),
    ],
    ['an angle in a text', truckSource({ latitude: { path: 'lat', unit: 'dms' } })],
    ['words beyond ASCII', truckSource({ speed_units: 'K\u00d6' })],
  ])('have none: %s', (_, source) => {
    expect(planOf(source)).toBeNull()
  })
})

// More messages, and sources with each option of a field, are in differential.slow.test.ts.
test('hostile messages have the same result with the fast path and without it', { timeout: 120_000 }, () => {
  const report = compareBothWays({ count: 1800, seed: 5 })
  expect(report.differences).toEqual([])
  for (const [name, fast] of report.fast) expect(fast, name).toBeGreaterThan(10)
})
