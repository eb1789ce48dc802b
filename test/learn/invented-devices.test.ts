// Messages of invented devices, with what is true of them. A proposal may leave a value out; one that it sends
// must be right.

import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createMappingReader, packagedNames } from '../../src/config/config.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'
import { createCollector, propose } from '../../src/learn/learn.ts'

const read = createMappingReader({ env: {}, readText: (path) => readFile(path, 'utf8') })
const at = Date.parse('2026-01-28T15:00:00Z')
const s = at / 1000

/** `speed` in km/h; `counters`: what the notes say of odometer and engine hours. */
type Truth = { time?: boolean; speed?: number; heading?: number; counters?: RegExp[]; none?: RegExp[] }

const odometer = (path: string, unit: string) =>
  new RegExp(`OBD_LIFETIME_ODOMETER, path: ${path}, unit: ${unit} \\}\\.$`)
const hours = (path: string, unit: string) =>
  new RegExp(`OBD_TOTAL_ENGINE_TIME, path: ${path}, unit: ${unit} \\}\\.$`)
const guessed = (path: string) =>
  new RegExp(`path: ${path}, unit: km \\}\\. The message does not say its unit`)

const devices: [name: string, message: Record<string, unknown>, truth: Truth][] = [
  ['t, km', { t: s, lat: 48.1, lon: 2.2, km: 123_456 }, { time: true, counters: [odometer('km', 'km')] }],
  ['dt', { dt: at, lat: 48.1, lon: 2.2, spd: 30 }, { time: true, speed: 30 }],
  ['tst', { tst: s, lat: 48.1, lng: 2.2, dist: 12_345 }, { time: true, counters: [guessed('dist')] }],
  ['tm as text', { tm: '2026-01-28T15:00:00Z', lat: 48.1, lon: 2.2 }, { time: true }],
  ['ts_ms', { ts_ms: at, latitude: 48.1, longitude: 2.2 }, { time: true }],
  ['ts in microseconds', { ts: at * 1000, lat: 48.1, lon: 2.2 }, { time: true }],
  ['t is a temperature', { t: 21.5, lat: 48.1, lon: 2.2 }, { time: false }],
  ['t is a temperature beside ts', { t: 21.5, ts: s, lat: 48.1, lon: 2.2 }, { time: true }],
  [
    'odometer_m',
    { ts: s, lat: 48.1, lon: 2.2, odometer_m: 1_234_567 },
    { time: true, counters: [odometer('odometer_m', 'm')] },
  ],
  ['mileage', { ts: s, lat: 48.1, lon: 2.2, mileage: 99 }, { time: true, counters: [guessed('mileage')] }],
  ['odo', { ts: s, lat: 48.1, lon: 2.2, odo: '99.5' }, { time: true, counters: [guessed('odo')] }],
  [
    'total_distance_mi',
    { ts: s, lat: 48.1, lon: 2.2, total_distance_mi: 99 },
    { time: true, counters: [odometer('total_distance_mi', 'mi')] },
  ],
  [
    'totalDistance',
    { ts: s, lat: 48.1, lon: 2.2, totalDistance: 9 },
    { time: true, counters: [/totalDistance/] },
  ],
  [
    'odometerKm and engineHours',
    { time: s, lat: 48.1, lon: 2.2, odometerKm: 9, engineHours: 7 },
    { time: true, counters: [odometer('odometerKm', 'km'), hours('engineHours', 'h')] },
  ],
  [
    'engine time in seconds',
    { ts: s, lat: 48.1, lon: 2.2, engine_time_s: 3600 },
    { time: true, counters: [hours('engine_time_s', 's')] },
  ],
  [
    'odometer beside its unit',
    { ts: s, lat: 48.1, lon: 2.2, odometer: { value: 5, unit: 'mi' } },
    { time: true, counters: [odometer('odometer.value', 'mi')] },
  ],
  ['speed_kmh', { ts: s, lat: 48.1, lon: 2.2, speed_kmh: 54 }, { time: true, speed: 54 }],
  ['speed_mph', { ts: s, lat: 48.1, lon: 2.2, speed_mph: 50 }, { time: true, speed: 80.4672 }],
  ['speed_kn', { ts: s, lat: 48.1, lon: 2.2, speed_kn: 10 }, { time: true, speed: 18.52 }],
  ['speedKts', { ts: s, lat: 48.1, lon: 2.2, speedKts: 10 }, { time: true, speed: 18.52 }],
  ['speed_m_s', { ts: s, lat: 48.1, lon: 2.2, speed_m_s: 10 }, { time: true, speed: 36 }],
  ['Speed (km/h)', { ts: s, lat: 48.1, lon: 2.2, 'Speed (km/h)': 10 }, { time: true, speed: 10 }],
  [
    'speed beside its unit',
    { ts: s, lat: 48.1, lon: 2.2, speed: { value: 50, unit: 'mph' } },
    { time: true, speed: 80.4672 },
  ],
  ['a speed as words', { ts: s, lat: 48.1, lon: 2.2, speed: 'fast' }, { time: true }],
  ['dir is a direction of travel', { ts: s, lat: 48.1, lon: 2.2, dir: '1' }, { time: true }],
  ['dir is a heading', { ts: s, lat: 48.1, lon: 2.2, dir: 271 }, { time: true, heading: 271 }],
  ['a compass word', { ts: s, lat: 48.1, lon: 2.2, direction: 'NW' }, { time: true }],
  ['scaled', { ts: s, lat_e7: 481_000_000, lon_e7: 22_000_000, spd: 3 }, { time: true, speed: 3 }],
  ['a trip', { ts: s, lat: 48.1, lon: 2.2, trip: { km: 12 } }, { time: true, none: [/may be an odometer/] }],
  ['nested', { t: s, gps: { lat: 48.1, lon: 2.2, spd: 7, crs: 90 } }, { time: true, speed: 7, heading: 90 }],
]

/** By source: every test tries the same presets. */
const mappings = new Map<string, Promise<MappingConfig | null>>()

function mappingOf(source: Readonly<Record<string, unknown>>): Promise<MappingConfig | null> {
  const key = JSON.stringify(source)
  const known = mappings.get(key) ?? read(source).then((one) => (one.kind === 'config' ? one.config : null))
  mappings.set(key, known)
  return known
}

async function proposed(message: Record<string, unknown>) {
  const collector = createCollector()
  for (let index = 0; index < 6; index += 1) {
    const sender = { clientId: 'learn', userName: null, certificateName: null, identity: null }
    const topic = `fleet/86463606000000${index % 3}/up`
    const bytes = Buffer.from(JSON.stringify(message))
    const arrivedAt = at + 5000 + index
    collector.take({ topic, bytes, qos: 1, retain: false, dup: false, sender, arrivedAt })
  }
  const signal = new AbortController().signal
  return propose(collector.traffic(), { presets: packagedNames(), signal, mappingOf })
}

describe('of an invented device', () => {
  test.each(devices)('%s: what is proposed is right', async (_, message, truth) => {
    const { proposals } = await proposed(message)
    const [proposal] = proposals
    const sent = JSON.parse(proposal?.fit.lastPayloads[0]?.json ?? '{}') as {
      signalTimestamp?: string | number
      gps?: Record<string, number>
      signals?: object[]
    }
    const { latitude, longitude, speed, heading } = sent.gps ?? {}
    expect({ latitude, longitude, speed, heading }).toEqual({
      latitude: 48.1,
      longitude: 2.2,
      speed: truth.speed,
      heading: truth.heading,
    })
    expect(new Date(sent.signalTimestamp ?? 0).getTime() === at).toBe(truth.time ?? false)
    const notes = (proposal?.notes ?? []).filter((note) => / may be /.test(note) && /add/.test(note))
    for (const wanted of truth.counters ?? []) expect(notes).toContainEqual(expect.stringMatching(wanted))
    for (const wrong of truth.none ?? []) expect(notes).not.toContainEqual(expect.stringMatching(wrong))
    expect(notes).toHaveLength(truth.counters?.length ?? 0)
    expect(sent.signals ?? []).toEqual([])
  })
})
