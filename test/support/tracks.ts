// tracks.ts: tracks of vehicles for fast-check, and their messages in each format.

import * as fc from 'fast-check'
import type { Message } from '../../src/domain/message.ts'
import { messageOf, sender } from './mapping-world.ts'
import { sparkplugPayload, types, type MetricOf } from './sparkplug-payload.ts'
import { tcpFrame, teltonikaBody } from './teltonika-frame.ts'

/** Whole numbers in the finest unit of any format, so that the expected values are exact. */
export type Fix = {
  /** Milliseconds. */
  time: number
  /** 1e-7 degrees. */
  latitude: number
  longitude: number
  /** km/h and degrees; whole numbers, because some formats have no others. */
  speed: number
  heading: number
}

export type Track = { device: string; fixes: readonly Fix[] }

export type Format = {
  preset: string
  /** Name of the device in the payload. */
  deviceOf: (device: string) => string
  /** Resolution of the time in milliseconds, of a coordinate in 1e-7 degrees. */
  steps: { time: number; coordinate: number }
  /** Messages that must come before any fix. */
  openings: (track: Track) => Message[]
  /** The messages of one fix. */
  messages: (device: string, fix: Fix, index: number) => Message[]
}

const firstMs = Date.UTC(2026, 0, 5)

const fix = fc.record({
  time: fc.integer({ min: 0, max: 86_400_000 * 20 }).map((ms) => firstMs + ms),
  latitude: fc.integer({ min: -900_000_000, max: 900_000_000 }),
  longitude: fc.integer({ min: -1_800_000_000, max: 1_800_000_000 }),
  speed: fc.integer({ min: 0, max: 250 }),
  heading: fc.integer({ min: 0, max: 359 }),
})

/** In order of time, at least a minute apart; never at 0, 0. */
export const tracks: fc.Arbitrary<Track> = fc.record({
  device: fc
    .integer({ min: 1, max: 10 ** 9 - 1 })
    .map((number) => `864636${String(number).padStart(9, '0')}`),
  fixes: fc
    .uniqueArray(
      fix.filter(({ latitude, longitude }) => Math.abs(latitude) > 1000 && Math.abs(longitude) > 1000),
      { minLength: 1, maxLength: 8, selector: ({ time }) => Math.floor(time / 60_000) },
    )
    .map((fixes) => fixes.toSorted((a, b) => a.time - b.time)),
})

/** All arrive long after they were measured: a backlog. */
const arrivedAt = Date.UTC(2026, 1, 1)
/** Longer than any window. */
const apartMs = 60_000

const same = (device: string) => device
const none = () => []

export function degrees(units: number): number {
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

const teltonikaJson: Format = {
  preset: 'teltonika-json',
  deviceOf: same,
  steps: { time: 1, coordinate: 1 },
  openings: none,
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const latlng = `${decimal(latitude)},${decimal(longitude)}`
    const reported = { ts: time, latlng, ang: heading, sat: 9, sp: speed, '240': speed > 5 ? 1 : 0 }
    return [sent(`teltonika/${device}/data`, { state: { reported } }, index)]
  },
}

const teltonikaCodec8: Format = {
  preset: 'teltonika-codec8',
  deviceOf: same,
  steps: { time: 1, coordinate: 1 },
  openings: none,
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const motion = { id: 240, bytes: 1, value: speed > 5 ? 1n : 0n } as const
    const place = { latitude, longitude, altitude: 100, angle: heading, satellites: 9, speed }
    const record = { ts: time, priority: 0, ...place, event: 0, elements: [motion] }
    return [sent(`teltonika/${device}/raw`, tcpFrame(teltonikaBody(0x08, [record])), index)]
  },
}

const ownTracks: Format = {
  preset: 'owntracks',
  deviceOf: (device) => `anna/${device}`,
  steps: { time: 1000, coordinate: 1 },
  openings: none,
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const place = { lat: degrees(latitude), lon: degrees(longitude), vel: speed, cog: heading }
    const record = { _type: 'location', ...place, tst: Math.floor(time / 1000), tid: 'AN' }
    return [sent(`owntracks/anna/${device}`, record, index)]
  },
}

const flespi: Format = {
  preset: 'flespi',
  deviceOf: same,
  steps: { time: 1, coordinate: 1 },
  openings: none,
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const record = {
      ident: device,
      timestamp: time / 1000,
      'position.valid': true,
      'position.latitude': degrees(latitude),
      'position.longitude': degrees(longitude),
      'position.speed': speed,
      'position.direction': heading,
      'position.satellites': 9,
      'movement.status': speed > 5,
    }
    return [sent('flespi/message/gw/devices/4530001', [record], index)]
  },
}

const ovms: Format = {
  preset: 'ovms',
  deviceOf: same,
  steps: { time: 1000, coordinate: 1 },
  openings: none,
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
  steps: { time: 1, coordinate: 1 },
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

const kmhPerKnot = 1.852

const traccar: Format = {
  preset: 'traccar-forward',
  deviceOf: same,
  steps: { time: 1, coordinate: 1 },
  openings: none,
  messages: (device, { time, latitude, longitude, speed, heading }, index) => {
    const at = new Date(time).toISOString().replace('Z', '+00:00')
    const position = {
      deviceTime: at,
      fixTime: at,
      valid: true,
      latitude: degrees(latitude),
      longitude: degrees(longitude),
      speed: speed / kmhPerKnot,
      course: heading,
      attributes: { motion: speed > 5 },
    }
    return [sent('positions', { position, device: { uniqueId: device } }, index)]
  },
}

export const formats: readonly Format[] = [
  teltonikaJson,
  teltonikaCodec8,
  ownTracks,
  flespi,
  ovms,
  sparkplug,
  traccar,
]
