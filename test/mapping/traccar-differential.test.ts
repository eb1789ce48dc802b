// The presets against Traccar, which reads many of the same formats. What its decoders make of a message is
// written here once more, in a few lines for each format; the published tests of Traccar show that these lines
// are right. Messages are read from where TELEMETRY_TEST_DATA points: its test files (traccar/*.java), samples
// and frames. Nothing of them is copied.
//
// The test files are in the repository github.com/traccar/traccar. To get them:
//
//   git clone --depth 1 https://github.com/traccar/traccar /tmp/traccar
//   mkdir $TELEMETRY_TEST_DATA/traccar
//   cp /tmp/traccar/src/test/java/org/traccar/protocol/*ProtocolDecoderTest.java $TELEMETRY_TEST_DATA/traccar
//
// Where we differ on purpose, the format says why. Everything else must be equal: position, time, speed and
// heading of each position that Traccar calls valid, and no position that Traccar does not have.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { messageOf, type Sent } from '../support/mapping-world.ts'
import { callsIn, type PublishedCall } from '../support/traccar-tests.ts'
import { loadTrials } from './fuzz.ts'

const folder = process.env['TELEMETRY_TEST_DATA'] ?? ''
const frames = join(folder, 'data', 'teltonika-frames.ndjson')
const trials = await loadTrials()

/** Speed in km/h. `valid`: Traccar takes the position as one of this message. */
type Position = {
  time: number
  latitude: number
  longitude: number
  speed?: number | undefined
  course?: number | undefined
  valid: boolean
}
type Json = Record<string, unknown>

type Format = {
  preset: string
  decoder: string
  samples: string
  topic: string
  /** A body of Traccar as the messages that a broker delivers. */
  messages: (body: unknown) => unknown[]
  decode: (message: Json) => Position[]
}

const number = (value: unknown) => (value === undefined || value === null ? undefined : Number(value))
const isPair = ({ latitude, longitude }: Position) =>
  Number.isFinite(latitude) && Number.isFinite(longitude) && !(latitude === 0 && longitude === 0)

const formats: Format[] = [
  {
    preset: 'owntracks',
    decoder: 'OwnTracks',
    samples: 'owntracks',
    topic: 'owntracks/jane/phone',
    messages: (one) => [one],
    decode: (one) =>
      one['_type'] === 'location'
        ? [
            {
              time: Number(one['tst']) * 1000,
              latitude: Number(one['lat']),
              longitude: Number(one['lon']),
              speed: number(one['vel']),
              course: number(one['cog']),
              valid: true,
            },
          ]
        : [],
  },
  {
    // We keep the milliseconds of `timestamp`, and omit positions without satellites.
    preset: 'flespi',
    decoder: 'Flespi',
    samples: 'flespi',
    topic: 'flespi/message/gw/devices/1',
    messages: (body) => (Array.isArray(body) ? (body as unknown[]) : [body]),
    decode: (one) => [
      {
        time: Math.floor(Number(one['timestamp']) * 1000 + 0.0005),
        latitude: Number(one['position.latitude']),
        longitude: Number(one['position.longitude']),
        speed: number(one['position.speed']),
        course: number(one['position.direction']),
        valid: one['position.valid'] !== false && one['position.satellites'] !== 0,
      },
    ],
  },
  {
    // A position that was fixed more than a minute before its record is a last known one.
    preset: 'digital-matter',
    decoder: 'DmtHttp',
    samples: 'digital-matter',
    topic: 'dm/1',
    messages: (one) => [one],
    decode: (one) =>
      'device' in one
        ? [
            {
              time: Date.parse(String(one['date'])),
              latitude: Number(one['lat']),
              longitude: Number(one['lng']),
              valid: true,
            },
          ]
        : (one['Records'] as Json[]).flatMap((record) => {
            const field = (record['Fields'] as Json[]).find(({ FType }) => FType === 0)
            if (!field) return []
            const time = Date.parse(`${String(record['DateUTC']).replace(' ', 'T')}Z`)
            const fixed = Date.parse(`${String(field['GpsUTC']).replace(' ', 'T')}Z`)
            return [
              {
                time,
                latitude: Number(field['Lat']),
                longitude: Number(field['Long']),
                speed: Number(field['Spd']) * 0.036,
                course: number(field['Head']),
                valid: Number(field['GpsStat']) > 0 && time - fixed <= 60_000,
              },
            ]
          }),
  },
  {
    preset: 'pui',
    decoder: 'Pui',
    samples: 'pui',
    topic: 'pui/1',
    messages: (one) => [one],
    decode: (one) => {
      const location = (one['location'] ?? {}) as Json
      if (one['rpt'] !== 'hf' && one['rpt'] !== 'loc') return []
      return [
        {
          time: Date.parse(String(one['ts'])),
          latitude: Number(location['lat']),
          longitude: Number(location['lon']),
          speed: Number(one['spd']) * 0.036,
          course: number(one['bear']),
          valid: true,
        },
      ]
    },
  },
  {
    // A decoder may write its speed in any unit: Traccar takes knots, we omit it. Without a time of the decoder
    // Traccar takes that of the first LoRaWAN gateway, we that of the network.
    preset: 'the-things-stack',
    decoder: 'TtnHttp',
    samples: 'the-things-stack',
    topic: 'v3/depot@ttn/devices/test-device/up',
    messages: (one) => [one],
    decode: (one) => {
      const uplink = one['uplink_message'] as Json
      const decoded = (uplink['decoded_payload'] ?? {}) as Json
      const key = Object.keys(decoded).find((each) => each.startsWith('gps_'))
      const place = key === undefined ? decoded : (decoded[key] as Json)
      return [
        {
          time: Date.parse(String(decoded['time'] ?? uplink['received_at'])),
          latitude: Number(place['latitude']),
          longitude: Number(place['longitude']),
          course: number(decoded['heading']),
          valid: true,
        },
      ]
    },
  },
]

/** Our positions of a message in the form of Traccar. */
function oursOf(preset: string, topic: string, payload: unknown): Position[] {
  const trial = trials.find((one) => one.preset === preset)
  if (!trial) throw new Error(`There is no preset ${preset}.`)
  const result = trial.open().map(messageOf(payload, { topic, arrivedAt: 1_900_000_000_000 }))
  if (result.kind !== 'payloads') return []
  return result.payloads.flatMap(({ json }) => {
    const { gps, signalTimestamp } = JSON.parse(json) as Sent
    if (!gps) return []
    const { latitude, longitude, speed, heading } = gps
    const position = { latitude: Number(latitude), longitude: Number(longitude) }
    return [
      { ...position, time: signalTimestamp, speed: number(speed), course: number(heading), valid: true },
    ]
  })
}

function expectSame(ours: readonly Position[], theirs: readonly Position[]): number {
  const valid = theirs.filter((each) => each.valid && isPair(each))
  expect(ours).toHaveLength(valid.length)
  for (const [index, their] of valid.entries()) {
    const our = ours[index]
    expect([our?.time, our?.latitude, our?.longitude]).toEqual([their.time, their.latitude, their.longitude])
    expect(our?.speed ?? -1).toBeCloseTo(their.speed ?? -1, 3)
    expect(our?.course ?? -1).toBeCloseTo(their.course === 360 ? 0 : (their.course ?? -1), 6)
  }
  return valid.length
}

/** The published calls of a decoder; none where the files are absent. */
function publishedOf({ decoder }: Format): PublishedCall[] {
  const file = join(folder, 'traccar', `${decoder}ProtocolDecoderTest.java`)
  return existsSync(file) ? callsIn(readFileSync(file, 'utf8')) : []
}

function samplesOf({ samples }: Format): unknown[] {
  const from = join(folder, 'samples', samples)
  if (!existsSync(from)) return []
  const files = readdirSync(from).filter((file) => /^\d+\.json$/.test(file))
  return files.map((file) => JSON.parse(readFileSync(join(from, file), 'utf8')) as unknown)
}

function missingText(decoder: string): string {
  return (
    `TELEMETRY_TEST_DATA/traccar/${decoder}ProtocolDecoderTest.java is missing. It is the file ` +
    `src/test/java/org/traccar/protocol/${decoder}ProtocolDecoderTest.java of github.com/traccar/traccar.`
  )
}

const isJson = ({ message }: PublishedCall) => /^\s*[[{]/.test(message)

describe.each(formats)('$preset and the $decoder decoder of Traccar', (format) => {
  const published = publishedOf(format).filter(isJson)
  const samples = samplesOf(format)
  const decoded = (body: unknown) => format.messages(body).flatMap((one) => format.decode(one as Json))

  test('the lines for Traccar find what its published tests say (TELEMETRY_TEST_DATA/traccar)', ({
    skip,
  }) => {
    skip(published.length === 0, missingText(format.decoder))
    for (const { verify, message } of published) {
      const positions = decoded(JSON.parse(message)).filter(isPair)
      expect(positions.length > 0).toBe(verify.startsWith('Position'))
    }
  })

  test('have the same positions (TELEMETRY_TEST_DATA)', ({ skip }) => {
    skip(published.length + samples.length === 0, missingText(format.decoder))
    const bodies = [...published.map(({ message }) => JSON.parse(message) as unknown), ...samples]
    let compared = 0
    for (const body of bodies)
      for (const one of format.messages(body))
        compared += expectSame(oursOf(format.preset, format.topic, one), format.decode(one as Json))
    expect(compared).toBeGreaterThan(0)
  })
})

describe.skipIf(!existsSync(frames))('teltonika-codec8 and the Teltonika decoder of Traccar', () => {
  type Row = { hex: string; crcOk: boolean | null; records: Json[] }

  test('have the same positions in all frames of its tests (TELEMETRY_TEST_DATA)', () => {
    let compared = 0
    for (const line of readFileSync(frames, 'utf8').trim().split('\n')) {
      const { hex, crcOk, records } = JSON.parse(line) as Row
      if (crcOk !== true) continue
      // Traccar calls a record with satellites valid. We also read the GNSS status (69, 71).
      const theirs = records.map((record) => {
        const io = record['io'] as Json
        const lost = Number(io['69']) === 2 || (io['69'] === undefined && [1, 2].includes(Number(io['71'])))
        return {
          time: Number(record['ts']),
          latitude: Number(record['lat']),
          longitude: Number(record['lon']),
          speed: number(record['sp']),
          course: number(record['ang']),
          valid: record['sat'] !== 0 && !lost,
        }
      })
      const ours = oursOf('teltonika-codec8', 'teltonika/864636060000009/raw', Buffer.from(hex, 'hex'))
      compared += expectSame(ours, theirs)
    }
    expect(compared).toBeGreaterThan(40)
  })
})
