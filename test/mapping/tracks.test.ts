// Tracks through the presets whose messages depend on earlier ones: a position in several messages, or by aliases.

import { readFile } from 'node:fs/promises'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { replayMessages } from '../../src/mapping/cases/cases.ts'
import { openMapping } from '../../src/mapping/mapping.ts'
import { messageOf, sender, type Sent } from '../support/mapping-world.ts'
import { loadPresetMapping } from '../support/preset-mapping.ts'
import { sparkplugPayload, types, type MetricOf } from '../support/sparkplug-payload.ts'

/** Whole numbers in the finest unit of any format, so that the expected values are exact. */
type Fix = {
  /** Milliseconds. */
  time: number
  /** 1e-7 degrees. */
  latitude: number
  longitude: number
  /** km/h and degrees; whole numbers. */
  speed: number
  heading: number
}

type Track = { device: string; fixes: readonly Fix[] }

type Format = {
  preset: string
  /** Name of the device in the payload. */
  deviceOf: (device: string) => string
  /** Resolution of the time in milliseconds. */
  stepMs: number
  /** Messages that must come before any fix. */
  openings: (track: Track) => Message[]
  /** The messages of one fix. */
  messages: (device: string, fix: Fix, index: number) => Message[]
}

const firstMs = Date.UTC(2026, 0, 5)

const fix = fc.record({
  time: fc.integer({ min: 0, max: 86_400_000 * 20 }).map((ms) => firstMs + ms),
  latitude: fc.integer({ min: -899_000_000, max: 899_000_000 }),
  longitude: fc.integer({ min: -1_800_000_000, max: 1_800_000_000 }),
  speed: fc.integer({ min: 0, max: 250 }),
  heading: fc.integer({ min: 0, max: 359 }),
})

/** In order of time, at least a minute apart; never at a pole or near 0, 0. */
const tracks: fc.Arbitrary<Track> = fc.record({
  device: fc
    .integer({ min: 1, max: 10 ** 9 - 1 })
    .map((number) => `864636${String(number).padStart(9, '0')}`),
  fixes: fc
    .uniqueArray(
      fix.filter(({ latitude }) => Math.abs(latitude) >= 10_000_000),
      { minLength: 1, maxLength: 8, selector: ({ time }) => Math.floor(time / 60_000) },
    )
    .map((fixes) => fixes.toSorted((a, b) => a.time - b.time)),
})

/** All arrive long after they were measured: a backlog. */
const arrivedAt = Date.UTC(2026, 1, 1)
/** Longer than any window. */
const apartMs = 60_000

function degrees(units: number): number {
  return units / 1e7
}

/** Degrees as text with seven decimals, without passing through a float. */
function decimal(units: number): string {
  const digits = String(Math.abs(units)).padStart(8, '0')
  return `${units < 0 ? '-' : ''}${digits.slice(0, -7)}.${digits.slice(-7)}`
}

function sent(topic: string, payload: unknown, index = 0): Message {
  return messageOf(payload, { topic, sender, arrivedAt: arrivedAt + index * apartMs })
}

const ovms: Format = {
  preset: 'ovms',
  deviceOf: (device) => device,
  stepMs: 1000,
  openings: () => [],
  messages: (device, { time, latitude, longitude, speed, heading }, index) =>
    [
      ['m/time/utc', String(Math.floor(time / 1000))],
      ['v/p/latitude', decimal(latitude)],
      ['v/p/longitude', decimal(longitude)],
      ['v/p/gpslock', 'yes'],
      ['v/p/speed', String(speed)],
      ['v/p/direction', String(heading)],
    ].map(([name, value]) => sent(`ovms/depot/${device}/metric/${name}`, value, index)),
}

const aliases = { 'GPS/Latitude': 1, 'GPS/Longitude': 2, 'GPS/Speed': 3, 'GPS/Heading': 4 } as const

/** Births without values, so that they are not fixes; data by alias. */
const sparkplug: Format = {
  preset: 'sparkplug-b',
  deviceOf: (device) => `Depot7/GW-1/${device}`,
  stepMs: 1,
  openings: ({ device }) => {
    const bdSeq: MetricOf = { name: 'bdSeq', type: types.uint64, long: 4 }
    const metrics = Object.entries(aliases).map(([name, alias]) => ({
      name,
      alias,
      type: types.double,
      null: true,
    }))
    return [
      sent('spBv1.0/Depot7/NBIRTH/GW-1', sparkplugPayload({ ts: firstMs, seq: 0, metrics: [bdSeq] })),
      sent(`spBv1.0/Depot7/DBIRTH/GW-1/${device}`, sparkplugPayload({ ts: firstMs, seq: 1, metrics })),
    ]
  },
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const metrics: MetricOf[] = [
      { alias: aliases['GPS/Latitude'], ts: time, double: degrees(latitude) },
      { alias: aliases['GPS/Longitude'], ts: time, double: degrees(longitude) },
      { alias: aliases['GPS/Speed'], ts: time, double: speed },
      { alias: aliases['GPS/Heading'], ts: time, double: heading },
    ]
    const bytes = sparkplugPayload({ ts: time, seq: (index + 2) % 256, metrics })
    return [sent(`spBv1.0/Depot7/DDATA/GW-1/${device}`, bytes, index)]
  },
}

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const opened = await Promise.all(
  [ovms, sparkplug].map(async (format) => ({
    ...format,
    mapping: await openMapping(await loadPresetMapping(format.preset, deps), { clockOffsetMs: () => 0 }),
  })),
)
type Opened = (typeof opened)[number]

/** Everything that is not a payload fails the test. */
function payloadsOf({ mapping }: Opened, openings: readonly Message[], messages: readonly Message[]) {
  const mapper = mapping.open()
  const { payloads, refused, quarantined } = replayMessages(mapper, [...openings, ...messages])
  expect({ refused, quarantined, waiting: mapper.openParts() }).toEqual({
    refused: [],
    quarantined: [],
    waiting: 0,
  })
  return payloads
}

function messagesOf(format: Format, { device, fixes }: Track): Message[] {
  return fixes.flatMap((fix, index) => format.messages(device, fix, index))
}

function expected({ stepMs, deviceOf }: Format, device: string, fix: Fix) {
  return {
    device: deviceOf(device),
    time: Math.floor(fix.time / stepMs) * stepMs,
    latitude: degrees(fix.latitude),
    longitude: degrees(fix.longitude),
    speedUnits: 'KILOMETERS_PER_HOUR',
    heading: fix.heading,
  }
}

function read({ json, device }: MappedPayload) {
  const { gps, signalTimestamp: time, signals } = JSON.parse(json) as Sent
  const { speed, inMotion, ...rest } = gps ?? {}
  expect(signals).toBeUndefined()
  return { known: { device, time, ...rest }, speed: Number(speed), inMotion }
}

function idsOf(payloads: readonly MappedPayload[]): string[] {
  return [...new Set(payloads.map(({ payloadId }) => payloadId))].toSorted()
}

describe.each(opened)('a track through the preset $preset', (format) => {
  test('gives the simulated positions, fix by fix', () => {
    fc.assert(
      fc.property(tracks, (track) => {
        const payloads = payloadsOf(format, format.openings(track), messagesOf(format, track)).map(read)
        expect(payloads.map(({ known }) => known)).toEqual(
          track.fixes.map((fix) => expected(format, track.device, fix)),
        )
        for (const [index, { speed, inMotion }] of payloads.entries()) {
          const fix = track.fixes[index]
          expect(speed).toBe(fix?.speed)
          // Between the two thresholds, motion derived from the speed does not change.
          const isPlain = fix !== undefined && (fix.speed > 10 || fix.speed === 0)
          expect(inMotion).toBe(isPlain ? fix.speed > 5 : inMotion)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('has the same payloadIds when messages are repeated or reordered', () => {
    fc.assert(
      fc.property(tracks, fc.infiniteStream(fc.nat({ max: 999 })), (track, chance) => {
        const before = idsOf(payloadsOf(format, format.openings(track), messagesOf(format, track)))
        expect(before).toHaveLength(track.fixes.length)
        const again = shuffled(track, chance).flatMap((fix, at) => format.messages(track.device, fix, at))
        expect(idsOf(payloadsOf(format, format.openings(track), again))).toEqual(before)
      }),
      { numRuns: 50 },
    )
  })
})

/** Every fix at least once, some twice or three times, in any order. */
function shuffled({ fixes }: Track, chance: fc.Stream<number>): Fix[] {
  const next = () => chance.next().value ?? 0
  return fixes
    .flatMap((fix) => Array.from({ length: 1 + (next() % 3) }, () => ({ fix, place: next() })))
    .toSorted((a, b) => a.place - b.place)
    .map(({ fix }) => fix)
}
