// The memory of devices over a kill: what is remembered, the values of the record before, and the counters.

import { array, asyncProperty, assert as check, boolean, constantFrom, integer, record } from 'fast-check'
import { expect, test } from 'vitest'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import { openKilledMapping } from '../../support/killed-mapping.ts'
import {
  messageOf,
  openMapperOf,
  sentIn,
  truckSource,
  verdictOf,
  type World,
} from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }
const hours = { type: 'OBD_TOTAL_ENGINE_TIME', path: 'hours', unit: 'h', part: 'ENGINE' }
const distance = { type: 'DISTANCE', expr: 'odo - previous.odo', unit: 'km' }
const remember = { fix: { valid: 'lock != "no"' }, remember: { names: ['lock', 'ignition'] } }
const source = truckSource(
  { in_motion: { path: 'ignition' }, signals: [odometer, hours, distance] },
  { ...remember },
)

const at = (minutes: number, payload: object) =>
  messageOf({ ts: ts + minutes * 60_000, lat: 48.1, lon: 2.3, ...payload })

/** The signals of a payload by their types. */
function signalsIn(result: MapResult): Record<string, string> {
  return Object.fromEntries((sentIn(result).signals ?? []).map(({ type, value }) => [type, value]))
}

function outcomeOf(result: MapResult): unknown {
  return result.kind === 'payloads' ? result.payloads : verdictOf(result)
}

test('the same is sent as without a kill, whatever the order of the messages', async () => {
  const step = record({
    minutes: integer({ min: 0, max: 90 }),
    odo: constantFrom(undefined, 1000, 1010, 400_000, 20),
    lock: constantFrom(undefined, 'yes', 'no'),
    ignition: constantFrom(undefined, true, false),
    kill: boolean(),
  })
  const without = truckSource({
    signals: [distance],
    fields: { was: { type: 'text', expr: 'previous.lock' } },
  })
  await check(
    asyncProperty(constantFrom(source, without), array(step, { maxLength: 14 }), async (config, steps) => {
      const plain = openMapperOf([config])
      const killed = await openKilledMapping([config])
      for (const { minutes, kill, ...payload } of steps) {
        const message = at(minutes, payload)
        const expected = outcomeOf(plain.map(message))
        expect(outcomeOf(await killed.deliver(message))).toEqual(expected)
        if (kill) await killed.kill()
      }
    }),
    { numRuns: 16 },
  )
}, 120_000)

test('coordinates that come a minute after `gpslock=no` of a source that collects values are not sent', async () => {
  const world = await openKilledMapping([
    {
      name: 'vans',
      topic: 'ovms/{user}/{device}/metric/{name#}',
      encoding: 'scalar',
      coalesce: { name: '{name}', window: '2s', names: ['lat', 'lon', 'lock'], require: ['lat', 'lon'] },
      ...remember,
      remember: { names: ['lock'] },
      map: { time: { format: 'arrival' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } },
    },
  ])
  /** One value per message, and then the end of their window. */
  async function says(seconds: number, values: Record<string, string>): Promise<void> {
    for (const [name, value] of Object.entries(values)) {
      const of = { topic: `ovms/depot/VAN7/metric/${name}`, arrivedAt: ts + seconds * 1000 }
      await world.deliver(messageOf(value, of))
    }
    await world.kill()
    await world.tick(ts + (seconds + 10) * 1000)
    await world.kill()
  }
  await says(0, { lock: 'no' })
  await says(60, { lat: '51.3', lon: '9.4' })
  expect(world.payloads).toEqual([])
  await says(80, { lock: 'yes' })
  await says(100, { lat: '51.3', lon: '9.4' })
  expect(world.payloads).toHaveLength(1)
})

test('readings that were withheld before a kill agree with those after it', async () => {
  const world = await openKilledMapping([source])
  const odoOf = async (minutes: number, odo: number) =>
    signalsIn(await world.deliver(at(minutes, { odo })))['OBD_LIFETIME_ODOMETER']
  await odoOf(0, 500_000)
  expect([await odoOf(1, 10), await odoOf(6, 11)]).toEqual([undefined, undefined])
  await world.kill()
  expect(await odoOf(11, 12)).toBe('12')
  await world.kill()
  expect(await odoOf(12, 500_000)).toBeUndefined()
})

test('what a device is told to forget, for one signal or altogether, begins anew', async () => {
  const world = await openKilledMapping([source])
  await world.deliver(at(0, { odo: 500_000, hours: 900 }))
  expect(await world.forget('truck-8', null)).toBe(0)
  expect(await world.forget('truck-7', 'OBD_LIFETIME_ODOMETER')).toBe(1)
  await world.kill()
  expect(signalsIn(await world.deliver(at(1, { odo: 10, hours: 5 })))).toMatchObject({
    OBD_LIFETIME_ODOMETER: '10',
  })
  expect(await world.forget('truck-7', null)).toBe(3)
  await world.kill()
  expect(signalsIn(await world.deliver(at(2, { odo: 7, hours: 5 })))).toEqual({
    OBD_LIFETIME_ODOMETER: '7',
    OBD_TOTAL_ENGINE_TIME: '5',
  })
})

test('another asset has another odometer, and no record before', async () => {
  const table = (asset: string): World => ({ table: `device,asset_id\ntruck-7,${asset}\n` })
  const world = await openKilledMapping([source], table('A'))
  await world.deliver(at(0, { odo: 500_000 }))
  await world.kill()
  expect(signalsIn(await world.deliver(at(1, { odo: 10 })))).not.toHaveProperty('OBD_LIFETIME_ODOMETER')
  await world.kill({ world: table('B') })
  expect(signalsIn(await world.deliver(at(2, { odo: 10 })))).toEqual({ OBD_LIFETIME_ODOMETER: '10' })
  await world.kill()
  expect(signalsIn(await world.deliver(at(3, { odo: 11 })))).toMatchObject({ DISTANCE: '1' })
})

test('values that the source reads no more, and entries of a source that is gone, are deleted', async () => {
  const world = await openKilledMapping([source])
  await world.deliver(at(0, { odo: 100, lock: 'no' }))
  const fuel = truckSource({ signals: [{ type: 'USED', expr: 'previous.fuel - fuel' }] })
  await world.kill({ sources: [fuel] })
  await world.deliver(at(1, { fuel: 49 }))
  // The value of the record before, the remembered lock, and the reading of the odometer, which is kept.
  expect(await world.forget('truck-7', null)).toBe(3)
  await world.deliver(at(2, { fuel: 48 }))
  await world.kill({ sources: [{ ...source, name: 'others' }] })
  expect(world.mapper.counters().memory.devices).toBe(0)
  expect(world.mapper.nextTickAt()).toBe(0)
  await world.tick(ts)
  expect(world.mapper.nextTickAt()).toBeNull()
  await world.kill({ sources: [fuel] })
  expect(world.mapper.counters().memory.devices).toBe(0)
})

test('entries that cannot be read are counted and deleted', () => {
  const mapper = openMapperOf([source])
  mapper.restore([['memory "trucks" truck-7', Buffer.from('{"asset":1}')]])
  expect(mapper.counters().memory.damaged).toBe(1)
  expect(mapper.tick(0)?.writes).toEqual([{ key: 'memory "trucks" truck-7', value: null }])
  expect(mapper.tick(0)).toBeNull()
})

test('the memory has no share in the payloadId', () => {
  const fresh = sentIn(openMapperOf([source]).map(at(60, { odo: 10, hours: 5 })))
  const mapper = openMapperOf([source])
  mapper.map(at(1, { odo: 500_000, lock: 'no', ignition: true }))
  const withheld = sentIn(mapper.map(at(60, { odo: 10, hours: 5 })))
  expect(withheld.payloadId).toBe(fresh.payloadId)
  expect(withheld.gps).toBeUndefined()
  expect(withheld.signals).toEqual(fresh.signals?.slice(1))
})
