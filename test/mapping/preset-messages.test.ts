// Messages of presets that are too large, or too many, for a file of cases.

import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { messageOf, payloadsIn, sentIn, verdictOf } from '../support/mapping-world.ts'
import { loadTrials } from './fuzz.ts'

const trials = await loadTrials()

function map(preset: string, message: Message) {
  const trial = trials.find((one) => one.preset === preset)
  if (!trial) throw new Error(`There is no preset ${preset}.`)
  return trial.open().map(message)
}

/** A page of /history: `readings` positions and as many odometers, shared among `vehicles`. */
function page(vehicles: number, readings: number) {
  const data = Array.from({ length: vehicles }, (_, index) => ({
    id: `${index}`,
    gps: [],
    obdOdometerMeters: [],
  }))
  for (let at = 0; at < readings; at += 1) {
    const time = new Date(1_740_000_000_000 + at * 1000).toISOString()
    const vehicle = data[at % vehicles] as { gps: unknown[]; obdOdometerMeters: unknown[] }
    vehicle.gps.push({ time, latitude: 32.7, longitude: -96.7, speedMilesPerHour: 40 })
    vehicle.obdOdometerMeters.push({ time, value: 1000 + at })
  }
  return messageOf({ data }, { topic: 'bridge/samsara/history' })
}

test('a page of Samsara becomes a payload of its own for each reading, up to 10,000', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 512 }), fc.integer({ min: 1, max: 2000 }), (vehicles, readings) => {
      const sent = payloadsIn(map('samsara', page(vehicles, readings)))
      expect(sent).toHaveLength(2 * readings)
      expect(new Set(sent.map(({ payloadId }) => payloadId)).size).toBe(2 * readings)
    }),
    { numRuns: 4 },
  )
  expect(map('samsara', page(512, 5000))).toMatchObject({ kind: 'payloads' })
  expect(verdictOf(map('samsara', page(512, 5001)))).toBe('TOO_MANY')
})

const uplinks: [string, string, (decoded: object, mast: object) => object][] = [
  [
    'chirpstack',
    'application/a/device/0018b200000000aa/event/up',
    (object, location) => ({ time: '2025-01-30T09:00:01Z', fPort: 2, object, rxInfo: [{ location }] }),
  ],
  [
    'the-things-stack',
    'v3/depot@ttn/devices/trailer-1/up',
    (decoded_payload, location) => ({
      uplink_message: { received_at: '2025-01-30T09:00:01Z', decoded_payload, rx_metadata: [{ location }] },
    }),
  ],
]

test.each(uplinks)(
  '%s finds a Cayenne position on any channel, and never that of a mast',
  (preset, topic, of) => {
    const channel = fc.nat(255)
    const degrees = fc.record({
      // At least a degree from the equator: near 0, 0 there is no position.
      latitude: fc.integer({ min: 10_000, max: 890_000 }).map((each) => each / 10_000),
      longitude: fc.integer({ min: -1_790_000, max: 1_790_000 }).map((each) => (each || 1) / 10_000),
    })
    const noise = fc.dictionary(
      fc.constantFrom('temperature_1', 'gps_fix_quality', 'humidity_2', 'analog_in_3', 'gps_note', 'battery'),
      fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constant('ok')),
    )
    fc.assert(
      fc.property(channel, degrees, degrees, noise, fc.boolean(), (number, place, mast, values, nested) => {
        const position = nested ? { gpsLocation: { [number]: place } } : { [`gps_${number}`]: place }
        const rest = { topic, arrivedAt: 1_760_000_000_000 }
        expect(sentIn(map(preset, messageOf(of({ ...values, ...position }, mast), rest))).gps).toMatchObject(
          place,
        )
        expect(verdictOf(map(preset, messageOf(of(values, mast), rest)))).toBe('nothing to send')
      }),
      { numRuns: 200 },
    )
  },
)
