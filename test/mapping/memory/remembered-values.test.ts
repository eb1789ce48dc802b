import { array, asyncProperty, assert as check, boolean, constantFrom, record as fields } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openKilledMapping } from '../../support/killed-mapping.ts'
import {
  messageOf,
  openMapperOf,
  payloadsIn,
  sentIn,
  truckSource,
  verdictOf,
} from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const position = { lat: 48.8566, lon: 2.3522, odo: 5 }
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }
const source = (rest = {}) =>
  truckSource(
    { in_motion: { path: 'ignition' }, signals: [odometer] },
    { fix: { valid: 'lock != "no"' }, remember: { names: ['lock', 'ignition'] }, ...rest },
  )
const at = (seconds: number, payload: object) => messageOf({ ts: ts + seconds * 1000, ...payload })

/** OVMS: one value per message. */
const vanOf = (seconds: number, name: string, value: string) =>
  messageOf(value, { topic: `ovms/depot/VAN7/metric/${name}`, arrivedAt: ts + seconds * 1000 })
const ovms = {
  name: 'vans',
  topic: 'ovms/{user}/{device}/metric/{name#}',
  encoding: 'scalar',
  coalesce: { name: '{name}', window: '2s', names: ['lat', 'lon', 'lock'], require: ['lat', 'lon'] },
  fix: { valid: 'lock != "no"' },
  remember: { names: ['lock'] },
  map: { time: { format: 'arrival' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } },
}

describe('the lock of a device', () => {
  test('counts for later messages that do not repeat it, until it is sent again', () => {
    const mapper = openMapperOf([source()])
    expect(sentIn(mapper.map(at(0, position))).gps).toBeDefined()
    expect(sentIn(mapper.map(at(1, { ...position, lock: 'no' }))).gps).toBeUndefined()
    expect(sentIn(mapper.map(at(60, position))).gps).toBeUndefined()
    expect(sentIn(mapper.map(at(61, { ...position, lock: 'yes' }))).gps).toBeDefined()
    expect(sentIn(mapper.map(at(62, position))).gps).toBeDefined()
  })

  test('is that of the device: others are not concerned', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(1, { ...position, lock: 'no' }))
    const other = { ...at(2, position), topic: 'telemetry/v1/truck-8' }
    expect(sentIn(mapper.map(other)).gps).toBeDefined()
  })

  test('counts for a day, or as long as the source says', () => {
    const day = 86_400
    for (const [rest, after, isSent] of [
      [{}, day, false],
      [{}, day + 1, true],
      [{ remember: { names: ['lock'], for: '1m' } }, 61, true],
      [{ remember: { names: ['lock'], for: '1m' } }, 60, false],
    ] as const) {
      const mapper = openMapperOf([source(rest)])
      mapper.map(at(0, { ...position, lock: 'no' }))
      expect('gps' in sentIn(mapper.map(at(after, position)))).toBe(isSent)
    }
  })

  test('of a later message never counts for an earlier one, and a late message does not change it', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(100, { ...position, lock: 'no' }))
    expect(sentIn(mapper.map(at(99, position))).gps).toBeDefined()
    mapper.map(at(50, { ...position, lock: 'yes' }))
    expect(sentIn(mapper.map(at(101, position))).gps).toBeUndefined()
  })

  test('has no share in the payloadId', () => {
    const fresh = openMapperOf([source()]).map(at(60, position))
    const mapper = openMapperOf([source()])
    mapper.map(at(1, { ...position, lock: 'no', ignition: true }))
    const withheld = mapper.map(at(60, position))
    expect(payloadsIn(withheld)[0]?.payloadId).toBe(payloadsIn(fresh)[0]?.payloadId)
    expect(payloadsIn(withheld)[0]?.json).not.toBe(payloadsIn(fresh)[0]?.json)
  })

  test('leaves nothing to send of a message with a position alone', () => {
    const mapper = openMapperOf([source()])
    mapper.map(at(1, { lock: 'no', odo: 1 }))
    expect(verdictOf(mapper.map(at(2, { ...position, odo: undefined })))).toBe('no fix')
  })

  test('is not changed by a message that is mapped again', () => {
    const mapper = openMapperOf([source()])
    const result = mapper.map(at(1, { ...position, lock: 'no' }), false)
    expect(result.writes).toBeUndefined()
    expect(sentIn(mapper.map(at(2, position))).gps).toBeDefined()
  })
})

test('the last ignition is the motion of a message without one', () => {
  const mapper = openMapperOf([source()])
  mapper.map(at(0, { ...position, ignition: true }))
  expect(sentIn(mapper.map(at(1, position))).gps).toMatchObject({ inMotion: true })
  expect(sentIn(mapper.map(at(2, { ...position, ignition: false }))).gps).toMatchObject({ inMotion: false })
  expect(sentIn(mapper.map(at(3, position))).gps).toMatchObject({ inMotion: false })
})

describe('after a kill', () => {
  test('coordinates that come 60 s after `gpslock=no` of a source that collects values are not sent', async () => {
    const world = await openKilledMapping([ovms])
    await world.deliver(vanOf(0, 'lock', 'no'))
    await world.tick(ts + 10_000)
    await world.kill()
    await world.deliver(vanOf(60, 'lat', '51.3'))
    await world.deliver(vanOf(60, 'lon', '9.4'))
    await world.kill()
    await world.tick(ts + 70_000)
    expect(world.payloads).toEqual([])
    await world.deliver(vanOf(80, 'lock', 'yes'))
    await world.tick(ts + 90_000)
    await world.kill()
    await world.deliver(vanOf(100, 'lat', '51.3'))
    await world.deliver(vanOf(100, 'lon', '9.4'))
    await world.tick(ts + 110_000)
    expect(world.payloads).toHaveLength(1)
  })

  test('entries of a source that is gone are deleted', async () => {
    const world = await openKilledMapping([source()])
    await world.deliver(at(0, { ...position, lock: 'no' }))
    await world.kill({ sources: [source({ name: 'others' })] })
    expect(world.mapper.counters().memory.devices).toBe(0)
    expect(world.mapper.nextTickAt()).toBe(0)
    await world.tick(ts)
    expect(world.mapper.nextTickAt()).toBeNull()
    await world.kill({ sources: [source()] })
    expect(world.mapper.counters().memory.devices).toBe(0)
  })

  test('the same is sent as without one, whatever the order of the messages', async () => {
    const step = fields({
      second: constantFrom(...Array.from({ length: 30 }, (_, second) => second)),
      lock: constantFrom(undefined, 'yes', 'no'),
      kill: boolean(),
    })
    await check(
      asyncProperty(array(step, { maxLength: 12 }), async (steps) => {
        const plain = openMapperOf([source()])
        const killed = await openKilledMapping([source()])
        for (const { second, lock, kill } of steps) {
          const message = at(second, { ...position, lock })
          const expected = sentIn(plain.map(message))
          expect(sentIn(await killed.deliver(message))).toEqual(expected)
          if (kill) await killed.kill()
        }
      }),
      { numRuns: 8 },
    )
  }, 60_000)
})

describe('the memory', () => {
  test('counts entries that cannot be read, and deletes them', () => {
    const mapper = openMapperOf([source()])
    mapper.restore([['memory "trucks" truck-7', Buffer.from('{"asset":1}')]])
    expect(mapper.counters().memory.damaged).toBe(1)
    expect(mapper.tick(0)?.writes).toEqual([{ key: 'memory "trucks" truck-7', value: null }])
    expect(mapper.tick(0)).toBeNull()
  })
})
