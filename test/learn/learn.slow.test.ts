import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadPresetCases } from '../../src/config/config.ts'
import { sourcesYaml, missingValuesOf, unreadReason, type Proposed } from '../../src/learn/learn.ts'
import { heardOf, learned as learnedOf } from './learned.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const at = Date.parse('2026-01-28T15:00:00Z')

type Sent = { topic: string; message: string | Buffer; qos?: 0 | 1; retain?: boolean }

function learned(sent: readonly Sent[]): Promise<Proposed> {
  return learnedOf(
    sent.map(({ message, ...one }, index) => heardOf(message, { ...one, arrivedAt: at + index * 20 })),
  )
}

const folder = resolve(import.meta.dirname, '../../config/presets')

async function sentIn(preset: string): Promise<Sent[]> {
  const { cases } = await loadPresetCases(join(folder, `${preset}.cases.yaml`), deps)
  return cases.cases.flatMap(({ topic = '', message, hex, messages }) =>
    (messages ?? [{ topic, message, hex }]).map((one) => ({
      topic: one.topic ?? '',
      message: one.hex === undefined ? (one.message ?? '') : Buffer.from(one.hex, 'hex'),
    })),
  )
}

const presets = readdirSync(folder)
  .filter((file) => file.endsWith('.cases.yaml'))
  .map((file) => file.replace('.cases.yaml', ''))
  .filter((name) => !name.includes('.'))

const truck = (index: number, more: object = {}) => ({
  topic: `fleet/86463606000000${index % 3}/up`,
  message: JSON.stringify({
    Lat: 48.1,
    Lng: 2.2,
    Timestamp: 1_767_085_201 + index,
    Speed: 30,
    ODO: 1,
    ...more,
  }),
})

describe('a preset is proposed', () => {
  test.each(presets)('of what devices of %s send', async (preset) => {
    const { proposals } = await learned(await sentIn(preset))
    expect(proposals[0]?.preset).toBe(preset)
  })

  test('on other topics than its own', async () => {
    const sent = (await sentIn('owntracks'))
      .filter(({ topic }) => topic.split('/').length === 3)
      .map((one) => ({ ...one, topic: 'bus/86463606000001/position' }))
    const { proposals } = await learned(sent)
    expect(proposals[0]?.source).toEqual({
      name: 'owntracks',
      preset: 'owntracks',
      topic: 'bus/{device}/position',
      device: '{device}',
    })
  })

  test('for a device without a position fix', async () => {
    const message = '{"ts":1769594277,"imei":"862406075073953","pos":{"lat":0,"lon":0,"sat":0}}'
    const { proposals } = await learned([{ topic: 'ruptela/862406075073953/data', message }])
    expect(proposals.map(({ preset }) => preset)).toEqual(['ruptela-json'])
    expect(proposals[0] && missingValuesOf(proposals[0])).toEqual([
      'No payload yet: all messages are understood, but none has data to send now.',
      'Ignored messages: 1 of 1, no fix.',
    ])
  })

  test('for each of several fleets at one broker', async () => {
    const { proposals } = await learned([...(await sentIn('teltonika-json')), ...(await sentIn('ovms'))])
    expect(new Set(proposals.map(({ preset }) => preset))).toEqual(new Set(['ovms', 'teltonika-json']))
  })
})

describe('without a fitting preset', () => {
  let proposed: Proposed
  beforeAll(async () => {
    proposed = await learned(Array.from({ length: 9 }, (_, index) => truck(index)))
  })

  test('a draft is made from the names of the keys', () => {
    expect(proposed.proposals.map(({ preset, source }) => ({ preset, source }))).toEqual([
      {
        preset: null,
        source: {
          name: 'fleet-up',
          topic: 'fleet/{device}/up',
          map: {
            time: { path: 'Timestamp', format: 's' },
            latitude: { path: 'Lat' },
            longitude: { path: 'Lng' },
            speed: { path: 'Speed', unit: 'km/h' },
            in_motion: { from: 'speed', above: 5 },
          },
        },
      },
    ])
  })

  test('an odometer is noted and not drafted', () => {
    expect(proposed.proposals[0]?.notes).toContain(
      'ODO may be an odometer. If the dashboard shows the same value, add it as a signal: ' +
        '{ type: OBD_LIFETIME_ODOMETER, path: ODO, unit: km }. The message does not say its unit; it may be km, m, mi.',
    )
  })

  test('messages without a position are listed and not drafted', async () => {
    const { proposals, unread } = await learned([{ topic: 'house/lamp', message: '{"on":true}' }])
    expect(proposals).toEqual([])
    expect(unread.map(({ filter }) => filter)).toEqual(['house/lamp'])
    expect(sourcesYaml({ proposals }, 'depot')).toBe('')
  })

  test.each([
    ['iso', '2026-01-28T15:00:00Z', { format: 'iso' }],
    ['iso without a zone', '2026-01-28 15:00:00', { format: 'iso', zone: 'utc' }],
    ['milliseconds', 1_767_085_201_000, { format: 'ms' }],
    ['digits', '20260128150000', { format: 'compact' }],
  ])('the time may be %s', async (_name, Timestamp, format) => {
    const { proposals } = await learned([truck(1, { Timestamp })])
    expect(proposals[0]?.source).toHaveProperty('map.time', { path: 'Timestamp', ...format })
  })

  test.each([
    ['truck0', 'fleet/truck0/up'],
    ['jane', 'fleet/jane/up'],
    ['a name of one device', 'acme/depot/Lkw Nord/position'],
  ])('one device is enough: %s', async (_name, topic) => {
    const [proposal] = (await learned([{ ...truck(1), topic }])).proposals
    const levels = topic.split('/')
    expect(proposal?.source).toMatchObject({ topic: levels.with(levels.length - 2, '{device}').join('/') })
    expect(proposal?.fit.deviceNames).toEqual([levels.at(-2)])
    expect(proposal && missingValuesOf(proposal)).toContainEqual(
      expect.stringMatching(/^Only one device was heard: ".*"\. Check that \{device\} is at the right level/),
    )
  })

  test.each([
    ['three', ['7', '8', '9']],
    ['one', ['7']],
  ])(
    'no preset that names devices by their connection where the topic has a number: %s',
    async (_name, numbers) => {
      const message = JSON.stringify({ ts: at - 1000, lat: 52.5, lon: 13.3, speed: 4 })
      const sent = numbers.map((number) => ({ topic: `trucks/${number}/pos`, message }))
      const [proposal, ...others] = (await learned(sent)).proposals
      expect(others).toEqual([])
      expect(proposal).toMatchObject({
        source: { topic: 'trucks/{device}/pos' },
        fit: { devices: numbers.length, deviceNames: numbers, namedBySender: false },
      })
    },
  )

  test('the client names the device where nothing else does', async () => {
    const [proposal] = (await learned([{ ...truck(1), topic: 'fleet/data' }])).proposals
    expect(proposal?.source).toMatchObject({ topic: 'fleet/data', device: '{clientid}' })
    expect(proposal?.notes.at(-1)).toMatch(/the client id names it\.$/)
  })

  test('two devices are enough, and are not called one', async () => {
    const sent = ['anna', 'bob'].map((name) => ({ ...truck(1), topic: `fleet/${name}/up` }))
    const [proposal, ...others] = (await learned(sent)).proposals
    expect(others).toEqual([])
    expect(proposal).toMatchObject({ source: { topic: 'fleet/{device}/up' }, fit: { devices: 2 } })
    expect((proposal ? missingValuesOf(proposal) : []).join()).not.toContain('Only one device')
  })

  test('several devices on one topic are named by the message, and are not called one', async () => {
    const sent = [1, 2, 3].map((index) => ({
      ...truck(index, { imei: `86${index}` }),
      topic: 'fleet/jane/up',
    }))
    const [proposal] = (await learned(sent)).proposals
    expect(proposal).toMatchObject({ source: { device: { path: 'imei' } }, fit: { devices: 3 } })
    expect((proposal ? missingValuesOf(proposal) : []).join()).not.toContain('Only one device')
    const named = sent.map((one) => ({ ...one, topic: 'fleet/truck-7/up' }))
    expect((await learned(named)).proposals[0]?.source).toMatchObject({ device: { path: 'imei' } })
  })

  test('a scaled position is drafted with its scale, and named', async () => {
    const sent = [1, 2].map((index) => truck(index, { Lat: 481_170_000 + index, Lng: 22_000_000 }))
    const [proposal] = (await learned(sent)).proposals
    expect(proposal?.source).toHaveProperty('map.latitude', { path: 'Lat', unit: '1e-7deg' })
    expect(proposal?.fit.lastPayloads[0]?.json).toContain('"latitude":48.1170002')
    expect(proposal?.notes.join(' ')).toContain('The position is a scaled integer')
  })

  test.each([
    ['{"mileage":90210}', 'mileage'],
    ['{"can_odometer_km":90210}', 'can_odometer_km'],
    ['{"odometer":{"value":90210,"unit":"km"}}', 'odometer.value'],
    ['{"totalVehicleDistance":90210}', 'totalVehicleDistance'],
    ['{"kilometerstand":90210}', 'kilometerstand'],
    ['{"vehicleOdometerMeters":90210}', 'vehicleOdometerMeters'],
  ])('an odometer is noted under the name of %s', async (keys, path) => {
    const [proposal] = (await learned([truck(1, { ODO: undefined, ...(JSON.parse(keys) as object) })]))
      .proposals
    expect(proposal?.notes).toContainEqual(expect.stringContaining(`${path} may be an odometer.`))
  })

  test.each(['tripOdometer', 'gpsOdometer', 'serviceDistance'])('%s is no odometer', async (key) => {
    const [proposal] = (await learned([truck(1, { ODO: undefined, [key]: 1 })])).proposals
    expect(proposal?.notes.join(' ')).not.toContain('odometer')
  })

  test.each([
    ['$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47', /NMEA 0183 sentences \(\$GPGGA\)/],
    ['{"raw":"$GNGGA,123519,4807.038,N"}', /NMEA 0183 sentences \(\$GNGGA\), but no message has a RMC/],
    [Buffer.from([0xff, 0xfe, 0x01]), /binary, 3 bytes/],
    ['hello', /text that is not JSON: "hello"/],
    ['{"on":true}', /No key looks like a position\. Keys: "on"\./],
    ['17', /single values/],
    ['{"_type":"encrypted","data":"AAAA"}', /encrypted messages of OwnTracks/],
  ])('what the messages are is said: %s', async (message, why) => {
    const { proposals, unread } = await learned([{ topic: 'fleet/truck-7/up', message }])
    expect(proposals).toEqual([])
    expect(unread.map(unreadReason)).toEqual([expect.stringMatching(why)])
  })

  const rmc = (second: number) => {
    const body = `GNRMC,09000${second}.00,A,4656.8856,N,00726.8466,E,30.7,112.0,280126,,,A`
    const sum = Buffer.from(body).reduce((total, byte) => total ^ byte, 0)
    return `$${body}*${sum.toString(16).padStart(2, '0')}\r\n`
  }

  test('NMEA sentences get the preset nmea, as a text and in a key of JSON', async () => {
    const asText = [1, 2, 3].map((second) => ({ topic: 'fleet/truck-7/gnss', message: rmc(second) }))
    const asJson = [4, 5].map((second) => ({
      topic: 'depot/up',
      message: JSON.stringify({ imei: '864636060000001', gps: { raw: rmc(second) } }),
    }))
    const { proposals, unread } = await learned([...asText, ...asJson])
    expect(unread).toEqual([])
    expect(proposals.map(({ source, fit }) => ({ ...source, payloads: fit.fieldCounts.payloads }))).toEqual([
      { name: 'nmea', preset: 'nmea', topic: 'fleet/{device}/gnss', payloads: 3 },
      {
        name: 'nmea-2',
        preset: 'nmea',
        topic: 'depot/up',
        encoding: 'json',
        extract: [{ from: 'gps.raw', as: 'nmea', into: 'nmea' }],
        each: 'nmea.records',
        device: { path: '$.imei' },
        payloads: 2,
      },
    ])
  })

  test('payloads of Kura gateways get the preset kura with their topic', async () => {
    const [first] = await sentIn('kura')
    const { proposals } = await learned([{ topic: 'acme/B827EB000001/W1/gps', message: first!.message }])
    expect(proposals.map(({ source }) => source)).toEqual([
      { name: 'kura', preset: 'kura', topic: 'acme/{device}/W1/gps' },
    ])
  })

  test('no preset is proposed that makes nothing of the messages', async () => {
    // On topics of presets, with keys that these do not know.
    const message = '{"zeit":1767085201,"breite":48.1,"laenge":2.2}'
    const topics = [
      'ruptela/86/data',
      'teltonika/864636060000001/data',
      'telemetry/v1/t-1',
      'ovms/a/b/x',
      'dm/x',
      'pui/x',
    ]
    const { proposals } = await learned(topics.map((topic) => ({ topic, message })))
    expect(proposals.map(({ preset }) => preset)).toEqual([])
  })

  test('other presets are named only if they make payloads of the same messages', async () => {
    const { proposals } = await learned([...(await sentIn('teltonika-json')), ...(await sentIn('owntracks'))])
    const named = proposals.filter(({ preset }) => preset === 'teltonika-json' || preset === 'owntracks')
    expect(named).toHaveLength(2)
    expect(named.map(({ others }) => others)).toEqual([[], []])
  })

  test('the message can name the device', async () => {
    const { proposals } = await learned([{ ...truck(1, { 'unit id': 'x7' }), topic: 'positions/all' }])
    expect(proposals[0]?.source).toMatchObject({ topic: 'positions/all', device: { path: '"unit id"' } })
  })
})

describe('missing values are reported', () => {
  const missing = async (sent: readonly Sent[]) => {
    const [proposal] = (await learned(sent)).proposals
    return proposal ? missingValuesOf(proposal) : []
  }

  test('per field, with the number of payloads', async () => {
    const sent = Array.from({ length: 8 }, (_, index) => truck(index, index < 3 ? { Speed: null } : {}))
    expect(await missing(sent)).toEqual([
      'Speed missing in 3 of 8 payloads.',
      'No heading.',
      'Motion missing in 3 of 8 payloads.',
      'No odometer.',
      'No engine hours.',
    ])
  })

  test('without a model: odometer and engine hours', async () => {
    expect(await missing(await sentIn('teltonika-json'))).toContainEqual(
      expect.stringMatching(/^No model: odometer and engine hours are omitted\./),
    )
  })

  test('without a device time: the arrival time is sent', async () => {
    const sent = [1, 2].map((index) => truck(index, { Timestamp: undefined }))
    expect(await missing(sent)).toContain('No device time: the arrival time is sent.')
  })

  test('messages that are ignored, refused, or may be lost', async () => {
    const sent = [
      truck(1),
      truck(2, { Lat: 95 }),
      { ...truck(3, { Speed: -1 }), qos: 0 as const, retain: true },
    ]
    const sentences = await missing(sent)
    expect(sentences).toEqual(
      expect.arrayContaining([
        'Dead letters: 1 of 3 messages, OUT_OF_RANGE: The position 95, 2.2 is out of range.',
        'Omitted values: 1, speed: negative.',
        'QoS 0 messages: 1 of 3. They are lost when the connection breaks.',
        'Retained messages: 1 of 3. Their times may be old.',
      ]),
    )
  })
})
