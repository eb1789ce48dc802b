// What a privacy profile hides is hidden in every unit and under every usual name, and nothing else is.

import { expect, test } from 'vitest'
import { resultsOf, rowTime, type Row } from '../support/row-pipeline.ts'

type Hidden = 'speed' | 'odometer' | 'hours'
const all: readonly Hidden[] = ['speed', 'odometer', 'hours']

/** A signal by its type and other options, and what hides it. */
const signals: [type: string, options: Record<string, unknown>, hidden: Hidden | null][] = [
  ['OBD_LIFETIME_ODOMETER', { unit: 'km' }, 'odometer'],
  ['VEHICLE_MILEAGE', {}, 'odometer'],
  ['VEHICLE_MILEAGE', { value_unit: 'MILES' }, 'odometer'],
  ['TOTAL_DISTANCE', { value_unit: 'METERS' }, 'odometer'],
  ['TOTAL', { value_unit: 'MILES' }, 'odometer'],
  ['TACHO', { unit: '5m' }, 'odometer'],
  ['RANGE', { value_unit: 'KILOMETERS' }, 'odometer'],
  ['LIFE', { value_unit: 'FEET' }, 'odometer'],
  ['LIFE', { value_unit: 'yd' }, 'odometer'],
  ['LIFE', { value_unit: 'cm' }, 'odometer'],
  ['LIFE', { value_unit: 'hm' }, 'odometer'],
  ['LIFE', { value_unit: 'nautical miles' }, 'odometer'],
  ['LIFE', { value_unit: 'kilometres' }, 'odometer'],
  ['LIFE', { value_unit: '5 km' }, 'odometer'],
  ['LIFE', { quantity: 'distance' }, 'odometer'],
  ['LIFE', { quantity: 'none', value_unit: 'KILOMETERS' }, 'odometer'],
  ['odo', {}, 'odometer'],
  ['KM', {}, 'odometer'],
  ['tripKm', {}, 'odometer'],
  ['TOTAL_DIST', {}, 'odometer'],
  ['TOTAL_METERS', {}, 'odometer'],
  ['KILOMETERSTAND', {}, 'odometer'],
  ['OBD_TOTAL_ENGINE_TIME', { unit: 'h' }, 'hours'],
  ['ENGINE_HOURS', {}, 'hours'],
  ['ENGINE_HOURS', { value_unit: 'MINUTES' }, 'hours'],
  ['ENGINE_HRS', {}, 'hours'],
  ['ENGINE_SECS', {}, 'hours'],
  ['OPERATING_TIME', {}, 'hours'],
  ['IDLE', { value_unit: 'HRS' }, 'hours'],
  ['PTO', { value_unit: 'sec' }, 'hours'],
  ['PTO', { value_unit: 'ms' }, 'hours'],
  ['PTO', { value_unit: 'days' }, 'hours'],
  ['PTO', { unit: '0.05h' }, 'hours'],
  ['PTO', { quantity: 'engine_hours' }, 'hours'],
  ['TACHO_DRIVING', {}, 'hours'],
  ['VEHICLE_SPEED', {}, 'speed'],
  ['VEHICLE_SPEED', { value_unit: 'MILES_PER_HOUR' }, 'speed'],
  ['SPEED_KM_H', {}, 'speed'],
  ['WHEELS', { value_unit: 'km/h' }, 'speed'],
  ['WHEELS', { value_unit: 'm/s' }, 'speed'],
  ['WHEELS', { value_unit: 'cm/s' }, 'speed'],
  ['WHEELS', { value_unit: 'ft/s' }, 'speed'],
  ['WHEELS', { value_unit: 'kn' }, 'speed'],
  ['WHEELS', { quantity: 'speed' }, 'speed'],
  ['MPH', {}, 'speed'],
  ['SOG', {}, 'speed'],
  ['GPS_COURSE', {}, 'speed'],
  ['DIRECTION', {}, 'speed'],
  ['IN_MOTION', {}, 'speed'],
  ['MOVING', {}, 'speed'],
  ['VEL', {}, 'speed'],
  ['gpsSpd', {}, 'speed'],
  ['AZIMUTH', {}, 'speed'],
  ['GESCHWINDIGKEIT', {}, 'speed'],
  ['LAUFLEISTUNG', {}, 'odometer'],
  ['TRIP', {}, 'odometer'],
  ['BETRIEBSSTUNDEN', {}, 'hours'],
  ['PTO', { value_unit: 'std' }, 'hours'],
  ['FUEL_LEVEL_2', {}, null],
  ['FUEL_LEVEL', { value_unit: 'PERCENT' }, null],
  ['FUEL_RATE', { value_unit: 'l/h' }, null],
  ['LIFETIME_FUEL', { value_unit: 'L' }, null],
  ['TORQUE', { value_unit: 'Nm' }, null],
  ['CHARGE', { value_unit: 'kWh' }, null],
  ['COOLANT_TEMPERATURE', { value_unit: 'CELSIUS' }, null],
  ['BATTERY', { value_unit: 'VOLTS' }, null],
  ['PARAMETER_1', {}, null],
  ['RPM', {}, null],
]

const nameOf = (type: string, options: object, profile: string) =>
  `${type} ${JSON.stringify(options)} ${profile}`

test('a signal is hidden by what it measures', async () => {
  const rows: Record<string, Row> = {}
  for (const [type, options] of signals)
    for (const privacy of all)
      rows[nameOf(type, options, privacy)] = {
        privacy,
        map: { signals: [{ type, path: 'x', ...options }], speed: { path: 'v', unit: 'km/h' } },
        messages: [{ x: 5, v: 50 }],
      }
  const profiles = Object.fromEntries(all.map((one) => [one, { hide: [one] }]))
  const results = await resultsOf(rows, { privacy: { profiles } })
  const hiding = signals.map(([type, options]) => [
    type,
    options,
    all.filter((one) => results[nameOf(type, options, one)]?.sent[0]?.signals === undefined),
  ])
  expect(hiding).toEqual(
    signals.map(([type, options, hidden]) => [type, options, hidden === null ? [] : [hidden]]),
  )
  const speeds = all.map((one) => results[nameOf('RPM', {}, one)]?.sent[0]?.gps?.['speed'])
  expect(speeds).toEqual([undefined, 50, 50])
}, 60_000)

const rich: Row = {
  map: {
    speed: { path: 'v', unit: 'km/h' },
    heading: { path: 'h' },
    in_motion: { value: true },
    signals: ['FUEL_LEVEL', 'DRIVER_CARD', 'VEHICLE_MILEAGE', 'ENGINE_HOURS'].map((type) => ({
      type,
      path: 'x',
    })),
    fields: { 'gps.altitude': { path: 'a', type: 'number' }, driver: { path: 'd', type: 'text' } },
  },
  messages: [{ lat: 48.137_43, lon: -179.975_49, v: 50, h: 90, a: 520, x: 5, d: 'Ada' }],
}

/** Hours of a week in which the time of the message is none. */
const otherDays = [1, 2, 3]
  .map((days) =>
    new Date(rowTime + days * 86_400_000).toLocaleDateString('en-US', { weekday: 'short', timeZone: 'UTC' }),
  )
  .join(',')

test('outside of the working hours a position with one decimal is sent, or nothing', async () => {
  const hours = `${otherDays} 00:00-24:00`
  const place = (latitude: number, longitude: number) => [{ latitude, longitude }]
  const profiles = {
    coarse: { hide: ['odometer', 'hours'], hours, outside: 'coarse' },
    coarser: { round: 0, hours, outside: 'coarse' },
    drop: { hours },
    round: { round: 3 },
    hide: { hide: all },
  }
  const results = await resultsOf(
    Object.fromEntries(Object.keys(profiles).map((privacy) => [privacy, { ...rich, privacy }])),
    { privacy: { profiles } },
  )
  const sentOf = (name: string) => results[name]?.sent.map(({ device: _device, at: _at, ...rest }) => rest)
  expect(sentOf('coarse')).toEqual(place(48.1, -180).map((gps) => ({ gps })))
  expect(sentOf('coarser')).toEqual(place(48, -180).map((gps) => ({ gps })))
  expect(sentOf('drop')).toEqual([])
  expect(results['drop']?.refused).toEqual(['privacy'])
  expect(sentOf('round')).toMatchObject([{ gps: { latitude: 48.137, longitude: -179.975, speed: 50 } }])
  expect(sentOf('hide')).toEqual([
    {
      gps: { latitude: 48.137_43, longitude: -179.975_49 },
      signals: ['FUEL_LEVEL', 'DRIVER_CARD'].map((type) => ({ type, value: '5' })),
    },
  ])
})
