import {
  array,
  assert as check,
  double,
  integer,
  oneof,
  property,
  record as fields,
  shuffledSubarray,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/domain/message.ts'
import { judge, type CounterReset } from '../../../src/mapping/memory/counter-memory.ts'
import type { CounterState } from '../../../src/mapping/memory/device-memory.ts'
import { messageOf, openMapperOf, payloadIn, truckSource, type World } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const minute = 60_000
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }
const hours = { type: 'OBD_TOTAL_ENGINE_TIME', path: 'hours', unit: 'h', part: 'ENGINE' }
const source = (rest = {}) => truckSource({ signals: [odometer, hours] }, rest)

function open(rest = {}, world: World = {}) {
  const resets: CounterReset[] = []
  const mapper = openMapperOf([source(rest)], { ...world, counterReset: (reset) => resets.push(reset) })
  const give = (minutes: number, odo: number | string | undefined, more = {}) =>
    mapper.map(message(minutes, odo, more))
  return {
    mapper,
    resets,
    give,
    odo: (minutes: number, value: number | string) => odoIn(give(minutes, value)),
  }
}

function message(minutes: number, odo: number | string | undefined, more = {}): Message {
  return messageOf({ ts: ts + minutes * minute, lat: 48.1, lon: 2.3, odo, ...more })
}

type Result = ReturnType<ReturnType<typeof openMapperOf>['map']>

function signalsIn(result: Result): Record<string, string> {
  const { signals = [] } = JSON.parse(payloadIn(result).json) as {
    signals?: { type: string; value: string }[]
  }
  return Object.fromEntries(signals.map(({ type, value }) => [type, value]))
}

function odoIn(result: Result): string | undefined {
  return signalsIn(result)['OBD_LIFETIME_ODOMETER']
}

describe('an odometer', () => {
  test('is withheld at most twenty times', () => {
    const { odo, resets } = open()
    odo(0, 500_000)
    const sent = Array.from({ length: 21 }, (_, index) => odo(index + 1, 10 + (index % 2) * 10_000))
    expect(sent.filter((value) => value === undefined)).toHaveLength(20)
    expect(resets).toMatchObject([{ why: 'limit', withheld: 20 }])
  })

  test('that is sent every second is withheld for twenty minutes, and counts anew after ten', () => {
    const wild = open()
    wild.odo(0, 500_000)
    const sent = Array.from({ length: 1201 }, (_, index) =>
      wild.odo(index / 60 + 1, 10 + (index % 2) * 10_000),
    )
    expect(sent.filter((value) => value === undefined)).toHaveLength(1200)
    expect(wild.resets).toMatchObject([{ why: 'limit', withheld: 1200 }])
    const steady = open()
    steady.odo(0, 500_000)
    const counted = Array.from({ length: 601 }, (_, index) =>
      steady.odo(index / 60 + 1, 10 + Math.floor(index / 60)),
    )
    expect(counted.filter((value) => value === undefined)).toHaveLength(600)
    expect(steady.resets).toMatchObject([{ why: 'agreed', withheld: 600 }])
  })

  test('of a message that is mapped again is judged and changes nothing', () => {
    const { mapper, odo } = open()
    odo(0, 500_000)
    for (let index = 1; index < 30; index += 1) {
      const result = mapper.map(message(index, 10), false)
      expect([odoIn(result), result.writes]).toEqual([undefined, undefined])
    }
    expect(odo(31, 10)).toBeUndefined()
  })
})

/** Sent as it was measured. */
const arriving = (minutes: number, odo: number, engineHours: number): Message => ({
  ...message(minutes, odo, { hours: engineHours }),
  arrivedAt: ts + minutes * minute,
})

describe('a value that is no reading', () => {
  test('is not sent however often it comes, and the readings after it are', () => {
    const { give, odo, resets } = open()
    expect(odo(0, 48_212)).toBe('48212')
    for (let at = 5; at < 3 * 24 * 60; at += 5) expect(odoIn(give(at, 0, { hours: 7 }))).toBeUndefined()
    expect(odo(3 * 24 * 60, 48_212)).toBe('48212')
    expect(resets).toEqual([])
    const { give: hoursOf } = open()
    expect(signalsIn(hoursOf(0, 5, { hours: 4371 }))).toHaveProperty('OBD_TOTAL_ENGINE_TIME')
    for (let at = 5; at < 300; at += 5)
      expect(signalsIn(hoursOf(at, 5 + at, { hours: 0 }))).not.toHaveProperty('OBD_TOTAL_ENGINE_TIME')
    expect(signalsIn(hoursOf(301, 400, { hours: 4372 }))['OBD_TOTAL_ENGINE_TIME']).toBe('4372')
  })

  test('counts as a placeholder, which is no reason to look at the device', () => {
    const { mapper } = open()
    for (let at = 0; at < 60; at += 1) mapper.map(arriving(at, 0, 5))
    expect(mapper.counters().omitted.get('trucks|OBD_LIFETIME_ODOMETER|a placeholder')).toBe(60)
    expect([...mapper.suspects(ts + 60 * minute).withheld]).toEqual([])
  })
})

describe('a counter in another unit from one message to the next', () => {
  test.each([
    ['km as miles', 42_595, 42_595 / 1.609344],
    ['miles as km', 26_467, 26_467 * 1.609344],
    ['km as m', 425.9, 425_900],
  ])('is withheld although its readings agree, and the device is named (%s)', (_what, before, after) => {
    const { odo, resets, mapper } = open()
    expect(odo(0, before)).toBe(String(before))
    for (let at = 1; at < 3000; at += 5)
      expect(odoIn(mapper.map(arriving(at, Math.round(after + at / 60), 1 + at / 60)))).toBeUndefined()
    expect(resets).toEqual([])
    const { withheld } = mapper.suspects(ts + 3000 * minute)
    expect(withheld.get('trucks')).toMatchObject({ device: 'truck-7', reason: 'another unit' })
    expect(odo(3001, before + 30)).toBe(String(before + 30))
  })

  test.each([5, 60, 240])(
    'is withheld, too, where the vehicle drove on for %i minutes meanwhile',
    (minutes) => {
      const { odo, resets } = open()
      odo(0, 20_000)
      const miles = (at: number) => Math.round((20_000 + at) / 1.609344)
      for (let at = minutes; at < minutes + 600; at += 10) expect(odo(at, miles(at))).toBeUndefined()
      expect(resets).toEqual([])
      expect(odo(minutes + 601, 20_000 + minutes + 601)).toBeDefined()
    },
  )
})

test('equal readings do not agree with each other, so that a stuck value is withheld for a day', () => {
  const { give, odo, resets } = open()
  odo(0, 500_000)
  for (let at = 1; at < 1400; at += 10) expect(odoIn(give(at, 12_345, { hours: 1 }))).toBeUndefined()
  expect(resets).toEqual([])
  expect(odo(1441, 12_345)).toBe('12345')
})

describe('for all readings', () => {
  const rule = { perHour: 250, slack: 1, step: 0, factors: [] }
  /** An odometer as a vehicle has it: it never falls, and grows by at most 120 km an hour. */
  const trip = array(
    fields({ minutes: integer({ min: 1, max: 600 }), speed: double({ min: 0, max: 120, noNaN: true }) }),
    {
      minLength: 1,
      maxLength: 40,
    },
  ).map((legs) => {
    let at = 0
    let value = 1000
    return legs.map(({ minutes, speed }) => {
      at += minutes
      value += (speed * minutes) / 60
      return { time: ts + at * minute, value: Math.floor(value), text: String(Math.floor(value)) }
    })
  })

  test('a plausible odometer is sent whatever the order in which it arrives', () => {
    check(
      property(
        trip.chain((readings) => shuffledSubarray(readings, { minLength: readings.length })),
        (readings) => {
          let state: CounterState | undefined
          for (const reading of readings) {
            const { kind, next } = judge(state, reading, rule)
            expect(kind).toBe('plausible')
            expect(next?.time).toBe(Math.max(state?.time ?? 0, reading.time))
            state = next ?? undefined
          }
        },
      ),
    )
  })

  test('whatever they are, at most twenty minutes of a row, or those of a day, are withheld', () => {
    const any = fields({
      seconds: oneof(integer({ min: 0, max: 90 }), integer({ min: 0, max: 20_000 })),
      value: integer({ min: 1, max: 30_000 }),
    })
    check(
      property(array(any, { maxLength: 120 }), (readings) => {
        let state: CounterState | undefined
        let time = ts
        let run: number[] = []
        let counted: number[] = []
        let before = Number.NaN
        for (const { seconds, value } of readings) {
          time += seconds * 1000 + 1
          const { kind, next, reset } = judge(state, { time, value }, rule)
          state = next ?? undefined
          const isSent = kind === 'plausible' || reset !== null
          // Another unit stays withheld until it is plausible, or a person decides.
          if (kind === 'other unit') return
          run = isSent ? [] : [...run, time]
          if (isSent) counted = []
          else if (time - (counted.at(-1) ?? 0) >= minute && value !== before) counted.push(time)
          before = value
          expect(counted.length).toBeLessThanOrEqual(20)
          expect((run.at(-1) ?? 0) - (run[0] ?? 0)).toBeLessThan(86_400_000)
        }
      }),
    )
  })
})
