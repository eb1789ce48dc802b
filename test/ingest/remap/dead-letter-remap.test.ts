import { describe, expect, test } from 'vitest'
import { truckSource } from '../../support/mapping-world.ts'
import { collect } from '../../support/open-spool.ts'
import { openKeptWorld, position, topicOf } from '../../support/kept-world.ts'

/** Devices send their time as `time`; the previous mapping reads `ts`. */
const wrong = { sources: [truckSource()], unknown: 'accept' as const }
const right = { sources: [truckSource({ time: { path: 'time', format: 'ms' } })] }
const untimed = (n: number) => ({ time: position(n).ts, lat: position(n).lat, lon: 13.4 })

describe('dead letters that are mapped again', () => {
  test('are sent once the mapping is corrected; those that still cannot be mapped stay unchanged', async () => {
    const kept = await openKeptWorld(wrong)
    for (let n = 0; n < 230; n += 1) void kept.publish(topicOf('truck-1'), untimed(n))
    await kept.publish(topicOf('truck-1'), 'no json')
    const before = await collect(kept.world.spool.deadLetters({ limit: 1000, reason: 'NOT_JSON' }))
    await kept.change(right)
    expect(await kept.remap()).toEqual({
      dryRun: false,
      deadLetters: 231,
      remapped: 230,
      payloads: 230,
      duplicates: 0,
      ignored: {},
      kept: 0,
      stillRefused: { NOT_JSON: 1 },
    })
    expect((await kept.sent()).map(({ time }) => time)).toEqual(
      Array.from({ length: 230 }, (_, n) => position(n).ts),
    )
    expect(await collect(kept.world.spool.deadLetters({ limit: 1000 }))).toEqual(before)
    expect(await kept.remap()).toMatchObject({ deadLetters: 1, remapped: 0, payloads: 0 })
    expect(await kept.sent()).toHaveLength(230)
  })

  test('change nothing in a dry run', async () => {
    const kept = await openKeptWorld(wrong)
    for (let n = 0; n < 3; n += 1) await kept.publish(topicOf('truck-1'), untimed(n))
    await kept.change(right)
    expect(await kept.remap({ dryRun: true })).toMatchObject({
      dryRun: true,
      deadLetters: 3,
      remapped: 3,
      payloads: 3,
    })
    expect(await kept.deadReasons()).toEqual(['NO_TIME', 'NO_TIME', 'NO_TIME'])
    expect(await kept.sent()).toEqual([])
    expect(await kept.remap()).toMatchObject({ remapped: 3 })
  })

  test('are chosen by reason and source', async () => {
    const kept = await openKeptWorld(wrong)
    await kept.publish(topicOf('truck-1'), untimed(1))
    await kept.publish('elsewhere/truck-1', untimed(2))
    await kept.change({
      sources: [...right.sources, truckSource({}, { name: 'more', topic: 'elsewhere/{device}' })],
    })
    expect(await kept.remap({ reason: 'NO_SOURCE', dryRun: true })).toMatchObject({
      deadLetters: 1,
      stillRefused: { NO_TIME: 1 },
    })
    expect(await kept.remap({ source: 'trucks' })).toMatchObject({ deadLetters: 1, remapped: 1 })
    expect(await kept.deadReasons()).toEqual(['NO_SOURCE'])
  })

  test('are not sent again where the same payload was stored meanwhile', async () => {
    const kept = await openKeptWorld(wrong)
    await kept.publish(topicOf('truck-1'), untimed(1))
    await kept.change(right)
    await kept.publish(topicOf('truck-1'), untimed(1))
    expect(await kept.remap()).toMatchObject({ remapped: 1, payloads: 0, duplicates: 1 })
    expect(await kept.sent()).toHaveLength(1)
  })

  test('of an unknown device go to quarantine, ignored ones are counted with the reason', async () => {
    const kept = await openKeptWorld(wrong)
    await kept.publish(topicOf('truck-1'), untimed(1))
    await kept.publish(topicOf('truck-2'), { ...untimed(2), lat: 0, lon: 0 })
    const [source] = right.sources
    await kept.change({
      sources: [{ ...source, when: 'lat != 0' }],
      unknown: 'quarantine',
      listed: ['truck-2'],
    })
    expect(await kept.remap()).toMatchObject({ remapped: 2, payloads: 0, kept: 1, stillRefused: {} })
    expect(await kept.keptReasons('quarantine:default', 'truck-1')).toEqual(['UNKNOWN_DEVICE'])
    expect(await kept.deadReasons()).toEqual([])
  })
})
