import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import {
  createThin,
  metresBetween,
  type ThinRules,
  type ThinSample,
} from '../../../src/mapping/filters/thin.ts'

const nothing = { signal: false }

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

const every10s = { every: 10_000 }
const everyMinute = { every: 60_000 }
/** Some 22 m. */
const step = 0.000_2
const ignition = ['ignition 1', 'ignition 1', 'ignition 0'].map((values, time) => ({ time, values }))
const moving = [true, true, false, false, true].map((one, time) => ({ time, moving: one }))
const times = (...all: number[]) => all.map((time) => ({ time }))

describe('thinning', () => {
  test.each<[rule: string, options: Partial<ThinRules>, readings: Reading[], passing: number[]]>([
    ['one per interval of device time', every10s, times(0, 4000, 9999, 10_000, 12_000, 25_000), [0, 3, 5]],
    [
      'what is far from the last one that passed, however slow the movement',
      { distance: 50 },
      [0, 1, 2, 3, 4, 5, 6].map((n) => ({ time: n, latitude: 48 + n * step })),
      [0, 3, 6],
    ],
    [
      'a change of heading, also across north',
      { heading: 30 },
      [350, 10, 20, 355, 200].map((heading, time) => ({ time, heading })),
      [0, 2, 4],
    ],
    ['where the asset starts or stops moving', everyMinute, moving, [0, 2, 4]],
    ['a changed signal with `signal: true`', { ...everyMinute, signal: true }, ignition, [0, 2]],
    ['no changed signal without it', everyMinute, ignition, [0]],
    ['what is older, which does not affect later ones', every10s, times(50_000, 20_000, 55_000), [0, 1]],
    [
      'positions, odometers and devices independently',
      every10s,
      [{ time: 0 }, { time: 1, shape: 'odometer' }, { time: 2, device: 'truck-8' }, { time: 3 }],
      [0, 1, 2],
    ],
    [
      'a duplicate like its original',
      every10s,
      times(0, 5000, 10_000, 15_000, 0, 5000, 10_000, 15_000),
      [0, 2, 4, 6],
    ],
  ])('passes %s', (_rule, options, readings, passing) => {
    const { passes } = createThin({ ...nothing, ...options })
    const passed = readings.map((reading) => passes(sampleOf(reading)))
    expect(passed).toEqual(readings.map((_, index) => passing.includes(index)))
  })

  test('treats equal payloads as two readings unless the device marks a duplicate', () => {
    const { passes } = createThin({ ...nothing, every: 10_000 })
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
        const options = { ...nothing, every: 10_000, distance: 200 }
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
