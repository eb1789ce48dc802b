import { expect, test } from 'vitest'
import { namesReadBy } from '../../../src/mapping/path/paths-used.ts'

const names = (options: unknown) => [...namesReadBy(options)].toSorted()

test('a source uses the values with which its paths begin', () => {
  expect(
    names({
      map: {
        time: { path: ['m/time/utc', '$time'], format: 's' },
        latitude: { path: 'location.latitude' },
        longitude: { path: ['"v/p/longitude"', 'lon[0]'] },
        speed: { path: '$.speed' },
        signals: [{ type: 'X', path: 'odometer', when: 'ignition == "path" && !has(record["a b"].c)' }],
        fields: { 'gps.altitude': { path: '["v/p/altitude"]' } },
      },
      fix: {
        valid: 'record["v/p/gpslock"] in ["yes", 1, on] || topic.city != sat && -3 <= hdop',
        max_age: '60s',
      },
    }),
  ).toEqual([
    'a b',
    'hdop',
    'ignition',
    'location',
    'lon',
    'm/time/utc',
    'odometer',
    'on',
    'sat',
    'speed',
    'v/p/altitude',
    'v/p/gpslock',
    'v/p/longitude',
  ])
})

test('malformed paths and other options are ignored', () => {
  expect(
    names({ map: { a: { path: 'a[' }, b: { path: 7 }, c: null }, when: 'x == "', d: { when: 'x > 1' } }),
  ).toEqual(['x'])
  expect(names(undefined)).toEqual([])
})
