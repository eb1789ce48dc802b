import { array, assert as check, integer, option, property, record as fields } from 'fast-check'
import { expect, test } from 'vitest'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import { sparkplugPayload, type MetricOf } from '../../support/sparkplug-payload.ts'
import { messageOf, openMapperOf, payloadIn, sentIn, truckSource } from '../../support/mapping-world.ts'

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

test.each([[[odometer, distance]], [[distance]]])(
  'the record before is not one of another asset, also where the first record has no value',
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

const step = fields({
  second: integer({ min: 0, max: 20 }),
  odo: option(
    // Of even numbers none is a placeholder.
    integer({ min: 1, max: 32_000 }).map((number) => (2 * number) / 1000),
    { nil: undefined },
  ),
})

test('in any order the difference is that of a model, and the ids are those of a mapping without it', () => {
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
