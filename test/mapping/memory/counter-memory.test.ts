import {
  array,
  assert as check,
  asyncProperty,
  boolean,
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
import { openKilledMapping } from '../../support/killed-mapping.ts'
import {
  messageOf,
  openMapperOf,
  payloadIn,
  truckSource,
  verdictOf,
  type World,
} from '../../support/mapping-world.ts'

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
  test('that grows by more than 250 km an hour is withheld, and the rest of the payload is sent', () => {
    const { give, odo, mapper } = open()
    expect(odo(0, 1000)).toBe('1000')
    expect(odo(60, 1251)).toBe('1251')
    const jumped = give(120, 1503, { hours: 10 })
    expect(signalsIn(jumped)).toEqual({ OBD_TOTAL_ENGINE_TIME: '10' })
    expect(JSON.parse(payloadIn(jumped).json)).toHaveProperty('gps')
    expect(mapper.withheldOf('truck-7')).toMatchObject([
      { field: 'OBD_LIFETIME_ODOMETER', reason: 'jump', count: 1, lastValue: 1503 },
    ])
    expect(mapper.counters().omitted.get('trucks|OBD_LIFETIME_ODOMETER|jump')).toBe(1)
  })

  test('that falls by more than one step of its resolution is withheld', () => {
    const { odo } = open()
    odo(0, 1000)
    expect(odo(1, 999)).toBe('999')
    expect(odo(2, 997)).toBeUndefined()
    const fine = open()
    fine.odo(0, 1000.5)
    expect(fine.odo(1, 1000.4)).toBe('1000.4')
    expect(fine.odo(2, 1000.2)).toBeUndefined()
    const metres = openMapperOf([truckSource({ signals: [{ ...odometer, unit: 'm' }] })])
    metres.map(message(0, 1_000_000))
    expect(odoIn(metres.map(message(1, 999_998)))).toBeUndefined()
  })

  test('is never compared with a newer reading', () => {
    const { odo } = open()
    odo(100, 5000)
    expect(odo(50, 10)).toBe('10')
    expect(odo(101, 5001)).toBe('5001')
  })

  test('counts anew when three readings over ten minutes agree with each other', () => {
    const { odo, resets } = open()
    odo(0, 500_000)
    expect([odo(1, 10), odo(6, 11), odo(10, 12)]).toEqual([undefined, undefined, undefined])
    expect(odo(11, 13)).toBe('13')
    expect(resets).toEqual([
      {
        source: 'trucks',
        device: 'truck-7',
        asset: 'truck-7',
        signal: 'OBD_LIFETIME_ODOMETER',
        before: 500_000,
        after: 13,
        withheld: 3,
        why: 'agreed',
      },
    ])
    expect(odo(12, 14)).toBe('14')
    expect(odo(13, 500_000)).toBeUndefined()
  })

  test('does not count anew by two readings, nor by readings that differ', () => {
    const { odo, resets } = open()
    odo(0, 500_000)
    expect([odo(1, 10), odo(30, 10), odo(31, 90_000), odo(60, 20), odo(70, 450_000)]).toEqual(
      [1, 2, 3, 4, 5].map(() => undefined),
    )
    expect(resets).toEqual([])
    expect(odo(71, 500_001)).toBe('500001')
  })

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

  test('is withheld for at most a day', () => {
    const { odo, resets } = open()
    odo(0, 500_000)
    expect(odo(1, 10)).toBeUndefined()
    expect(odo(24 * 60, 90_000)).toBeUndefined()
    expect(odo(24 * 60 + 1, 10)).toBe('10')
    expect(resets).toMatchObject([{ why: 'limit', withheld: 2 }])
  })

  test('of another asset is another odometer', () => {
    const table = (asset: string) => `device,asset_id\ntruck-7,${asset}\n`
    const before = open({}, { table: table('A') })
    const written = [...(before.give(0, 500_000).writes ?? [])].map(
      ({ key, value }) => [key, value ?? Buffer.alloc(0)] as const,
    )
    for (const [asset, sent] of [
      ['A', undefined],
      ['B', '10'],
    ] as const) {
      const { mapper, odo } = open({}, { table: table(asset) })
      mapper.restore(written)
      expect(odo(1, 10)).toBe(sent)
    }
  })

  test('is sent and counted with `flag`, and not compared with `off`', () => {
    const flagged = open({ plausibility: { odometer: { jumps: 'flag' } } })
    flagged.odo(0, 1000)
    expect(flagged.odo(1, 9000)).toBe('9000')
    expect(flagged.mapper.counters().flagged.get('trucks|OBD_LIFETIME_ODOMETER|jump')).toBe(1)
    const off = open({ plausibility: { odometer: { jumps: 'off' } } })
    off.odo(0, 1000)
    expect(off.odo(1, 9000)).toBe('9000')
    expect(off.mapper.withheldOf('truck-7')).toEqual([])
  })

  test('that is withheld has a share in the payloadId', () => {
    const fresh = open().give(1, 10, { hours: 5 })
    const { give } = open()
    give(0, 500_000)
    const withheld = give(1, 10, { hours: 5 })
    expect(payloadIn(withheld).payloadId).toBe(payloadIn(fresh).payloadId)
    const idOf = (result: Result) =>
      (JSON.parse(payloadIn(result).json) as { signals: { id: string }[] }).signals.at(-1)?.id
    expect(idOf(withheld)).toBe(idOf(fresh))
    expect(signalsIn(withheld)).toEqual({ OBD_TOTAL_ENGINE_TIME: '5' })
  })

  test('that is all a message has, and is withheld, leaves nothing to send', () => {
    const mapper = openMapperOf([
      truckSource({ signals: [odometer], latitude: undefined, longitude: undefined }),
    ])
    mapper.map(message(0, 500_000))
    expect(verdictOf(mapper.map(message(1, 10)))).toBe('not plausible')
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

test('that was forgotten for one signal, or altogether, begins anew, also after a kill', async () => {
  const world = await openKilledMapping([source()])
  await world.deliver(message(0, 500_000, { hours: 900 }))
  expect(await world.forget('truck-8', null)).toBe(0)
  expect(await world.forget('truck-7', 'OBD_LIFETIME_ODOMETER')).toBe(1)
  await world.kill()
  expect(signalsIn(await world.deliver(message(1, 10, { hours: 5 })))).toEqual({
    OBD_LIFETIME_ODOMETER: '10',
  })
  expect(await world.forget('truck-7', null)).toBe(2)
  expect(world.mapper.map(message(2, 900, { hours: 5 })).kind).toBe('payloads')
  await world.kill()
  expect(signalsIn(await world.deliver(message(2, 7, { hours: 5 })))).toEqual({
    OBD_LIFETIME_ODOMETER: '7',
    OBD_TOTAL_ENGINE_TIME: '5',
  })
})

test('engine hours grow by an hour an hour', () => {
  const { give } = open()
  const of = (minutes: number, value: number) => signalsIn(give(minutes, undefined, { hours: value }))
  expect(of(0, 100)).toEqual({ OBD_TOTAL_ENGINE_TIME: '100' })
  expect(of(60, 102)).toEqual({ OBD_TOTAL_ENGINE_TIME: '102' })
  expect(of(120, 104.5)).toEqual({})
})

test('readings that were withheld before a kill agree with those after it', async () => {
  const world = await openKilledMapping([source()])
  const odoOf = async (minutes: number, odo: number) => odoIn(await world.deliver(message(minutes, odo)))
  await odoOf(0, 500_000)
  expect([await odoOf(1, 10), await odoOf(6, 11)]).toEqual([undefined, undefined])
  await world.kill()
  expect(await odoOf(11, 12)).toBe('12')
  await world.kill()
  expect(await odoOf(12, 500_000)).toBeUndefined()
})

/** Sent as it was measured. */
const arriving = (minutes: number, odo: number, engineHours: number): Message => ({
  ...message(minutes, odo, { hours: engineHours }),
  arrivedAt: ts + minutes * minute,
})

describe('a value that is no reading', () => {
  test.each([
    ['0', 0],
    ['2^24 - 1 metres', 16777.215],
    ['2^16 - 1 with a decimal', 6553.5],
    ['2^32 - 1', 4_294_967.295],
  ])('is not sent as the first one, and does not hide those that follow (%s)', (_what, value) => {
    const { give, odo } = open()
    expect(odoIn(give(0, value, { hours: 1 }))).toBeUndefined()
    expect([odo(5, 48_212), odo(10, 48_213)]).toEqual(['48212', '48213'])
  })

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

  test('is sent where the counter grows into it', () => {
    const { odo } = open()
    expect([odo(0, 65_534), odo(1, 65_535), odo(2, 65_536)]).toEqual(['65534', '65535', '65536'])
  })

  test('is sent where jumps are off or flagged', () => {
    for (const jumps of ['off', 'flag'] as const) {
      const { odo } = open({ plausibility: { odometer: { jumps } } })
      expect(odo(0, 0)).toBe('0')
    }
  })

  test('leaves a new vehicle whose odometer begins at 0 its readings', () => {
    const { give, odo } = open()
    give(0, 0, { hours: 1 })
    expect([odo(1, 0.1), odo(2, 0.3)]).toEqual(['0.1', '0.3'])
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

  test('counts anew once a person has forgotten the counter', () => {
    const { odo, mapper } = open()
    odo(0, 42_595)
    expect(odo(5, 26_490)).toBeUndefined()
    mapper.forget('truck-7', 'OBD_LIFETIME_ODOMETER')
    expect(odo(10, 26_491)).toBe('26491')
  })
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

  test('kills change nothing', async () => {
    const step = fields({
      minutes: integer({ min: 0, max: 90 }),
      odo: integer({ min: 0, max: 3 }).map((index) => [1000, 1010, 400_000, 20][index] ?? 0),
      kill: boolean(),
    })
    await check(
      asyncProperty(array(step, { maxLength: 14 }), async (steps) => {
        const plain = openMapperOf([source()])
        const killed = await openKilledMapping([source()])
        for (const { minutes, odo, kill } of steps) {
          const sent = plain.map(message(minutes, odo))
          expect(payloadIn(await killed.deliver(message(minutes, odo))).json).toBe(payloadIn(sent).json)
          if (kill) await killed.kill()
        }
      }),
      { numRuns: 10 },
    )
  }, 120_000)
})
