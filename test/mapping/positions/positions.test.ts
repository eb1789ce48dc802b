import { describe, expect, test } from 'vitest'
import { findPositions, isNoFix, type FoundPosition } from '../../../src/mapping/positions/positions.ts'

const at = { latitude: 51.312745, longitude: 9.47971 }
const nine = Date.UTC(2025, 11, 30, 9)
const seconds = nine / 1000

function found(decoded: unknown): readonly FoundPosition[] {
  return findPositions(decoded) ?? []
}

/** `no fix`, or latitude, longitude, and the time or age where the decoder says it. */
function shortOf(position: FoundPosition | undefined): unknown {
  if (!position) return 'none'
  const { latitude, longitude, time, ageMs } = position
  if (isNoFix(position)) return 'no fix'
  const when = Number.isNaN(time) ? (Number.isNaN(ageMs) ? [] : [`${ageMs} ms ago`]) : [time]
  return [Number(latitude), Number(longitude), ...when]
}

const here = [at.latitude, at.longitude]

describe('a position is found', () => {
  test.each([
    ['by any usual name', { Lat: at.latitude, Long: at.longitude }],
    ['with the receiver in its name', { gps_latitude: at.latitude, gps_longitude: at.longitude }],
    ['with its unit in its name', { latitudeDeg: at.latitude, longitudeDeg: at.longitude }],
    ['as texts', { latitude: '51.312745', longitude: '9.47971' }],
    ['as a list', { location: [at.latitude, at.longitude] }],
    ['as a list with an altitude', { position: [at.latitude, at.longitude, 180] }],
    ['as a text', { location: '51.312745,9.47971' }],
    ['as a text with a blank', { gps: '51.312745, 9.47971' }],
    ['as a text in brackets', { coordinates: '[51.312745,9.47971]' }],
    ['as a GeoJSON point', { location: { type: 'Point', coordinates: [at.longitude, at.latitude] } }],
    [
      'as a GeoJSON feature',
      { type: 'Feature', geometry: { type: 'Point', coordinates: [9.47971, 51.312745] } },
    ],
    ['as a list of longitude and latitude by its name', { lnglat: [at.longitude, at.latitude] }],
    ['with hemispheres', { lat: '51.312745 N', lon: 'E9.47971' }],
    ['inside of an object', { gps: at }],
    ['inside of an object of another name', { payload: { tracker: { position: at } } }],
    ['as objects with a value', { latitude: { value: at.latitude }, longitude: { value: at.longitude } }],
    ['in a list of its own', { positions: [at] }],
    ['beside a lamp that is named LON', { Latitude: at.latitude, Longitud: at.longitude, LON: 'ON' }],
    ['on another channel where the first has zeros', { gps_1: { latitude: 0, longitude: 0 }, gps_2: at }],
    [
      'on another channel where the first is out of range',
      { gps_1: { latitude: 214.7, longitude: 214.7 }, gps_2: at },
    ],
    ['beside the text "0,0"', { location: '0,0', latitude: at.latitude, longitude: at.longitude }],
    ['beside that of a geofence', { geofence_center_config: { latitude: 1, longitude: 2 }, ...at }],
    ['beside that of its gateway', { gateways: [{ location: { latitude: 1, longitude: 2 } }], gps: at }],
    ['beside a timeout in seconds', { ...at, gps_timeout: 120, gnss_positioning_timeout: 60 }],
    ['beside a uptime that is no time', { ...at, time: 2036, timestamp: 0 }],
    [
      'in a list of named values',
      [
        { name: 'latitude', value: 51.312745 },
        { name: 'longitude', value: 9.47971 },
      ],
    ],
  ])('%s', (_how, decoded) => {
    const [position, ...others] = found(decoded)
    expect(shortOf(position)).toEqual(here)
    expect(others).toEqual([])
  })

  test.each([
    ['two numbers that can be meant both ways', { coordinates: [51.3, 9.4] }],
    ['a text', { position: 'normal', location: 'depot 4' }],
    ['three numbers of an acceleration', { acceleration: [0.1, 0.2, 9.8] }],
    ['the place of a geofence', { geofence: { latitude: 51.3, longitude: 9.4 } }],
    [
      'the home of a tracker',
      { home: { latitude: 51.3, longitude: 9.4 }, homeLatitude: 51.3, homeLongitude: 9.4 },
    ],
    ['nothing', {}],
  ])('and not in %s', (_what, decoded) => {
    expect(findPositions(decoded)).toBeUndefined()
  })

  test('with only one of its numbers it is half of one', () => {
    expect(found({ latitude: 51.3 })).toMatchObject([{ latitude: 51.3, longitude: undefined, isValid: true }])
  })
})

describe('a failed fix is seen', () => {
  test.each([
    { rawPositionType: 'GPS_TIMEOUT' },
    { fix: 0 },
    { fix: 'none' },
    { gpsFix: 'no' },
    { hasFix: false },
    { has_fix: 'false' },
    { gps_valid: 0 },
    { isGpsValid: false },
    { valid: 'V' },
    { fixFailed: true },
    { NoGNSSFix: 1 },
    { GNSSerror: 3 },
    { gps_timeout: true },
    { stale: true },
    { last_known: true },
    { sats: 0 },
    { satellites: '0' },
    { num_satellites: 0 },
    { gps: { sats: 0 } },
    { fixType: 0 },
    { fix_quality: 0 },
    { fixType: 'NO_FIX' },
    { gps_status: 'no fix' },
    { gps_status: 'searching' },
    { GPSState: 'no signal' },
    { positionStatus: 'Timed out' },
    { location_status: 'last known position' },
    { fix_status: { position: 0 } },
    { age: 'unknown' },
    { cached_fix: true },
    { positionSource: 'LAST_KNOWN' },
    { type: 'last_known' },
    { GPS: 'OFF' },
    { from_cache: true },
    { gps_enabled: false },
    { hdop: 99.9 },
    { satellites: { used: 0, visible: 4 } },
    { event: 'GPS_TIMEOUT' },
    { message: 'no fix' },
    { status: 'No GPS fix' },
    { gnss_error: 'none', info: 'fix lost' },
  ])('by %j', (mark) => {
    expect(shortOf(found({ ...at, ...mark })[0])).toBe('no fix')
    expect(shortOf(found({ position: at, ...mark })[0])).toBe('no fix')
  })

  test.each([
    [{ position: { ...at, status: 'failed' } }],
    [{ position: { ...at, valid: false } }],
    [{ latitude: 51.3, longitude: 0 }],
    [{ fixFailed: true, cached: { latitudeDeg: 51.3, longitudeDeg: 9.4 } }],
    [{ lastPosition: { ...at, age: 300 } }],
  ])('in %j', (decoded) => {
    expect(shortOf(found(decoded)[0])).toBe('no fix')
  })

  test.each([
    { fix: '3D' },
    { rawPositionType: 'GPS' },
    { gps_status: 'located' },
    { positionStatus: 'valid' },
    { gps_error: 0 },
    { valid: 'A' },
    { status: 'timeout of the button' },
    { last_report: true },
    { location: 'unknown' },
    { t: 21.5 },
    { source: 'gps' },
    { hdop: 1.2 },
    { event: 'prefix lockers' },
    { satellites: { used: 6 } },
    { sats: 7 },
    { age: '-' },
  ])('and not by %j', (mark) => {
    expect(shortOf(found({ ...at, ...mark })[0])).toEqual(here)
  })
})

describe('the time of a fix is read', () => {
  test.each([
    { time: '2025-12-30T09:00:00Z' },
    { timestamp: seconds },
    { timestamp: String(seconds) },
    { ts: nine },
    { utc: '2025-12-30 09:00:00' },
    { utc: { year: 2025, month: 12, day: 30, hour: 9, minute: 0, second: 0 } },
    { gps_utc: '2025/12/30 9:0:0' },
    { gpsTime: '2025-12-30T10:00:00+01:00' },
    { fix_timestamp: seconds },
    { lastFixTime: seconds },
    { Date: '2025:12:30', Time: '9:0:0' },
    { date: '2025-12-30', time: '09:00:00' },
    { gps: { time: seconds } },
    { header: { timestamp: '2025-12-30T09:00:00Z' } },
    { properties: { measured_at: '2025-12-30T09:00:00Z' } },
    { time: '"2025-12-30T17:00:00.000Z"' },
    { fixed_at: '2025-12-30T09:00:00Z' },
    { time_of_fix: seconds },
    { unix: seconds },
    { time: '30.12.2025 09:00:00' },
    { time: '30/12/2025 9:00' },
    { time: '12/30/2025 9:00' },
    { time: 'Tue Dec 30 09:00:00 GMT 2025' },
    { time: '2025-12-30T09:00:00Z', timestamp: seconds + 600 },
  ])('from %j', (said) => {
    expect(shortOf(found({ ...at, ...said })[0])).toEqual([...here, nine])
    expect(shortOf(found({ position: at, ...said })[0])).toEqual([...here, nine])
  })

  test.each([
    [{ age: 300 }, 300],
    [{ age: '5m' }, 300],
    [{ age: '5 min' }, 300],
    [{ age: '300s' }, 300],
    [{ age: '1h 5m ago' }, 3900],
    [{ age: '00:05:00' }, 300],
    [{ age: 'PT5M' }, 300],
    [{ age: '1.5 min' }, 90],
    [{ age: '250 ms' }, 0.25],
    [{ fixAge: '300' }, 300],
    [{ gps_age_minutes: 5 }, 300],
    [{ age_h: 2 }, 7200],
    [{ ageMs: 1500 }, 1.5],
    [{ time_since_fix: 300 }, 300],
    [{ last_fix_seconds_ago: 300 }, 300],
    [{ data_age: '5min' }, 300],
    [{ gps_age: { value: 5, unit: 'min' } }, 300],
    [{ minutesSinceLastFix: 5 }, 300],
    [{ position: { ...at, age: 300 } }, 300],
  ])('from the age in %j', (said, age) => {
    expect(shortOf(found({ ...at, ...said })[0])).toEqual([...here, `${age * 1000} ms ago`])
  })
})

describe('stored positions', () => {
  const three = [3, 2, 1].map((hours) => ({ ...at, timestamp: seconds - hours * 3600 }))
  const times = [3, 2, 1].map((hours) => nine - hours * 3_600_000)

  test.each([
    ['in a list', { history: three }],
    ['in a list beside the current one', { ...at, history: three }],
    [
      'with numbers',
      Object.fromEntries(
        three.flatMap(({ latitude, longitude, timestamp }, index) => [
          [`latitude${index + 1}`, latitude],
          [`longitude${index + 1}`, longitude],
          [`time${index + 1}`, timestamp],
        ]),
      ),
    ],
    [
      'as lists of named values',
      {
        valid: true,
        messages: three.map(({ latitude, longitude, timestamp }) => [
          { type: 'Longitude', measurementValue: String(longitude), timestamp: timestamp * 1000 },
          { type: 'Latitude', measurementValue: String(latitude), timestamp: timestamp * 1000 },
          { type: 'Battery', measurementValue: '80', timestamp: timestamp * 1000 },
        ]),
      },
    ],
    ['as objects side by side', Object.fromEntries(three.map((each, index) => [`p${index}`, each]))],
  ])('%s are found, each with its time', (_how, decoded) => {
    const stored = found(decoded).filter(({ time }) => !Number.isNaN(time))
    expect(stored.map(shortOf)).toEqual(times.map((time) => [...here, time]))
  })

  test('take nothing from what is beside their list', () => {
    const [current, ...stored] = found({ ...at, sats: 0, age: 60, history: three })
    expect(shortOf(current)).toBe('no fix')
    expect(stored.map(shortOf)).toEqual(times.map((time) => [...here, time]))
    expect(stored.map(({ part }) => part)).toEqual(three)
  })

  test('that are bad do not spoil the others', () => {
    const stored = found({ history: [{ ...three[0], latitude: 910 }, three[1], { ...three[2], fix: false }] })
    expect(stored.map(shortOf)).toEqual(['no fix', [...here, times[1]], 'no fix'])
  })

  test('are sent where the current position is out of range, or half of one', () => {
    const stored = times.map((time) => [...here, time])
    const outside = found({ latitude: 214.7, longitude: 214.7, history: three })
    expect(outside.map(shortOf)).toEqual(['no fix', ...stored])
    expect(found({ latitude: 51.3, history: three }).map(shortOf)).toEqual(stored)
  })

  test('without a time are not sent, except for the only one', () => {
    expect(found({ points: [at, { ...at, latitude: 52 }] }).map(shortOf)).toEqual(['no fix'])
    expect(found({ points: [{ button: 1 }, at] }).map(shortOf)).toEqual([here])
  })
})

test('each key that was read is named', () => {
  const read: string[] = []
  findPositions({ ...at, sats: 7, battery: 80, gps: { time: seconds } }, (_holder, key) => read.push(key))
  expect([...new Set(read)].sort()).toEqual(['latitude', 'longitude', 'sats', 'time'])
})

test.each(['type', 'sats', 'hdop', 'age', 'time', 'fix', 'latitude'])(
  'an object without a usable toString as %s breaks nothing',
  (key) => {
    const odd = { toString: 3, valueOf: 1 }
    for (const one of [{ [key]: odd }, { [key]: { used: odd } }, { [key]: [odd] }])
      expect(() => findPositions({ latitude: 51, longitude: 9, position: one, ...one })).not.toThrow()
  },
)
