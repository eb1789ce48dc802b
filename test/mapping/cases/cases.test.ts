import { describe, expect, test } from 'vitest'
import { casesSchema } from '../../../src/mapping/cases/case-schema.ts'
import { runCases } from '../../../src/mapping/cases/cases.ts'
import { configOf, truckSource, type World } from '../../support/mapping-world.ts'

const topic = 'telemetry/v1/truck-7'
const good = '{"ts":1750000000000,"lat":48.1,"lon":2.2}'
const sent = { device: 'truck-7', time: 1_750_000_000_000, gps: { latitude: 48.1, longitude: 2.2 } }
const nowMs = Date.UTC(2026, 0, 1)

async function judge(
  one: object,
  sources: readonly object[] = [truckSource()],
  world: World & { devices?: object } = {},
) {
  const cases = casesSchema.parse({ devices: {}, cases: [{ name: 'it', ...one }] })
  const [judged] = runCases(cases, { mapping: configOf(sources, world), nowMs })
  return judged?.diff
}

function problems(one: object): string[] {
  const parsed = casesSchema.safeParse({ cases: [{ name: 'it', ...one }] })
  return parsed.success ? [] : parsed.error.issues.map(({ message }) => message)
}

describe('a case', () => {
  test('passes when the payload is as expected', async () => {
    expect(await judge({ topic, message: good, payloads: [sent] })).toEqual([])
  })

  test('names every difference of a payload', async () => {
    const wanted = {
      device: 'truck-8',
      time: 1,
      gps: { latitude: 48.1, longitude: 2.3, speed: 5 },
      signals: [{ type: 'X', value: '1' }],
    }
    expect(await judge({ topic, message: good, payloads: [wanted] })).toEqual([
      'payload 1: device is "truck-7", expected "truck-8".',
      'payload 1: time is 1750000000000, expected 1.',
      'payload 1: gps.longitude is 2.2, expected 2.3.',
      'payload 1: gps.speed is missing, expected 5.',
      'payload 1: signals[0] is missing, expected {"type":"X","value":"1"}.',
    ])
  })

  test('fails for gps, signals, payloads and refusals that it does not name', async () => {
    const source = truckSource({ heading: { path: 'h' }, signals: [{ type: 'X', path: 'x' }] })
    const message = good.replace('}', ',"h":90,"x":3}')
    expect(await judge({ topic, message, payloads: [sent] }, [source])).toEqual([
      'payload 1: gps.heading is 90, expected none.',
      'payload 1: signals[0] is {"type":"X","value":"3"}, expected none.',
    ])
    const none = { device: 'truck-7', time: 1_750_000_000_000 }
    expect(await judge({ topic, message: good, payloads: [none] })).toEqual([
      'payload 1: gps is {"latitude":48.1,"longitude":2.2}, expected none.',
    ])
    const twice = {
      messages: [
        { topic, message: good },
        { topic, message: 'no' },
      ],
      payloads: [sent],
    }
    expect(await judge(twice)).toEqual([expect.stringMatching(/^The message was refused as NOT_JSON: /)])
    expect(await judge({ topic, message: good, ignored: 'when' })).toEqual([
      expect.stringMatching(/^payload 1 is not expected: \{"payloadId"/),
      'The message was not ignored. Expected: ignored as "when".',
    ])
  })

  test('has properties of MQTT 5, of one message or of each', async () => {
    const source = truckSource(
      {},
      { topic: 'up', device: '{user.vin}', when: 'packet.content_type == "gps"' },
    )
    const one = { topic: 'up', message: good, user_properties: { vin: 'truck-7' }, content_type: 'gps' }
    expect(await judge({ ...one, payloads: [sent] }, [source])).toEqual([])
    expect(await judge({ ...one, content_type: 'x', ignored: 'when' }, [source])).toEqual([])
    const messages = [one, { ...one, user_properties: { vin: 'truck-8' } }]
    const payloads = [sent, { ...sent, device: 'truck-8' }]
    expect(await judge({ messages, payloads }, [source])).toEqual([])
    const { user_properties: _, ...unnamed } = one
    expect(await judge({ ...unnamed, refused: 'NO_DEVICE' }, [source])).toEqual([])
    expect(problems({ ...one, user_properties: { vin: 7 }, ignored: 'x' })).not.toEqual([])
  })

  test('compares only the extra fields that it names', async () => {
    const fields = { 'gps.altitude': { path: 'alt', type: 'number' }, load: { path: 'load', type: 'text' } }
    const message = good.replace('}', ',"alt":120,"load":"full"}')
    const source = truckSource({ fields })
    const named = { ...sent, fields: { 'gps.altitude': 120, load: 'full' } }
    expect(await judge({ topic, message, payloads: [named] }, [source])).toEqual([])
    const other = { ...sent, fields: { 'gps.altitude': 121, weight: 4 } }
    expect(await judge({ topic, message, payloads: [other] }, [source])).toEqual([
      'payload 1: gps.altitude is 120, expected 121.',
      'payload 1: weight is missing, expected 4.',
    ])
  })

  test('accepts `arrival` only for a message without a time', async () => {
    const source = truckSource({ time: { path: 'ts', format: 'ms', missing: 'arrival' } })
    const arrival = { ...sent, time: 'arrival' }
    const at = '2026-01-28T15:00:08Z'
    const timeless = '{"lat":48.1,"lon":2.2}'
    expect(await judge({ topic, at, message: timeless, payloads: [arrival] }, [source])).toEqual([])
    const exact = { ...sent, time: Date.parse(at) }
    expect(await judge({ topic, at, message: timeless, payloads: [exact] }, [source])).toEqual([])
    expect(await judge({ topic, at, message: good, payloads: [arrival] }, [source])).toEqual([
      'payload 1: time is 1750000000000 from the device, expected the arrival time.',
    ])
  })

  test('names the reason why a message is ignored; `when` stands for any condition', async () => {
    const source = truckSource({}, { when: 'lat != null && lon != null', retained: 'ignore' })
    const none = '{"ts":1,"lat":null}'
    for (const ignored of ['when', 'when: lat != null && lon != null'])
      expect(await judge({ topic, message: none, ignored }, [source])).toEqual([])
    expect(await judge({ topic, message: good, retain: true, ignored: 'retained' }, [source])).toEqual([])
    expect(await judge({ topic, message: none, ignored: 'retained' }, [source])).toHaveLength(1)
    expect(await judge({ topic, message: none, payloads: [sent] }, [source])).toEqual([
      expect.stringMatching(/^payload 1 is missing, expected /),
      expect.stringMatching(/^The message was ignored as "when: /),
    ])
  })

  test('names the reason of a dead letter or of quarantine', async () => {
    expect(await judge({ topic, message: '{"lat":1,"lon":1}', refused: 'NO_TIME' })).toEqual([])
    expect(await judge({ topic, message: '{"lat":1,"lon":1}', refused: 'NOT_JSON' })).toEqual([
      'The message was not refused. Expected: refused as NOT_JSON.',
      expect.stringMatching(/^The message was refused as NO_TIME: /),
    ])
    const future = { topic, at: '2025-06-15T14:00:00Z', message: good }
    expect(await judge({ ...future, quarantined: 'FUTURE' })).toEqual([])
    expect(await judge({ ...future, payloads: [sent] })).toHaveLength(2)
    expect(await judge({ ...future, at: '2025-06-15T15:06:00Z', payloads: [sent] })).toEqual([])
  })

  test('may have bytes and a sender', async () => {
    const source = truckSource({}, { topic: 'up', device: '{clientid}/{username}/{certificate}/{identity}' })
    const hex = Buffer.from(good).toString('hex')
    const who = { client: 'c', user: 'u', certificate: 'n', identity: 'i' }
    const payloads = [{ ...sent, device: 'c/u/n/i' }]
    expect(await judge({ topic: 'up', hex, ...who, payloads }, [source])).toEqual([])
  })

  test('with a sequence has its times, and closes open records at the end', async () => {
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
    expect(await judge({ messages: together, payloads: [payload] }, [source])).toEqual([])
    const apart = [step('lat', '48.1'), step('lon', '2.2', '501ms')]
    expect(await judge({ messages: apart, ignored: 'incomplete' }, [source])).toEqual([])
  })

  test('starts with an empty state', async () => {
    const source = truckSource({ speed: { path: 'v' } }, { thin: { every: '1h' } })
    const one = { name: 'a', topic, message: good, payloads: [sent] }
    const cases = casesSchema.parse({ cases: [one, { ...one, name: 'b' }] })
    const judged = runCases(cases, { mapping: configOf([source]), nowMs })
    expect(judged.map(({ name, passed }) => [name, passed])).toEqual([
      ['a', true],
      ['b', true],
    ])
  })

  test('uses the rows of its file before the device table', async () => {
    const source = truckSource(
      { signals: [{ type: 'X', path: 'x', families: ['truck'] }] },
      { families: { truck: ['FMB6*'] } },
    )
    const message = good.replace('}', ',"x":3}')
    const one = { name: 'a', topic, message, payloads: [{ ...sent, signals: [{ type: 'X', value: '3' }] }] }
    const cases = casesSchema.parse({ devices: { 'truck-7': { model: 'FMB640' } }, cases: [one] })
    const row = (model: string) => ({ find: () => ({ model }), size: 1 })
    const mapping = configOf([source])
    const judged = (rows: typeof cases, model: string) =>
      runCases(rows, { mapping, devices: row(model), nowMs })
    expect(judged(cases, 'FMB120')[0]?.diff).toEqual([])
    const rowless = casesSchema.parse({ cases: [one] })
    expect(judged(rowless, 'FMB120')[0]?.passed).toBe(false)
    expect(judged(rowless, 'FMB640')[0]?.passed).toBe(true)
  })
})

describe('a case is refused', () => {
  test.each([
    [{ topic, payloads: [sent] }, 'needs exactly one of message, hex and messages'],
    [{ topic, message: good, hex: '00', payloads: [sent] }, 'needs exactly one of message, hex and messages'],
    [{ message: good, payloads: [sent] }, 'needs a topic for each message'],
    [{ messages: [{ message: 'x' }], ignored: 'when' }, 'needs a topic for each message'],
    [{ messages: [{ topic }], ignored: 'when' }, 'needs message or hex in each of its messages'],
    [{ topic, message: good }, 'needs an expectation: payloads, ignored, refused or quarantined'],
    [{ topic, hex: '0', ignored: 'empty' }, 'must be pairs of hexadecimal digits'],
    [{ topic, message: good, at: 'noon', ignored: 'when' }, 'must be a time such as 2026-01-28T15:00:08Z'],
  ])('that is %j: it %s', (one, message) => {
    expect(problems(one)).toEqual([message])
  })
})
