import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import {
  createThin,
  metresBetween,
  type ThinOptions,
  type ThinSample,
} from '../../../src/mapping/state/thin.ts'

const nothing = { everyMs: null, distanceM: null, headingDeg: null, signal: false, streamsMax: 1000 }

type Reading = Partial<Omit<ThinSample, 'windowKey'>> & { time: number }

function sampleOf(reading: Reading): ThinSample {
  const sample = {
    device: 'truck-7',
    shape: 'gps',
    resent: true,
    latitude: 48,
    longitude: 11,
    heading: Number.NaN,
    moving: null,
    values: '',
    ...reading,
  }
  return { ...sample, windowKey: hash('sha256', JSON.stringify(sample), 'hex').slice(0, 32) }
}

function fates(options: Partial<ThinOptions>, readings: readonly Reading[]): boolean[] {
  const { passes } = createThin({ ...nothing, ...options })
  return readings.map((reading) => passes(sampleOf(reading)))
}

describe('thinning', () => {
  test('passes one payload per interval of device time', () => {
    const times = [0, 4000, 9999, 10_000, 12_000, 25_000]
    expect(
      fates(
        { everyMs: 10_000 },
        times.map((time) => ({ time })),
      ),
    ).toEqual([true, false, false, true, false, true])
  })

  test('passes a payload far from the last one that passed, however slow the movement', () => {
    const step = 0.000_2 // some 22 m
    expect(
      fates(
        { distanceM: 50 },
        [0, 1, 2, 3, 4, 5, 6].map((n) => ({ time: n, latitude: 48 + n * step })),
      ),
    ).toEqual([true, false, false, true, false, false, true])
  })

  test('passes a change of heading, also across north', () => {
    expect(
      fates(
        { headingDeg: 30 },
        [350, 10, 20, 355, 200].map((heading, time) => ({ time, heading })),
      ),
    ).toEqual([true, false, true, false, true])
  })

  test('passes when the asset starts or stops moving', () => {
    expect(
      fates({ everyMs: 60_000 }, [
        { time: 0, moving: true },
        { time: 1, moving: true },
        { time: 2, moving: false },
        { time: 3, moving: false },
        { time: 4, moving: true },
      ]),
    ).toEqual([true, false, true, false, true])
  })

  test('passes a changed signal with `signal: true`', () => {
    const readings = ['ignition 1', 'ignition 1', 'ignition 0'].map((values, time) => ({ time, values }))
    expect(fates({ everyMs: 60_000, signal: true }, readings)).toEqual([true, false, true])
    expect(fates({ everyMs: 60_000 }, readings)).toEqual([true, false, false])
  })

  test('passes an older payload, which does not affect later ones', () => {
    expect(fates({ everyMs: 10_000 }, [{ time: 50_000 }, { time: 20_000 }, { time: 55_000 }])).toEqual([
      true,
      true,
      false,
    ])
  })

  test('thins positions, odometers and devices independently', () => {
    expect(
      fates({ everyMs: 10_000 }, [
        { time: 0 },
        { time: 1, shape: 'odometer' },
        { time: 2, device: 'truck-8' },
        { time: 3 },
      ]),
    ).toEqual([true, true, true, false])
  })

  test('gives a duplicate the result of its original', () => {
    const readings = [0, 5000, 10_000, 15_000].map((time) => ({ time }))
    expect(fates({ everyMs: 10_000 }, [...readings, ...readings])).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
      true,
      false,
    ])
  })

  test('treats equal payloads as two readings unless the device marks a duplicate', () => {
    const { passes } = createThin({ ...nothing, everyMs: 10_000 })
    const parked = { ...sampleOf({ time: 0 }), resent: false }
    expect(passes(parked)).toBe(true)
    expect(passes({ ...parked, time: 5000 })).toBe(false)
    expect(passes({ ...parked, time: 10_000 })).toBe(true)
    expect(passes({ ...parked, time: 10_001, resent: true })).toBe(true)
  })

  test('passes the same payloads if messages are sent again', () => {
    const reading = fc.record({
      time: fc.integer({ min: 0, max: 60_000 }),
      latitude: fc.double({ min: 48, max: 48.01, noNaN: true }),
      moving: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(reading, fc.nat(15)), { maxLength: 40 }), (readings) => {
        const options = { ...nothing, everyMs: 10_000, distanceM: 200 }
        const once = createThin(options)
        const again = createThin(options)
        const sent = new Set<string>()
        const sentAgain = new Set<string>()
        for (const [index, [one, back]] of readings.entries()) {
          const sample = sampleOf(one)
          if (once.passes(sample)) sent.add(sample.windowKey)
          if (again.passes(sample)) sentAgain.add(sample.windowKey)
          const before = readings[index - back]
          if (before === undefined) continue
          const copy = sampleOf(before[0])
          if (again.passes(copy)) sentAgain.add(copy.windowKey)
        }
        expect(sentAgain).toEqual(sent)
      }),
    )
  })
})

test('distances are great-circle distances', () => {
  const munich = { latitude: 48.137, longitude: 11.575 }
  expect(metresBetween(munich, { latitude: 52.52, longitude: 13.405 }) / 1000).toBeCloseTo(504.4, 0)
  expect(metresBetween(munich, munich)).toBe(0)
  expect(
    metresBetween({ latitude: 0, longitude: 179.999 }, { latitude: 0, longitude: -179.999 }),
  ).toBeCloseTo(222.39, 1)
  expect(metresBetween(munich, { latitude: Number.NaN, longitude: 1 })).toBeNaN()
})
