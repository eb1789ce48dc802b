import { describe, expect, test } from 'vitest'
import { casesSchema, judgeCases } from '../../src/mapping/cases.ts'
import { configOf, truckSource, type World } from '../support/mapping-world.ts'

const topic = 'telemetry/v1/truck-7'
const good = '{"ts":1750000000000,"lat":48.1,"lon":2.2}'
const sent = { device: 'truck-7', time: 1_750_000_000_000, gps: { latitude: 48.1, longitude: 2.2 } }
const nowMs = Date.UTC(2026, 0, 1)

function judge(
  one: object,
  sources: readonly object[] = [truckSource()],
  world: World & { devices?: object } = {},
) {
  const cases = casesSchema.parse({ devices: {}, cases: [{ name: 'it', ...one }] })
  const [judged] = judgeCases(cases, { mapping: configOf(sources, world), nowMs })
  return judged?.diff
}

function problems(one: object): string[] {
  const parsed = casesSchema.safeParse({ cases: [{ name: 'it', ...one }] })
  return parsed.success ? [] : parsed.error.issues.map(({ message }) => message)
}

describe('a case', () => {
  test('passes where the payload is as expected', () => {
    expect(judge({ topic, message: good, payloads: [sent] })).toEqual([])
  })

  test('names every difference of a payload', () => {
    const wanted = {
      device: 'truck-8',
      time: 1,
      gps: { latitude: 48.1, longitude: 2.3, speed: 5 },
      signals: [{ type: 'X', value: '1' }],
    }
    expect(judge({ topic, message: good, payloads: [wanted] })).toEqual([
      'payload 1: device is "truck-7", expected "truck-8".',
      'payload 1: time is 1750000000000, expected 1.',
      'payload 1: gps.longitude is 2.2, expected 2.3.',
      'payload 1: gps.speed is missing, expected 5.',
      'payload 1: signals[0] is missing, expected {"type":"X","value":"1"}.',
    ])
  })

  test('fails for what it does not name: gps, signals, a further payload, a refusal', () => {
    const source = truckSource({ heading: { path: 'h' }, signals: [{ type: 'X', path: 'x' }] })
    const message = good.replace('}', ',"h":90,"x":3}')
    expect(judge({ topic, message, payloads: [sent] }, [source])).toEqual([
      'payload 1: gps.heading is 90, expected none.',
      'payload 1: signals[0] is {"type":"X","value":"3"}, expected none.',
    ])
    const none = { device: 'truck-7', time: 1_750_000_000_000 }
    expect(judge({ topic, message: good, payloads: [none] })).toEqual([
      'payload 1: gps is {"latitude":48.1,"longitude":2.2}, expected none.',
    ])
    const twice = {
      messages: [
        { topic, message: good },
        { topic, message: 'no' },
      ],
      payloads: [sent],
    }
    expect(judge(twice)).toEqual([expect.stringMatching(/^It was refused as NOT_JSON: /)])
    expect(judge({ topic, message: good, ignored: 'when' })).toEqual([
      expect.stringMatching(/^payload 1 was not expected: \{"payloadId"/),
      'It was to be ignored as "when". It was not.',
    ])
  })

  test('looks at further fields only where it names them', () => {
    const fields = { 'gps.altitude': { path: 'alt', type: 'number' }, load: { path: 'load', type: 'text' } }
    const message = good.replace('}', ',"alt":120,"load":"full"}')
    const source = truckSource({ fields })
    const named = { ...sent, fields: { 'gps.altitude': 120, load: 'full' } }
    expect(judge({ topic, message, payloads: [named] }, [source])).toEqual([])
    const other = { ...sent, fields: { 'gps.altitude': 121, weight: 4 } }
    expect(judge({ topic, message, payloads: [other] }, [source])).toEqual([
      'payload 1: gps.altitude is 120, expected 121.',
      'payload 1: weight is missing, expected 4.',
    ])
  })

  test('takes `arrival` for the time of a message without one, and for no other', () => {
    const source = truckSource({ time: { path: 'ts', format: 'ms', missing: 'arrival' } })
    const arrival = { ...sent, time: 'arrival' }
    const at = '2026-01-28T15:00:08Z'
    const timeless = '{"lat":48.1,"lon":2.2}'
    expect(judge({ topic, at, message: timeless, payloads: [arrival] }, [source])).toEqual([])
    const exact = { ...sent, time: Date.parse(at) }
    expect(judge({ topic, at, message: timeless, payloads: [exact] }, [source])).toEqual([])
    expect(judge({ topic, at, message: good, payloads: [arrival] }, [source])).toEqual([
      'payload 1: time is 1750000000000 by the device, expected the arrival.',
    ])
  })

  test('names the reason why a message is ignored; `when` stands for any condition', () => {
    const source = truckSource({}, { when: 'lat != null and   lon != null', retained: 'ignore' })
    const none = '{"ts":1,"lat":null}'
    for (const ignored of ['when', 'when: lat != null and lon != null'])
      expect(judge({ topic, message: none, ignored }, [source])).toEqual([])
    expect(judge({ topic, message: good, retain: true, ignored: 'retained' }, [source])).toEqual([])
    expect(judge({ topic, message: none, ignored: 'retained' }, [source])).toHaveLength(1)
    expect(judge({ topic, message: none, payloads: [sent] }, [source])).toEqual([
      expect.stringMatching(/^payload 1 did not come: /),
      expect.stringMatching(/^It was ignored as "when: /),
    ])
  })

  test('names the reason of a dead letter or of quarantine', () => {
    expect(judge({ topic, message: '{"lat":1,"lon":1}', refused: 'NO_TIME' })).toEqual([])
    expect(judge({ topic, message: '{"lat":1,"lon":1}', refused: 'NOT_JSON' })).toEqual([
      'It was to be refused as NOT_JSON, and was not.',
      expect.stringMatching(/^It was refused as NO_TIME: /),
    ])
    const future = { topic, at: '2025-06-15T14:00:00Z', message: good }
    expect(judge({ ...future, quarantined: 'FUTURE' })).toEqual([])
    expect(judge({ ...future, payloads: [sent] })).toHaveLength(2)
    expect(judge({ ...future, at: '2025-06-15T15:06:00Z', payloads: [sent] })).toEqual([])
  })

  test('may give bytes, and say who sent them', () => {
    const source = truckSource({}, { topic: 'up', device: '{clientid}/{username}/{certificate}' })
    const hex = Buffer.from(good).toString('hex')
    const who = { client: 'c', user: 'u', certificate: 'n' }
    const payloads = [{ ...sent, device: 'c/u/n' }]
    expect(judge({ topic: 'up', hex, ...who, payloads }, [source])).toEqual([])
  })

  test('of a sequence has its times, and closes what is open at its end', () => {
    const source = {
      name: 'cars',
      topic: 'cars/{device}/{name}',
      encoding: 'scalar',
      coalesce: { name: '{name}', require: ['lat', 'lon'], window: '500ms' },
      map: { latitude: { path: 'lat' }, longitude: { path: 'lon' } },
    }
    const gps = { latitude: 48.1, longitude: 2.2 }
    const payload = { device: '1', time: 'arrival', gps }
    const step = (name: string, message: string, after?: string) => ({
      topic: `cars/1/${name}`,
      message,
      ...(after ? { after } : {}),
    })
    const together = [step('lat', '48.1'), step('shift', 'D'), step('lon', '2.2', '499ms')]
    expect(judge({ messages: together, payloads: [payload] }, [source])).toEqual([])
    const apart = [step('lat', '48.1'), step('lon', '2.2', '501ms')]
    expect(judge({ messages: apart, ignored: 'incomplete' }, [source])).toEqual([])
  })

  test('begins with a mapper that knows nothing of the case before', () => {
    const source = truckSource({ speed: { path: 'v' } }, { thin: { every: '1h' } })
    const one = { name: 'a', topic, message: good, payloads: [sent] }
    const cases = casesSchema.parse({ cases: [one, { ...one, name: 'b' }] })
    const judged = judgeCases(cases, { mapping: configOf([source]), nowMs })
    expect(judged.map(({ name, passed }) => [name, passed])).toEqual([
      ['a', true],
      ['b', true],
    ])
  })

  test('has the rows of its file over the device table', () => {
    const source = truckSource(
      { signals: [{ type: 'X', path: 'x', families: ['truck'] }] },
      { families: { truck: ['FMB6*'] } },
    )
    const message = good.replace('}', ',"x":3}')
    const one = { name: 'a', topic, message, payloads: [{ ...sent, signals: [{ type: 'X', value: '3' }] }] }
    const cases = casesSchema.parse({ devices: { 'truck-7': { model: 'FMB640' } }, cases: [one] })
    const row = (model: string) => ({ find: () => ({ model }), size: 1 })
    const mapping = configOf([source])
    expect(judgeCases(cases, { mapping, devices: row('FMB120'), nowMs })[0]?.diff).toEqual([])
    const rowless = casesSchema.parse({ cases: [one] })
    expect(judgeCases(rowless, { mapping, devices: row('FMB120'), nowMs })[0]?.passed).toBe(false)
    expect(judgeCases(rowless, { mapping, devices: row('FMB640'), nowMs })[0]?.passed).toBe(true)
  })

  test('of a source with an expression says that it cannot be tried', () => {
    const source = truckSource({}, { jsonata: '$' })
    expect(judge({ topic, message: good, payloads: [sent] }, [source])).toEqual([
      expect.stringContaining('jsonata'),
    ])
  })
})

describe('a case is refused', () => {
  test.each([
    [{ topic, payloads: [sent] }, 'needs one of message, hex and messages'],
    [{ topic, message: good, hex: '00', payloads: [sent] }, 'needs one of message, hex and messages'],
    [{ message: good, payloads: [sent] }, 'needs a topic for each message'],
    [{ messages: [{ message: 'x' }], ignored: 'when' }, 'needs a topic for each message'],
    [{ messages: [{ topic }], ignored: 'when' }, 'needs message or hex in each of its messages'],
    [{ topic, message: good }, 'must say what it expects: payloads, ignored, refused or quarantined'],
    [{ topic, hex: '0', ignored: 'empty' }, 'must be pairs of hexadecimal digits'],
    [{ topic, message: good, at: 'noon', ignored: 'when' }, 'must be a time such as 2026-01-28T15:00:08Z'],
  ])('that is %j: it %s', (one, message) => {
    expect(problems(one)).toEqual([message])
  })
})
