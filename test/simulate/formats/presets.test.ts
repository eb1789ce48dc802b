import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../src/simulate/seeded-random.ts'
import { formatNames, publicationOf } from '../../../src/simulate/formats/formats.ts'
import { createVehicle } from '../../../src/simulate/vehicle.ts'
import { openPreset } from '../../support/samples.ts'

const startAt = 1_767_085_200_000

/** What a format rounds, and what it has not. */
const rounding: Record<
  string,
  { km?: number; hours?: number | null; speedKmh?: number; headingDeg?: number }
> = {
  'teltonika-codec8': { hours: 1, speedKmh: 0.5, headingDeg: 0.5 },
  'teltonika-json': { hours: 1, speedKmh: 0.5, headingDeg: 0.5 },
  'ruptela-json': { km: 1, hours: null, speedKmh: 0.5 },
  'traccar-forward': { hours: null },
  owntracks: { speedKmh: 0.5, headingDeg: 0.5 },
}

type Body = {
  signalTimestamp: number
  gps: { latitude: number; longitude: number; speed?: number; heading?: number; inMotion?: boolean }
  signals: { type: string; value: string }[]
}

describe.each(formatNames)('the simulated format %s', (format) => {
  test('is read by the preset of its name: position, time, motion, odometer and hours', async () => {
    const preset = format === 'telemetry-v1' ? 'simulator' : format
    const isTeltonika = format.startsWith('teltonika')
    const mapper = await openPreset(preset, isTeltonika ? { model: 'FMC650' } : {})
    const vehicle = createVehicle(seededRandom(3), { device: '864636060000001', startAt })
    const { km = 0, hours = 0, speedKmh = 0, headingDeg = 0 } = rounding[format] ?? {}
    const sender = { clientId: 'sim', userName: null, certificateName: null, identity: null }
    for (let minute = 1; minute < 200; minute += 1) {
      const reading = vehicle.drive(startAt + minute * 60_000)
      const { topic, bytes } = publicationOf(format, reading)
      const arrivedAt = reading.at + 500
      const result = mapper.map({ topic, bytes, qos: 1, retain: false, dup: false, sender, arrivedAt })
      if (result.kind !== 'payloads') throw new Error(JSON.stringify(result))
      const [payload, ...others] = result.payloads
      expect(others).toEqual([])
      const body = JSON.parse(payload?.json ?? '') as Body
      expect(payload?.device).toMatch(/^(fleet\/)?864636060000001$/)
      expect(body.signalTimestamp).toBe(reading.at)
      expect(body.gps.latitude).toBeCloseTo(reading.latitude, 6)
      expect(body.gps.longitude).toBeCloseTo(reading.longitude, 6)
      expect(body.gps.inMotion).toBe(reading.moving)
      expect(Math.abs((body.gps.speed ?? 0) - reading.speedKmh)).toBeLessThanOrEqual(speedKmh + 0.001)
      // On a circle: 359.9 may be written as 0.
      const turned = Math.abs((body.gps.heading ?? 0) - reading.headingDeg)
      expect(Math.min(turned, 360 - turned)).toBeLessThanOrEqual(headingDeg + 0.001)
      const valueOf = (type: string) => Number(body.signals.find((signal) => signal.type === type)?.value)
      expect(Math.abs(valueOf('OBD_LIFETIME_ODOMETER') - reading.odometerKm)).toBeLessThanOrEqual(km + 0.001)
      const hoursOff = hours === null ? 0 : Math.abs(valueOf('OBD_TOTAL_ENGINE_TIME') - reading.engineHours)
      expect(hoursOff).toBeLessThanOrEqual((hours ?? 0) + 0.001)
      expect(body.signals).toHaveLength(hours === null ? 1 : 2)
    }
  })
})
