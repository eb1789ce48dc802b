// doubtful-positions.test.ts: what looks like a position in the messages of trackers and is none, or is not of
// the time of its message. Beside each is what looks alike and must still be read.

import { describe, expect, test } from 'vitest'
import { array, assert, constantFrom, double, property, record } from 'fast-check'
import { findPositions, isNoFix, type FoundPosition } from '../../../src/mapping/positions/positions.ts'

const at = { latitude: 48.137154, longitude: 11.576124 }
const nine = Date.UTC(2025, 11, 30, 9)

function shortOf({ latitude, longitude, time, ...rest }: FoundPosition): unknown {
  if (isNoFix({ latitude, longitude, time, ...rest })) return 'no fix'
  return [Number(latitude), Number(longitude), ...(Number.isNaN(time) ? [] : [time])]
}

function shortIn(decoded: unknown): unknown {
  return (findPositions(decoded) ?? []).map(shortOf)
}

const here = [at.latitude, at.longitude]

describe('no position is made of', () => {
  test.each([
    ['degrees with minutes beside them', { lat_deg: 48, lat_min: 8, long_deg: 11, long_min: 34 }],
    ['the same as objects', { latitudeDegrees: { value: 48 }, latitudeMinutes: { value: 8 }, longitude: 11 }],
    ['degrees with the minutes of one of them', { lat: 48, lon: 11, lon_seconds: 12 }],
    ['half of one with minutes', { lat_deg: 48, lat_min: 8 }],
    ['the bits of satellites', { satcnthill: { satinfix: 6, latitude: 32, longitude: 64 } }],
    ['where a solver begins to search', { assistanceLatitude: 48.1, gnss_assist_position: [48.1, 11.6] }],
  ])('%s', (_what, decoded) => {
    expect(findPositions(decoded)).toBeUndefined()
  })

  test.each([
    ['all bits set', { latitude: -0.000001, longitude: -0.000001 }],
    ['wrong steps near zero', { lat: 0.0000048, lon: 0.0000012 }],
    ['a full integer of 28 bits', { latitude: 268.435455, longitude: 268.435455 }],
    ['a full integer of 32 bits', { latitude: 214.7483647, longitude: 214.7483647 }],
    ['a full integer of 32 bits, rounded', { latitude: '-2147.48365', longitude: '-2147.48365' }],
    ['a full integer of 24 bits', { latitude: 838.8607, longitude: 838.8607 }],
    ['a full integer in the longitude', { latitude: 48.1, longitude: 429.4967295 }],
    ['a full integer in the latitude', { latitude: 214.7483647, longitude: 11.5 }],
    ['a position that is not fresh', { ...at, freshGPS: false }],
    ['a void position', { ...at, status: 'V' }],
    ['a failed fix by its status', { ...at, posStatus: 'GPS NOK' }],
    ['no satellites, by other names', { gps: { ...at, numSvs: 0 } }],
    ['no satellites, counted', { ...at, SatCnt: 0 }],
    ['"no fix" in an object beside it', { decoded: { gps: 'No fix' }, location: '(48.137154,11.576124)' }],
    ['a position of the log without its time', { log_coordinates: at }],
    ['stored points without their time', { stored_points: [at] }],
  ])('%s: no fix', (_what, decoded) => {
    expect(shortIn(decoded)).toEqual(['no fix'])
  })
})

describe('a position is still read', () => {
  test.each([
    ['beside the bounds of a map', { ...at, lat_min: 48, lat_max: 49, lon_min: 11, lon_max: 12 }],
    [
      'beside objects of others',
      { ...at, wifi: { status: 'no fix' }, light: { valid: false, fix: 'loose' } },
    ],
    ['beside a receiver that is in order', { ...at, states: { gps: 'ok', fix: '3D' } }],
    ['beside a list of satellites', { ...at, satellites: [{ prn: 4, azimuth: 91, elevation: 40 }] }],
    ['with a status in words', { ...at, status: 'Valid' }],
    [
      'beside bits of satellites',
      { satcnthill: { latitude: 32, longitude: 64 }, lati: 48.137154, long: 11.576124 },
    ],
    ['with the sign of degrees', { latitude: '48.137154°', longitude: '11.576124 °' }],
    ['with the sign of degrees in one text', { location: '48.137154°, 11.576124°' }],
    ['beside an hour of its schedule', { ...at, hour: 4, minute: 30 }],
    ['that is fresh', { ...at, fresh: true }],
  ])('%s', (_how, decoded) => {
    expect(shortIn(decoded)).toEqual([here])
  })

  test('on the equator and on the meridian of Greenwich', () => {
    expect(shortIn({ latitude: 0.0004, longitude: 9.4 })).toEqual([[0.0004, 9.4]])
    expect(shortIn({ latitude: 51.4, longitude: -0.0004 })).toEqual([[51.4, -0.0004]])
  })
})

describe('the time of a fix is read', () => {
  const parts = { year: 2025, month: 12, day: 30, hour: 9, minute: 0, second: 0 }

  test.each([
    [{ ...at, ...parts }],
    [
      {
        utc: { year_utc: 25, month_utc: 12, day_utc: 30, hour_utc: 9, minute_utc: 0, second_utc: 0 },
        gps: at,
      },
    ],
    [{ ...at, time: '2025-12-30 04:00:00', timezone: 'UTC-05:00' }],
    [{ ...at, timezone: '+0530', time: '2025-12-30 14:30:00' }],
    [{ ...at, date: '2025-12-30', time: '10:00:00', tz: 'GMT+1' }],
    [{ ...at, time: '2025-12-30T09:00:00Z', timezone: 'UTC-05:00' }],
    [{ ...at, time: '2025-12-30T10:00:00+01:00', timezone: 'UTC+01:00' }],
    [{ ...at, timestamp: nine / 1000, timezone: 'UTC-05:00' }],
    [{ ...at, timestamp: String(nine), timezone: 'UTC-05:00' }],
    [{ ...at, time: 'Tue Dec 30 09:00:00 GMT 2025', timezone: 'UTC-05:00' }],
    [{ ...at, time: '2025-12-30 09:00:00', timezone: 8 }],
    [{ ...at, time: '2025-12-30 09:00:00', timezone: 'Europe/Berlin' }],
    [{ log_all: [{ ...parts, lattitude: at.latitude, longitude: at.longitude }] }],
    [{ stored_position: { ...at, time: '2025-12-30T09:00:00Z' } }],
  ])('in %j', (decoded) => {
    expect(shortIn(decoded)).toEqual([[...here, nine]])
  })
})

test('a mark of a missing fix beside a position, or around it, is never lost', () => {
  const mark = constantFrom<Record<string, unknown>>(
    { fix: false },
    { status: 'V' },
    { sats: 0 },
    { SatCnt: 0 },
    { gps_status: 'no fix' },
    { freshGPS: false },
    { info: { gps: 'No fix' } },
    { message: 'GPS_TIMEOUT' },
  )
  const place = record({
    latitude: double({ min: -90, max: 90, noNaN: true }),
    longitude: double({ min: -180, max: 180, noNaN: true }),
  })
  const wraps = array(constantFrom('gps', 'position', 'data', 'payload'), { maxLength: 3 })
  assert(
    property(place, mark, wraps, (position, said, keys) => {
      const decoded = keys.reduce<object>((inner, key) => ({ [key]: inner }), { ...position, ...said })
      expect((findPositions(decoded) ?? []).every(isNoFix)).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('each key that was read is named, also of the parts of a time', () => {
  const read: string[] = []
  findPositions(
    {
      ...at,
      year: 2025,
      month: 12,
      day: 30,
      hour: 9,
      minute: 0,
      second: 0,
      tz: 'UTC',
      info: { gps: 'No fix' },
    },
    (_holder, key) => read.push(key),
  )
  expect([...new Set(read)].sort()).toEqual(
    ['day', 'gps', 'hour', 'latitude', 'longitude', 'minute', 'month', 'second', 'tz', 'year'].sort(),
  )
})
