import {
  array,
  asyncProperty,
  assert as check,
  boolean,
  constantFrom,
  integer,
  option,
  property,
  record as fields,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { openKilledMapping } from '../../support/killed-mapping.ts'
import { sparkplugPayload, type MetricOf } from '../../support/sparkplug-payload.ts'
import {
  configOf,
  messageOf,
  openMapperOf,
  payloadIn,
  payloadsIn,
  sentIn,
  truckSource,
  verdictOf,
  type World,
} from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const place = { lat: 48.8566, lon: 2.3522 }
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }
const distance = { type: 'DISTANCE', expr: 'odo - previous.odo', unit: 'km' }
const since = { type: 'number', expr: 'ts - previous.time', scale: 0.001 }

const source = (rest = {}) => truckSource({ signals: [odometer, distance], fields: { seconds: since } }, rest)
const plain = truckSource({ signals: [odometer] })
const at = (seconds: number, payload: object) => messageOf({ ts: ts + seconds * 1000, ...place, ...payload })

/** What the payload says: the difference, and the seconds since the record before. */
function differenceIn(result: MapResult): { distance?: string; seconds?: unknown } {
  const { signals = [], seconds } = sentIn(result) as ReturnType<typeof sentIn> & { seconds?: unknown }
  const own = signals.find(({ type }) => type === 'DISTANCE')
  return { ...(own && { distance: own.value }), ...(seconds === undefined ? {} : { seconds }) }
}

function problemsOf(...sources: unknown[]): string[] {
  return compileSources(configOf(sources)).problems.map(({ path, message }) => `${path.join('.')} ${message}`)
}

describe('a difference to the record before', () => {
  test('is an exact decimal, absent in the first record', () => {
    const mapper = openMapperOf([source()])
    expect(differenceIn(mapper.map(at(0, { odo: 100.1 })))).toEqual({})
    expect(differenceIn(mapper.map(at(60, { odo: 100.4 })))).toEqual({ distance: '0.3', seconds: 60 })
    expect(differenceIn(mapper.map(at(90, { odo: 101 })))).toEqual({ distance: '0.6', seconds: 30 })
  })

  test('is that of its device: others are not concerned', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(0, { odo: 100 }))
    const other = { ...at(1, { odo: 500 }), topic: 'telemetry/v1/truck-8' }
    expect(differenceIn(mapper.map(other))).toEqual({})
  })

  test('spans records without the value', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(0, { odo: 100 }))
    expect(differenceIn(mapper.map(at(1, {})))).toEqual({ seconds: 1 })
    expect(differenceIn(mapper.map(at(2, { odo: 103 })))).toEqual({ distance: '3', seconds: 2 })
  })

  test('spans values that mean none, and texts that are no number', () => {
    const mapper = openMapperOf([
      truckSource({
        signals: [
          { ...distance, expr: 'odo == 0 ? null : odo - previous.odo' },
          { type: 'COUNT', path: 'odo', absent: [0], value_unit: 'X' },
        ],
      }),
    ])
    mapper.map(at(0, { odo: 100.5 }))
    for (const odo of [0, 4_294_967_295, 'unknown', null, '']) mapper.map(at(1, { odo }))
    expect(differenceIn(mapper.map(at(2, { odo: 101.75 })))).toEqual({ distance: '1.25' })
  })

  test('is absent in a late record, which changes nothing, and in one of equal time', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(0, { odo: 100 }))
    mapper.map(at(60, { odo: 110 }))
    expect(differenceIn(mapper.map(at(30, { odo: 105 })))).toEqual({})
    expect(differenceIn(mapper.map(at(60, { odo: 112 })))).toEqual({})
    expect(differenceIn(mapper.map(at(90, { odo: 115 })))).toEqual({ distance: '5', seconds: 30 })
  })

  test('counts for 30 days, or as long as the source says', () => {
    const day = 86_400
    for (const [rest, after, isSent] of [
      [{}, 30 * day, true],
      [{}, 30 * day + 1, false],
      [{ previous: { for: '1h' } }, 3600, true],
      [{ previous: { for: '1h' } }, 3601, false],
    ] as const) {
      const mapper = openMapperOf([source(rest)])
      mapper.map(at(0, { odo: 100 }))
      expect('distance' in differenceIn(mapper.map(at(after, { odo: 101 })))).toBe(isSent)
    }
  })

  test('follows the arrival where the device sends no time', () => {
    const mapper = openMapperOf([
      truckSource({ time: { path: 'ts', format: 'ms', missing: 'arrival' }, signals: [distance] }),
    ])
    const arriving = (seconds: number, odo: number) =>
      messageOf({ ...place, odo }, { arrivedAt: ts + seconds * 1000 })
    mapper.map(arriving(0, 7))
    expect(differenceIn(mapper.map(arriving(5, 9)))).toEqual({ distance: '2' })
  })

  test('reads any path of the record, also where `each` chooses it, record by record', () => {
    const mapper = openMapperOf([
      truckSource({ signals: [{ type: 'ENERGY', expr: 'io[1].v - previous.io[1].v' }] }, { each: 'list' }),
    ])
    const record = (seconds: number, v: number) => ({
      ts: ts + seconds * 1000,
      ...place,
      io: [
        { id: 4, v: 1 },
        { id: 5, v },
      ],
    })
    const result = mapper.map(messageOf({ list: [record(0, 10), record(1, 12), record(2, 15)] }))
    const values = payloadsIn(result).map(
      ({ json }) => (JSON.parse(json) as { signals?: { value: string }[] }).signals?.[0]?.value,
    )
    expect(values).toEqual([undefined, '2', '3'])
  })

  test('can be a condition, a text, and true or false', () => {
    const mapper = openMapperOf([
      truckSource({
        signals: [{ ...odometer, type: 'STARTED_AT', when: 'on == true && previous.on == false' }],
        fields: { before: { type: 'text', expr: 'previous.driver' } },
      }),
    ])
    mapper.map(at(0, { odo: 5, on: false, driver: 'Ada' }))
    const sent = sentIn(mapper.map(at(1, { odo: 6, on: true, driver: 'Bo' })))
    expect(sent.signals).toMatchObject([{ type: 'STARTED_AT', value: '6' }])
    expect(sent).toMatchObject({ before: 'Ada' })
    expect(sentIn(mapper.map(at(2, { odo: 7, on: true }))).signals).toBeUndefined()
  })

  test('is not made of a key of the message that has its name', () => {
    const mapper = openMapperOf([source()])
    expect(differenceIn(mapper.map(at(0, { odo: 9, $previous: { odo: 1 }, '$previous.odo': 1 })))).toEqual({})
  })
})

describe('the record that a difference counts from', () => {
  test('is each good record of a message, and none that was refused', () => {
    const mapper = openMapperOf([truckSource({ signals: [distance] }, { each: 'list' })])
    const record = (seconds: number, rest: object) => ({ ts: ts + seconds * 1000, ...place, ...rest })
    mapper.map(messageOf({ list: [record(0, { odo: 100 })] }))
    const half = mapper.map(messageOf({ list: [record(1, { odo: 110 }), record(2, { odo: 125, ts: null })] }))
    expect(half.rest).toMatchObject([{ reason: 'NO_TIME' }])
    expect(differenceIn(half)).toEqual({ distance: '10' })
    expect(differenceIn(mapper.map(messageOf({ list: [record(3, { odo: 130 })] })))).toEqual({
      distance: '20',
    })
  })

  test('is no record that gave no payload', () => {
    const mapper = openMapperOf([truckSource({ signals: [distance] }, { fix: { valid: 'ok == 1' } })])
    mapper.map(at(0, { odo: 100, ok: 1 }))
    expect(verdictOf(mapper.map({ ...messageOf({ ts: ts + 1000, odo: 'x', ok: 0 }) }))).toBe('no fix')
    expect(differenceIn(mapper.map(at(2, { odo: 102, ok: 1 })))).toEqual({ distance: '2' })
  })

  test('is one with nothing else to send, too', () => {
    const mapper = openMapperOf([
      {
        name: 'pulses',
        topic: 'telemetry/v1/{device}',
        map: { time: { path: 'ts', format: 'ms' }, signals: [distance] },
      },
    ])
    expect(verdictOf(mapper.map(messageOf({ ts, odo: 100 })))).toBe('no previous value')
    expect(differenceIn(mapper.map(messageOf({ ts: ts + 1000, odo: 101 })))).toEqual({ distance: '1' })
    expect(verdictOf(mapper.map(messageOf({ ts: ts + 2000 })))).toBe('NOTHING_TO_SEND')
  })

  test('is not one that is mapped again, which has no difference either', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(0, { odo: 100 }))
    expect(differenceIn(mapper.map(at(1, { odo: 101 }), false))).toEqual({})
    expect(differenceIn(mapper.map(at(2, { odo: 102 })))).toEqual({ distance: '2', seconds: 2 })
  })

  test('is of the same asset', async () => {
    const table = (asset: string): World => ({ table: `device,asset_id\ntruck-7,${asset}\n` })
    const world = await openKilledMapping([source()], table('A'))
    await world.deliver(at(0, { odo: 100 }))
    await world.kill({ world: table('B') })
    expect(differenceIn(await world.deliver(at(1, { odo: 5000 })))).toEqual({})
    await world.kill()
    expect(differenceIn(await world.deliver(at(2, { odo: 5001 })))).toEqual({ distance: '1', seconds: 1 })
  })

  test.each([[[odometer, distance]], [[distance]]])(
    'is not one of another asset, also where the first record has no value',
    (signals) => {
      const mapper = openMapperOf([truckSource({ signals })], { table: 'device,asset_id\ntruck-7,A\n' })
      mapper.map(at(0, { odo: 100 }))
      const moved = openMapperOf([truckSource({ signals })], { table: 'device,asset_id\ntruck-7,B\n' })
      moved.restore([...mapper.entries()])
      moved.map(at(1, {}))
      expect(differenceIn(moved.map(at(2, { odo: 5000 })))).toEqual({})
      expect(differenceIn(moved.map(at(3, { odo: 5001 })))).toEqual({ distance: '1' })
    },
  )

  test('is forgotten with the device', async () => {
    const world = await openKilledMapping([source()])
    await world.deliver(at(0, { odo: 100 }))
    expect(await world.forget('truck-7', null)).toBe(3)
    await world.kill()
    expect(differenceIn(await world.deliver(at(1, { odo: 101 })))).toEqual({})
  })

  test('keeps no values that the source reads no more', async () => {
    const world = await openKilledMapping([source()])
    await world.deliver(at(0, { odo: 100, fuel: 50 }))
    const fuel = truckSource({ signals: [{ type: 'USED', expr: 'previous.fuel - fuel' }] })
    await world.kill({ sources: [fuel] })
    await world.deliver(at(1, { odo: 101, fuel: 49 }))
    // The reading of the odometer is another memory.
    expect(await world.forget('truck-7', null)).toBe(2)
  })
})

test('a privacy profile applies to differences', () => {
  const world = {
    table: 'device,asset_id,privacy\ntruck-7,A,hidden\n',
    privacy: { profiles: { hidden: { hide: ['odometer'] } } },
  }
  const mapper = openMapperOf([source()], world)
  mapper.map(at(0, { odo: 100 }))
  expect(differenceIn(mapper.map(at(1, { odo: 101 })))).toEqual({})
})

test('what is remembered beside it counts as ever', () => {
  const mapper = openMapperOf([source({ fix: { valid: 'lock != "no"' }, remember: { names: ['lock'] } })])
  mapper.map(at(0, { odo: 100, lock: 'no' }))
  const sent = mapper.map(at(1, { odo: 101 }))
  expect(differenceIn(sent)).toEqual({ distance: '1', seconds: 1 })
  expect(sentIn(sent).gps).toBeUndefined()
  expect(sentIn(mapper.map(at(2, { odo: 101, lock: 'yes' }))).gps).toBeDefined()
})

test('metrics of Sparkplug B have differences, by their names', () => {
  const path = 'metrics["Vehicle/Odometer"]'
  const mapper = openMapperOf([
    {
      name: 'yard',
      topic: 'spBv1.0/{group}/{verb}/{device#}',
      encoding: 'sparkplug',
      each: 'records',
      map: {
        time: { path: 'time', format: 'ms' },
        signals: [{ type: 'DISTANCE', expr: `${path} - previous.${path}`, unit: 'm' }],
      },
    },
  ])
  const says = (what: string, seq: number, metric: MetricOf) => {
    const bytes = sparkplugPayload({ ts: ts + seq * 1000, seq, metrics: [metric] })
    return mapper.map({ ...messageOf({}), bytes, topic: `spBv1.0/Depot7/${what}` })
  }
  says('NBIRTH/GW-1', 0, { name: 'bdSeq', type: 8, long: 4 })
  says('DBIRTH/GW-1/truck-7', 1, { name: 'Vehicle/Odometer', type: 8, alias: 4, long: 512_340_987 })
  expect(differenceIn(says('DDATA/GW-1/truck-7', 2, { alias: 4, long: 512_341_000 }))).toEqual({
    distance: '0.013',
  })
})

describe('whatever came before, in any order', () => {
  const step = fields({
    second: integer({ min: 0, max: 20 }),
    odo: option(
      integer({ min: 0, max: 100_000 }).map((number) => number / 1000),
      { nil: undefined },
    ),
  })

  test('the difference is that of a model, and the ids are those of a mapping without it', () => {
    check(
      property(array(step, { maxLength: 25 }), (steps) => {
        const mapper = openMapperOf([source({ plausibility: { odometer: { jumps: 'off' } } })])
        const without = openMapperOf([{ ...plain, plausibility: { odometer: { jumps: 'off' } } }])
        let last: { second: number; odo: number } | null = null
        for (const { second, odo } of steps) {
          const message = at(second, { odo })
          const result = mapper.map(message)
          const seen: { second: number; odo: number } | null =
            last !== null && last.second < second ? last : null
          const expected =
            seen === null || odo === undefined || odo < seen.odo
              ? undefined
              : String(Math.round((odo - seen.odo) * 1000) / 1000)
          expect(differenceIn(result).distance).toBe(expected)
          const payload = payloadIn(result)
          const bare = payloadIn(without.map(message))
          expect(payload).toMatchObject({
            payloadId: bare.payloadId,
            windowKey: bare.windowKey,
            duplicateRule: bare.duplicateRule,
          })
          // The ids of the signals too.
          expect(payload.json.startsWith(bare.json.slice(0, -2))).toBe(true)
          if (odo !== undefined && (last === null || second > last.second)) last = { second, odo }
        }
      }),
    )
  })

  test('a kill after any message changes nothing', async () => {
    const killed = fields({ step, kill: boolean() })
    // With a counter of its own, which is written too, and without.
    const config = constantFrom(source(), truckSource({ signals: [distance], fields: { seconds: since } }))
    await check(
      asyncProperty(config, array(killed, { maxLength: 10 }), async (counting, steps) => {
        const mapper = openMapperOf([counting])
        const world = await openKilledMapping([counting])
        for (const { step: one, kill } of steps) {
          const message = at(one.second, { odo: one.odo })
          const expected = sentIn(mapper.map(message))
          expect(sentIn(await world.deliver(message))).toEqual(expected)
          if (kill) await world.kill()
        }
      }),
      { numRuns: 8 },
    )
  }, 60_000)

  test('of times that ascend, the differences add up to the whole', () => {
    const moves = array(fields({ odo: integer({ min: 0, max: 9 }), skip: boolean(), dup: boolean() }))
    check(
      property(moves, (all) => {
        const mapper = openMapperOf([source()])
        let odo = 0
        let sum = 0
        let isFirst = true
        let last = 0
        for (const [second, move] of all.entries()) {
          odo += move.odo
          const message = at(second * 3600, { odo: move.skip ? undefined : odo })
          sum += Number(differenceIn(mapper.map(message)).distance ?? 0)
          if (move.dup) sum += Number(differenceIn(mapper.map(message)).distance ?? 0)
          if (move.skip) continue
          if (isFirst) last = -odo
          isFirst = false
          expect(sum).toBe(odo + last)
        }
      }),
    )
  })
})

describe('a config is refused where', () => {
  const mapped = (map: object, rest: Record<string, unknown> = {}) =>
    truckSource({ signals: [odometer], ...map }, rest)
  test.each([
    ['map.time', mapped({ time: { expr: 'previous.time', format: 'ms' } })],
    ['map.latitude', mapped({ latitude: { expr: 'lat - previous.lat' } })],
    ['map.speed', mapped({ speed: { expr: 'odo - previous.odo' } })],
    ['map.in_motion', mapped({ in_motion: { path: 'on', when: 'previous.on == true' } })],
    [
      'map.fields.gps.climb',
      mapped({ fields: { 'gps.climb': { type: 'number', expr: 'alt - previous.alt' } } }),
    ],
    ['when', mapped({}, { when: 'odo > previous.odo' })],
    ['device', mapped({}, { device: { expr: 'previous.id' } })],
    ['each', mapped({}, { each: { expr: 'previous.list' } })],
    ['fix', mapped({}, { fix: { valid: 'previous.ok == 1' } })],
    ['refuse', mapped({}, { refuse: [{ when: 'previous.ok == 1', reason: 'NOPE', detail: 'No.' }] })],
  ])('%s would depend on what came before', (place, config) => {
    expect(problemsOf(config)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^sources\\.0\\.${place.replaceAll('.', String.raw`\.`)}.* reads a previous value, which only signals and fields`,
        ),
      ),
    ])
  })

  test.each([
    ['thin', { thin: { every: '1m' } }],
    ['merge', { merge: { group: 'vans', window: '5s' } }],
    [
      'coalesce',
      { coalesce: { name: { path: 'n' }, value: 'v', window: '1s', names: ['odo', 'lat', 'lon'] } },
    ],
  ])('it is combined with %s', (option_, rest) => {
    const { map, ...own } = truckSource({ signals: [distance] }, rest)
    const { time: _time, ...untimed } = map
    expect(problemsOf({ ...own, map: option_ === 'coalesce' ? untimed : map })).toContainEqual(
      expect.stringContaining(`reads a previous value, which cannot be combined with ${option_}: `),
    )
  })

  test('it reads more than 16 values, or `previous` is set for none', () => {
    const many = Array.from({ length: 17 }, (_, n) => ({ type: `T${n}`, expr: `previous.v${n}` }))
    expect(problemsOf(truckSource({ signals: many }))).toEqual([
      'sources.0.map.signals.0.expr is one of 17 previous values; at most 16 are kept.',
    ])
    expect(problemsOf(mapped({}, { previous: { for: '1d' } }))).toEqual([
      'sources.0.previous is set, but no expression reads `previous`.',
    ])
  })

  test('a signal or an object has fields of both kinds', () => {
    expect(problemsOf(truckSource({ signals: [{ type: 'DISTANCE', path: 'trip' }, distance] }))).toEqual([
      expect.stringContaining('sources.0.map.signals.1 is one of several fields of DISTANCE'),
    ])
    const nested = { 'trip.driver': { type: 'text', path: 'driver' }, 'trip.seconds': since }
    expect(problemsOf(mapped({ fields: nested }))).toEqual([
      expect.stringContaining('sources.0.map.fields.trip.seconds is in the object trip'),
    ])
  })

  test.each(['$previous', '$.$previous.odo', 'a.$previous', '$up.$previous.odo'])(
    'the path is %s',
    (path) => {
      expect(problemsOf(truckSource({ signals: [{ type: 'T', path }] }))[0]).toMatch(/\$previous/)
    },
  )
})
