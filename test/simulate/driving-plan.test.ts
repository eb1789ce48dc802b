import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDrivingPlan } from '../../src/simulate/driving-plan.ts'
import { seededRandom } from '../../src/simulate/seeded-random.ts'
import { createVehicle } from '../../src/simulate/vehicle.ts'

const startAt = 1_763_700_000_000
const hourMs = 3_600_000

describe('the odometer of a simulated vehicle', () => {
  test('follows from its name and the time alone', () => {
    const [one, again, other] = ['truck-1', 'truck-1', 'truck-2'].map(createDrivingPlan)
    const later = startAt + 3 * hourMs
    expect(one?.odometerM(later)).toBe(again?.odometerM(later))
    expect(one?.odometerM(later)).not.toBe(other?.odometerM(later))
    expect(one?.speedMs(later)).toBe(again?.speedMs(later))
  })

  test('is the distance that its speeds give', () => {
    const plan = createDrivingPlan('truck-7')
    let drivenM = 0
    // Over the ends of legs and of a block.
    for (let second = 0; second < 3 * 3600; second += 1)
      drivenM += plan.speedMs(startAt + second * 1000 + 500)
    const byOdometerM = plan.odometerM(startAt + 3 * hourMs) - plan.odometerM(startAt)
    expect(Math.abs(drivenM / byOdometerM - 1)).toBeLessThan(0.0001)
  })

  test('never falls or jumps, whenever the simulator starts again', () => {
    const times = fc.array(fc.integer({ min: 0, max: 10 * 365 * 24 * hourMs }), {
      minLength: 2,
      maxLength: 20,
    })
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), times, fc.integer(), (device, after, seed) => {
        const readings = after
          .toSorted((a, b) => a - b)
          .flatMap((ms) => {
            // Each time another process, with a random of its own.
            const vehicle = createVehicle(seededRandom(seed + ms), { device, startAt: startAt + ms })
            return [vehicle.drive(startAt + ms), vehicle.drive(startAt + ms + 5000)]
          })
          .sort((a, b) => a.at - b.at)
        const steps = readings.slice(1).map((next, index) => {
          const last = readings[index] ?? next
          const hours = (next.at - last.at) / hourMs
          const [km, run] = [next.odometerKm - last.odometerKm, next.engineHours - last.engineHours]
          return km >= 0 && km <= 85 * hours + 0.13 && run >= 0 && run <= hours + 0.002
        })
        expect(steps).not.toContain(false)
      }),
    )
  })

  test('stays below what is plausible for years', () => {
    const plan = createDrivingPlan('truck-1')
    const in2040 = Date.UTC(2040, 0, 1)
    expect(plan.odometerM(in2040) / 1000).toBeLessThan(10_000_000)
    expect(plan.engineS(in2040) / 3600).toBeLessThan(200_000)
    expect(plan.odometerM(0)).toBe(plan.odometerM(Date.UTC(2024, 0, 1)))
  })
})
