import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { truckSource } from '../../support/mapping-world.ts'
import { keptIn } from '../../support/open-spool.ts'
import { openKeptWorld, position, topicOf, type KeptWorld } from '../../support/kept-world.ts'

const shelf = 'quarantine:default'

async function publishMany({ publish }: KeptWorld, device: string, from: number, count: number) {
  await Promise.all(Array.from({ length: count }, (_, n) => publish(topicOf(device), position(from + n))))
}

const timesOf = (sent: { device: string; time: number }[], device: string) =>
  sent.filter((one) => one.device === device).map(({ time }) => time)

const times = (from: number, count: number) => Array.from({ length: count }, (_, n) => position(from + n).ts)

describe('messages of an unknown device', () => {
  test('are sent in order of arrival as soon as it is listed', async () => {
    const kept = await openKeptWorld()
    await publishMany(kept, 'truck-1', 0, 250)
    await publishMany(kept, 'truck-2', 0, 3)
    expect(await kept.sent()).toEqual([])
    await kept.change({ listed: ['truck-1'] })
    await kept.release.idle()
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual(times(0, 250))
    expect(await keptIn(kept.world.spool, shelf)).toEqual(Array.from({ length: 3 }, () => topicOf('truck-2')))
    expect(kept.release.counters()).toMatchObject({ released: 250, payloads: 250, dead: 0, devices: 0 })
    expect(kept.world.eventsOf('quarantine_released')).toMatchObject([{ devices: 1, messages: 250 }])
  })

  test('are sent before the messages that the device sends during their release', async () => {
    const kept = await openKeptWorld()
    await publishMany(kept, 'truck-1', 0, 350)
    const swapped = kept.change({ listed: ['truck-1'] })
    for (let n = 350; n < 500; n += 1) await kept.publish(topicOf('truck-1'), position(n))
    await swapped
    await kept.release.idle()
    for (let n = 500; n < 550; n += 1) await kept.publish(topicOf('truck-1'), position(n))
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual(times(0, 550))
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
    // Some were kept behind the others, and later ones were mapped directly again.
    const { released } = kept.release.counters()
    expect(released).toBeGreaterThan(350)
    expect(released).toBeLessThan(550)
    expect(kept.release.isReleasing('truck-1')).toBe(false)
    const { received, mapped, quarantined } = kept.intake.counters()
    expect(received).toBe(mapped + quarantined)
  })

  test('are sent at the start where the table was changed before, before any new message', async () => {
    const before = await openKeptWorld()
    await publishMany(before, 'truck-1', 0, 120)
    await before.leave()
    const kept = await openKeptWorld({ path: before.world.path, listed: ['truck-1'] })
    expect(kept.release.isReleasing('truck-1')).toBe(true)
    await kept.publish(topicOf('truck-1'), position(120))
    kept.release.start()
    await kept.release.idle()
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual(times(0, 121))
  })

  test.each([
    ['accept', 5, 0],
    ['ignore', 0, 5],
  ] as const)(
    'where the config has unknown: %s from now on, %i are sent and %i stay',
    async (unknown, n, stay) => {
      const kept = await openKeptWorld()
      await publishMany(kept, 'truck-1', 0, 5)
      await kept.change({ unknown })
      await kept.release.idle()
      expect(timesOf(await kept.sent(), 'truck-1')).toEqual(times(0, n))
      expect(await keptIn(kept.world.spool, shelf)).toHaveLength(stay)
    },
  )

  test('that cannot be mapped become dead letters with the reason, in the same write', async () => {
    const kept = await openKeptWorld()
    await kept.publish(topicOf('truck-1'), position(1))
    await kept.publish(topicOf('truck-1'), 'no json')
    await kept.publish(topicOf('truck-1'), position(2))
    await kept.change({ listed: ['truck-1'] })
    await kept.release.idle()
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual([position(1).ts, position(2).ts])
    expect(await kept.deadReasons()).toEqual(['NOT_JSON'])
    expect(kept.release.counters()).toMatchObject({ released: 3, dead: 1 })
    expect(kept.world.eventsOf('message_unmappable')).toHaveLength(1)
  })

  test('whose clock is wrong are kept again, for that reason, until a command decides', async () => {
    const kept = await openKeptWorld()
    await kept.publish(topicOf('truck-1'), { ...position(1), ts: Date.now() + 86_400_000 })
    await kept.publish(topicOf('truck-1'), position(2))
    await kept.change({ listed: ['truck-1'] })
    await kept.release.idle()
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual([position(2).ts])
    expect(await kept.keptReasons('clock:default', 'truck-1')).toEqual(['FUTURE'])
    // They do not delay the next ones either.
    await kept.publish(topicOf('truck-1'), position(3))
    expect(timesOf(await kept.sent(), 'truck-1')).toEqual([position(2).ts, position(3).ts])
    expect(kept.release.counters()).toMatchObject({ released: 2, keptAgain: 1 })
  })

  test('are not released if the new mapping could not be put in force', async () => {
    const kept = await openKeptWorld()
    await publishMany(kept, 'truck-1', 0, 3)
    const other = await openKeptWorld({ listed: ['truck-1'] })
    kept.release.beginSwap(other.mapping())
    kept.release.endSwap(false)
    await kept.release.idle()
    expect(await keptIn(kept.world.spool, shelf)).toHaveLength(3)
    expect(kept.release.isReleasing('truck-1')).toBe(false)
  })

  test('about several devices are sent before the messages that any of them sends meanwhile', async () => {
    const each = { each: 'list', device: { path: 'id' } }
    const kept = await openKeptWorld({
      sources: [truckSource({}, { ...each, topic: 'depot/all' })],
      listed: ['a'],
    })
    const both = (n: number) => ({
      list: [
        { ...position(n), id: 'a' },
        { ...position(n), id: 'b' },
      ],
    })
    for (let n = 0; n < 250; n += 1) void kept.publish('depot/all', both(n))
    const swapped = kept.change({ listed: ['a', 'b'] })
    for (let n = 250; n < 300; n += 1) await kept.publish('depot/all', both(n))
    await swapped
    await kept.release.idle()
    const sent = await kept.sent()
    for (const device of ['a', 'b']) expect(timesOf(sent, device)).toEqual(times(0, 300))
  })

  test('with values of one record become the same payloads as without quarantine', async () => {
    const kept = await openKeptWorld({ sources: [valuesSource, truckSource()] })
    const count = 400
    for (let n = 0; n < count; n += 1) void publishRecord(kept, n)
    await kept.publish('vehicles/van-1/other', '1')
    await kept.change({ listed: ['van-1'] })
    await kept.release.idle()
    expect(speedsOf(await kept.sent())).toEqual(numbers(0, count))
    expect(kept.mapper().openParts()).toBe(0)
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
  })

  test('with values of one record stay complete, and are sent before values that arrive meanwhile', async () => {
    const kept = await openKeptWorld({ sources: [valuesSource] })
    for (let n = 0; n < 300; n += 1) void publishRecord(kept, n)
    const swapped = kept.change({ listed: ['van-1'] })
    for (let n = 300; n < 400; n += 1) await publishRecord(kept, n)
    await swapped
    // One half before, one half after everything else is released.
    void kept.publish('vehicles/van-1/latitude', String(50))
    await eventually(() => kept.release.counters().released >= 1200)
    void kept.publish('vehicles/van-1/longitude', '8')
    await kept.publish('vehicles/van-1/speed', '400')
    await kept.release.idle()
    expect(speedsOf(await kept.sent())).toEqual(numbers(0, 401))
    expect(kept.release.isReleasing('van-1')).toBe(false)
    expect(kept.mapper().openParts()).toBe(0)
    const { received, quarantined, mapped } = kept.intake.counters()
    expect(received).toBe(quarantined + mapped)
  })
})

const numbers = (from: number, end: number) => Array.from({ length: end - from }, (_, n) => from + n)

const valuesSource = {
  name: 'values',
  topic: 'vehicles/{device}/{metric}',
  encoding: 'scalar',
  coalesce: { name: '{metric}', window: '500ms', require: ['latitude', 'longitude'] },
  map: {
    time: { format: 'arrival' },
    latitude: { path: 'latitude' },
    longitude: { path: 'longitude' },
    speed: { path: 'speed', unit: 'km/h' },
  },
  // The speeds are numbers of records.
  plausibility: { speed: { action: 'off' } },
}

/** A record as three values; `n` is its speed. */
function publishRecord({ publish }: KeptWorld, n: number): Promise<unknown> {
  const values = Object.entries({ latitude: 50 + (n % 1000) / 100, longitude: 8, speed: n })
  return Promise.all(values.map(([metric, value]) => publish(`vehicles/van-1/${metric}`, String(value))))
}

function speedsOf(sent: readonly { payload: Record<string, unknown> }[]): (number | undefined)[] {
  return sent.map(({ payload }) => (payload['gps'] as { speed?: number }).speed)
}
