import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { createMappingReader, loadPresetCases, packagedNames } from '../../src/config/config.ts'
import type { Message } from '../../src/domain/message.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'
import {
  sourcesYaml,
  createCollector,
  missingValuesOf,
  propose,
  type Proposed,
} from '../../src/learn/learn.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const read = createMappingReader(deps)
/** By source, since every test tries the same presets. */
const mappings = new Map<string, Promise<MappingConfig | null>>()

function mappingOf(source: Readonly<Record<string, unknown>>): Promise<MappingConfig | null> {
  const key = JSON.stringify(source)
  const known = mappings.get(key) ?? read(source).then((one) => (one.kind === 'config' ? one.config : null))
  mappings.set(key, known)
  return known
}

const at = Date.parse('2026-01-28T15:00:00Z')

type Sent = { topic: string; message: string | Buffer; qos?: 0 | 1; retain?: boolean }

function messageOf({ topic, message, qos = 1, retain = false }: Sent, index: number): Message {
  const sender = { clientId: 'learn', userName: null, certificateName: null, identity: null }
  const bytes = typeof message === 'string' ? Buffer.from(message) : message
  return { topic, bytes, qos, retain, dup: false, sender, arrivedAt: at + index * 20 }
}

async function learned(sent: readonly Sent[]): Promise<Proposed> {
  const collector = createCollector()
  for (const [index, one] of sent.entries()) collector.take(messageOf(one, index))
  return propose(collector.traffic(), {
    presets: packagedNames(),
    signal: new AbortController().signal,
    mappingOf,
  })
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
      'ODO may be an odometer. If the dashboard shows the same value, add it as a signal.',
    )
  })

  test('messages without a position are listed and not drafted', async () => {
    const { proposals, unread } = await learned([{ topic: 'house/lamp', message: '{"on":true}' }])
    expect(proposals).toEqual([])
    expect(unread.map(({ filter }) => filter)).toEqual(['house/lamp'])
    expect(sourcesYaml({ proposals })).toBe('')
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
