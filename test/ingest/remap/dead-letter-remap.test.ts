import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { remapDeadLetters, type RemapRequest } from '../../../src/ingest/remap/dead-letter-remap.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { truckSource } from '../../support/mapping-world.ts'
import { collect } from '../../support/open-spool.ts'
import { openKeptWorld, position, topicOf, type KeptWorld } from '../../support/kept-world.ts'

const everything: RemapRequest = { reason: null, source: null, dryRun: false }

/** Devices send their time as `time`; the previous mapping reads `ts`. */
const wrong = { sources: [truckSource()], unknown: 'accept' as const }
const right = { sources: [truckSource({ time: { path: 'time', format: 'ms' } })] }
const untimed = (n: number) => ({ time: position(n).ts, lat: position(n).lat, lon: 13.4 })

async function ask(kept: KeptWorld, request: Partial<RemapRequest> = {}) {
  const { spool } = kept.world
  const emit = (event: GatewayEvent) => void kept.events.push(event)
  const deps = { spool, clock: systemClock, ourTime: kept.ourTime, emit }
  return remapDeadLetters(
    { ...deps, mapping: kept.mapping() },
    { ...everything, ...request },
    new AbortController().signal,
  )
}

const reasonsIn = async ({ world }: KeptWorld) =>
  (await collect(world.spool.deadLetters({ limit: 1000 }))).map(({ deadLetter: letter }) => letter.reason)

describe('dead letters that are mapped again', () => {
  test('are sent once the mapping is corrected; those that still cannot be mapped stay unchanged', async () => {
    const kept = await openKeptWorld(wrong)
    for (let n = 0; n < 230; n += 1) void kept.publish(topicOf('truck-1'), untimed(n))
    await kept.publish(topicOf('truck-1'), 'no json')
    const before = await collect(kept.world.spool.deadLetters({ limit: 1000, reason: 'NOT_JSON' }))
    await kept.change(right)
    expect(await ask(kept)).toEqual({
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
    expect(await ask(kept)).toMatchObject({ deadLetters: 1, remapped: 0, payloads: 0 })
    expect(await kept.sent()).toHaveLength(230)
  })

  test('change nothing in a dry run', async () => {
    const kept = await openKeptWorld(wrong)
    for (let n = 0; n < 3; n += 1) await kept.publish(topicOf('truck-1'), untimed(n))
    await kept.change(right)
    expect(await ask(kept, { dryRun: true })).toMatchObject({
      dryRun: true,
      deadLetters: 3,
      remapped: 3,
      payloads: 3,
    })
    expect(await reasonsIn(kept)).toEqual(['NO_TIME', 'NO_TIME', 'NO_TIME'])
    expect(await kept.sent()).toEqual([])
    expect(await ask(kept)).toMatchObject({ remapped: 3 })
  })

  test('are chosen by reason and source', async () => {
    const kept = await openKeptWorld(wrong)
    await kept.publish(topicOf('truck-1'), untimed(1))
    await kept.publish('elsewhere/truck-1', untimed(2))
    await kept.change({
      sources: [...right.sources, truckSource({}, { name: 'more', topic: 'elsewhere/{device}' })],
    })
    expect(await ask(kept, { reason: 'NO_SOURCE', dryRun: true })).toMatchObject({
      deadLetters: 1,
      stillRefused: { NO_TIME: 1 },
    })
    expect(await ask(kept, { source: 'trucks' })).toMatchObject({ deadLetters: 1, remapped: 1 })
    expect(await reasonsIn(kept)).toEqual(['NO_SOURCE'])
  })

  test('are not sent again where the same payload was stored meanwhile', async () => {
    const kept = await openKeptWorld(wrong)
    await kept.publish(topicOf('truck-1'), untimed(1))
    await kept.change(right)
    await kept.publish(topicOf('truck-1'), untimed(1))
    expect(await ask(kept)).toMatchObject({ remapped: 1, payloads: 0, duplicates: 1 })
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
    expect(await ask(kept)).toMatchObject({ remapped: 2, payloads: 0, kept: 1, stillRefused: {} })
    const shelved = await collect(
      kept.world.spool.keptMessages('quarantine:default', 'truck-1', { limit: 10 }),
    )
    expect(shelved.map(({ message }) => message.reason)).toEqual(['UNKNOWN_DEVICE'])
    expect(await reasonsIn(kept)).toEqual([])
  })
})
