import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/simulate/seeded-random.ts'
import { formatNames, publicationOf } from '../../src/simulate/formats/formats.ts'
import { createVehicle, depot, distanceBetween } from '../../src/simulate/vehicle.ts'
import type { Reading } from '../../src/simulate/vehicle.ts'

const startAt = 1_763_700_000_000

function track(seed: number, options: { readings: number; everyMs: number }): Reading[] {
  const vehicle = createVehicle(seededRandom(seed), { device: 'truck-1', startAt })
  return Array.from({ length: options.readings }, (_, index) =>
    vehicle.drive(startAt + index * options.everyMs),
  )
}

describe('a simulated vehicle', () => {
  test('drives the same track for the same seed, and another one for another seed', () => {
    const options = { readings: 300, everyMs: 1000 }
    expect(track(7, options)).toEqual(track(7, options))
    expect(track(7, options).at(-1)).not.toEqual(track(8, options).at(-1))
  })

  test.each([1, 2, 3, 4, 5])('with seed %i stays within the limits of a truck over eight hours', (seed) => {
    const readings = track(seed, { readings: 8 * 3600, everyMs: 1000 })
    const steps = readings.slice(1).map((after, index) => ({ before: readings[index] ?? after, after }))
    const worst = (of: (step: { before: Reading; after: Reading }) => number) =>
      steps.reduce((most, step) => Math.max(most, of(step)), Number.NEGATIVE_INFINITY)
    expect(worst(({ after }) => after.speedKmh)).toBeLessThanOrEqual(85)
    expect(worst(({ after }) => after.headingDeg)).toBeLessThan(360)
    expect(worst(({ after }) => -after.headingDeg)).toBeLessThanOrEqual(0)
    expect(worst(({ after }) => distanceBetween(depot, after))).toBeLessThan(125_000)
    expect(worst(({ before, after }) => Math.abs(after.speedKmh - before.speedKmh))).toBeLessThan(5.2)
    expect(worst(({ before, after }) => before.odometerKm - after.odometerKm)).toBeLessThanOrEqual(0)
    expect(worst(({ before, after }) => before.engineHours - after.engineHours)).toBeLessThanOrEqual(0)
    expect(worst(({ after }) => (after.moving ? 0 : after.speedKmh))).toBe(0)
    expect(readings.map(({ sequence }) => sequence)).toEqual(readings.map((_, index) => index + 1))
    const movedM = steps.reduce((sum, { before, after }) => sum + distanceBetween(before, after), 0)
    const [first, last] = [readings[0], readings.at(-1)]
    const byOdometerKm = (last?.odometerKm ?? 0) - (first?.odometerKm ?? 0)
    // The odometer and the positions tell the same story; turning and rounding cost a little.
    expect(byOdometerKm).toBeGreaterThan(100)
    expect(Math.abs(movedM / 1000 / byOdometerKm - 1)).toBeLessThan(0.01)
    expect((last?.engineHours ?? 0) - (first?.engineHours ?? 0)).toBeCloseTo(8, 1)
    expect(readings.some(({ moving }) => !moving)).toBe(true)
  })

  test('starts in the yard of the depot', () => {
    const [first] = track(3, { readings: 1, everyMs: 1000 })
    expect(first && distanceBetween(depot, first)).toBeLessThan(300)
  })

  test('never gives two readings the same time, also when the clock is set back', () => {
    const vehicle = createVehicle(seededRandom(1), { device: 'truck-1', startAt })
    const times = [startAt, startAt, startAt - 60_000, startAt + 5].map((at) => vehicle.drive(at).at)
    expect(times).toEqual([startAt + 1, startAt + 2, startAt + 3, startAt + 5])
  })

  test('computes a day without messages in a short time', () => {
    const vehicle = createVehicle(seededRandom(1), { device: 'truck-1', startAt })
    const before = vehicle.drive(startAt + 1)
    const after = vehicle.drive(startAt + 86_400_000)
    expect(after.engineHours - before.engineHours).toBeCloseTo(24, 2)
  })
})

describe('the format telemetry-v1', () => {
  test('is valid for the example mapping, in about 320 bytes', () => {
    expect(formatNames).toContain('telemetry-v1')
    const reading = track(7, { readings: 100, everyMs: 1000 })[99]
    if (reading === undefined) throw new Error('no reading')
    const { topic, bytes } = publicationOf('telemetry-v1', reading)
    expect(topic).toBe('telemetry/v1/truck-1')
    expect(JSON.parse(bytes.toString())).toMatchObject({
      ts: reading.at,
      gps: {
        lat: reading.latitude,
        lon: reading.longitude,
        speed: reading.speedKmh,
        heading: reading.headingDeg,
        moving: reading.moving,
      },
      odometer: { value: reading.odometerKm },
      engineHours: { value: reading.engineHours },
    })
    expect(bytes.length).toBeGreaterThan(300)
    expect(bytes.length).toBeLessThan(350)
  })
})
