import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { messageOf } from '../../support/mapping-world.ts'
import { openStates } from '../../support/state-world.ts'

const samples = join(process.env['TELEMETRY_TEST_DATA'] ?? '', 'samples')

/** A sequence of scalar messages as it is recorded. */
type Line = { dtMs: number; topic: string; payload: string; retain: boolean }
type Expected = { device: string; signalTimestamp: number | null; gps?: object; signals?: object[] }

const position = (latitude: string, longitude: string) => ({
  latitude: { path: latitude },
  longitude: { path: longitude },
})

const speed = { path: 'speed' }
const odometer = (path: string) => [{ type: 'OBD_LIFETIME_ODOMETER', path, unit: 'km' }]
const in_motion = { from: 'speed', above: 0 }

const teslamate = {
  name: 'teslamate',
  topic: 'teslamate/cars/{device}/{metric}',
  encoding: 'scalar',
  retained: 'ignore',
  coalesce: { name: '{metric}', require: ['latitude', 'longitude'] },
  map: {
    ...position('latitude', 'longitude'),
    speed,
    heading: { path: 'heading' },
    in_motion,
    signals: odometer('odometer'),
  },
}

const ovms = {
  name: 'ovms',
  topic: 'ovms/+/{device}/metric/{metric#}',
  encoding: 'scalar',
  coalesce: { name: '{metric}', require: ['v/p/latitude', 'v/p/longitude'] },
  map: {
    time: { path: '"m/time/utc"', format: 's', missing: 'arrival' },
    ...position('"v/p/latitude"', '"v/p/longitude"'),
    speed: { path: '"v/p/speed"' },
    heading: { path: '"v/p/direction"' },
    in_motion,
    signals: odometer('"v/p/odometer"'),
  },
}

const openxc = {
  name: 'openxc',
  topic: 'openxc/{device}',
  coalesce: {
    name: { path: 'name' },
    time: { path: 'timestamp', format: 's-float' },
    require: ['latitude', 'longitude'],
  },
  map: {
    ...position('latitude', 'longitude'),
    speed: { path: 'vehicle_speed' },
    in_motion,
    signals: odometer('odometer'),
  },
}

const victron = {
  name: 'victron',
  topic: 'N/{device}/gps/+/Position/{metric}',
  coalesce: { name: '{metric}', require: ['Latitude', 'Longitude'] },
  map: position('Latitude', 'Longitude'),
}

const start = 1_770_000_000_000

describe.skipIf(!existsSync(samples))('the samples of scalar formats (TELEMETRY_TEST_DATA)', () => {
  test.each([
    ['teslamate/1', teslamate],
    ['teslamate/2', teslamate],
    ['ovms/1', ovms],
    ['ovms/3', ovms],
    ['openxc/1', openxc],
    ['victron-gps/1', victron],
  ])('%s', (name, config) => {
    const lines = readFileSync(join(samples, `${name}.seq.ndjson`), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    const { expect: expected } = JSON.parse(readFileSync(join(samples, `${name}.expect.json`), 'utf8')) as {
      expect: Expected[]
    }
    for (const restarting of [false, true]) {
      const world = openStates([config])
      let at = start
      for (const { dtMs, topic, payload, retain } of lines) {
        at = start + dtMs
        world.tick(at)
        if (restarting) world.restart()
        world.deliver(messageOf(payload, { topic, arrivedAt: at, retain }))
      }
      world.tick(at + 60_000)
      const sent = world.payloads.map(({ json, device, deviceTime }) => {
        const { gps, signals } = JSON.parse(json) as { gps?: object; signals?: { id: string }[] }
        return {
          device,
          signalTimestamp: deviceTime,
          ...(gps && { gps }),
          ...(signals && { signals: signals.map(({ id: _id, ...signal }) => signal) }),
        }
      })
      expect(sent).toEqual(
        expected.map(({ device, signalTimestamp, gps, signals }) => ({
          device,
          signalTimestamp,
          ...(gps && { gps }),
          ...(signals && { signals }),
        })),
      )
    }
  })
})
