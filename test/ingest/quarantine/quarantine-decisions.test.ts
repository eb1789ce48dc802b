import { describe, expect, test } from 'vitest'
import {
  createQuarantineDecisions,
  type QuarantineDecisions,
  type KeptSelection,
} from '../../../src/ingest/quarantine/quarantine-decisions.ts'
import { systemClock } from '../../../src/std/clock.ts'
import {
  openKeptWorld,
  position,
  topicOf,
  type KeptOptions,
  type KeptWorld,
} from '../../support/kept-world.ts'
import { truckSource } from '../../support/mapping-world.ts'
import { collect, keptIn } from '../../support/open-spool.ts'

const shelf = 'quarantine:default'
const clockShelf = 'clock:default'
const dayMs = 86_400_000
const signal = () => new AbortController().signal
const of = (device: string | null, ...ids: string[]): KeptSelection => ({ device, ids })
const as = { restamp: false }
const stamped = { restamp: true }

/** A position from a clock that is a day and `n` seconds ahead. */
const ahead = (n: number) => ({ ...position(n), ts: Math.floor(Date.now() / 1000) * 1000 + dayMs + n * 1000 })
const unset = (n: number) => ({ ...position(n), ts: n * 1000 })

type World = KeptWorld & { decisions: QuarantineDecisions }

async function open(options: KeptOptions = {}): Promise<World> {
  const kept = await openKeptWorld({ listed: ['truck-1', 'truck-2'], ...options })
  const { world, events, mapping } = kept
  const emit: Parameters<typeof createQuarantineDecisions>[0]['emit'] = (event) => void events.push(event)
  return {
    ...kept,
    decisions: createQuarantineDecisions({
      spool: world.spool,
      clock: systemClock,
      ourTime: kept.ourTime,
      emit,
      mapping,
    }),
  }
}

async function idsIn({ world }: KeptWorld, device: string): Promise<string[]> {
  const ids: string[] = []
  for (const name of [shelf, clockShelf] as const)
    for (const { id } of await collect(world.spool.keptMessages(name, device, { limit: 1000 }))) ids.push(id)
  return ids
}

describe('messages that are kept because of their clock', () => {
  test('are released unchanged, in order of arrival, by a command', async () => {
    const kept = await open()
    const messages = Array.from({ length: 250 }, (_, n) => ahead(n))
    for (const message of messages) void kept.publish(topicOf('truck-1'), message)
    await kept.publish(topicOf('truck-2'), ahead(1))
    expect(await kept.decisions.release(of('truck-1'), as, signal())).toEqual({
      released: 250,
      payloads: 250,
      dead: {},
      ignored: {},
      kept: {},
      duplicates: 0,
      unlisted: 0,
      releasing: 0,
    })
    expect((await kept.sent()).map(({ device, time }) => [device, time])).toEqual(
      messages.map(({ ts }) => ['truck-1', ts]),
    )
    expect(await keptIn(kept.world.spool, clockShelf)).toEqual([topicOf('truck-2')])
    expect(kept.events.filter(({ kind }) => kind === 'quarantine_decided')).toEqual([
      {
        kind: 'quarantine_decided',
        decision: 'release',
        device: 'truck-1',
        messages: 250,
        payloads: 250,
        dead: 0,
      },
    ])
  })

  test('get the time of their arrival with restamp, also while the clock offset is unknown', async () => {
    for (const offsetMs of [0, null]) {
      const kept = await open()
      const before = Date.now()
      await kept.publish(topicOf('truck-1'), ahead(1))
      await kept.publish(topicOf('truck-1'), unset(2))
      const after = Date.now()
      kept.setOffset(offsetMs)
      expect(await kept.decisions.release(of('truck-1'), stamped, signal())).toMatchObject({ payloads: 2 })
      const times = (await kept.sent()).map(({ time }) => time)
      expect(times).toHaveLength(2)
      for (const time of times) expect(time >= before && time <= after, String(time)).toBe(true)
    }
  })

  test('are released one by one by their ids, or all at once', async () => {
    const kept = await open()
    for (let n = 0; n < 3; n += 1) await kept.publish(topicOf('truck-1'), unset(n))
    await kept.publish(topicOf('truck-2'), unset(7))
    const [, second = ''] = await idsIn(kept, 'truck-1')
    await kept.decisions.release(of('truck-1', second), as, signal())
    expect((await kept.sent()).map(({ time }) => time)).toEqual([1000])
    await expect(kept.decisions.release(of('truck-1', second), as, signal())).rejects.toThrow('There is no')
    expect(await kept.decisions.release(of(null), as, signal())).toMatchObject({ released: 3 })
    expect((await kept.sent()).map(({ time }) => time)).toEqual([1000, 0, 2000, 7000])
    expect(kept.decisions.counters()).toEqual({ released: 4, dead: 0, dropped: 0 })
  })

  test('of an unlisted device stay, and the answer says to list it', async () => {
    const kept = await open()
    await kept.publish(topicOf('truck-1'), unset(1))
    await kept.publish(topicOf('unlisted'), position(1))
    await kept.change({ listed: ['truck-2'] })
    for (const which of [of('truck-1'), of('unlisted'), of(null, (await idsIn(kept, 'unlisted'))[0] ?? '')])
      await expect(kept.decisions.release(which, as, signal())).rejects.toMatchObject({
        code: 'DAEMON_REFUSED',
        act: expect.stringContaining('devices.file'),
      })
    expect(await kept.decisions.release(of(null), as, signal())).toMatchObject({ released: 0, unlisted: 2 })
    expect(await keptIn(kept.world.spool, shelf)).toHaveLength(1)
    expect(await keptIn(kept.world.spool, clockShelf)).toHaveLength(1)
  })

  test('become dead letters in the same write where they cannot be mapped now', async () => {
    const kept = await open()
    await kept.publish(topicOf('truck-1'), unset(1))
    await kept.change({ sources: [truckSource({ time: { path: 'other', format: 'ms' } })] })
    expect(await kept.decisions.release(of('truck-1'), as, signal())).toMatchObject({
      released: 1,
      payloads: 0,
      dead: { NO_TIME: 1 },
    })
    expect(await kept.deadReasons()).toEqual(['NO_TIME'])
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
  })
})

describe('messages that a command drops', () => {
  test('become dead letters with that reason; a dry run changes nothing', async () => {
    const kept = await open()
    await kept.publish(topicOf('unlisted'), position(1))
    await kept.publish(topicOf('unlisted'), position(2))
    await kept.publish(topicOf('truck-1'), unset(1))
    const report = { messages: 2, reasons: { UNKNOWN_DEVICE: 2 } }
    expect(await kept.decisions.drop(of('unlisted'), { dryRun: true }, signal())).toEqual({
      ...report,
      dryRun: true,
    })
    expect(await kept.deadReasons()).toEqual([])
    expect(await kept.decisions.drop(of('unlisted'), { dryRun: false }, signal())).toEqual({
      ...report,
      dryRun: false,
    })
    const deadLetters = await collect(kept.world.spool.deadLetters({ limit: 10 }))
    expect(deadLetters.map(({ deadLetter }) => deadLetter)).toMatchObject([
      { reason: 'DROPPED_BY_OPERATOR', device: 'unlisted', envelope: { topic: topicOf('unlisted') } },
      { reason: 'DROPPED_BY_OPERATOR', detail: expect.stringContaining('UNKNOWN_DEVICE') },
    ])
    expect(kept.events.filter(({ kind }) => kind === 'quarantine_decided')).toMatchObject([
      { decision: 'drop', device: 'unlisted', messages: 2, dead: 2 },
    ])
    expect(await keptIn(kept.world.spool, clockShelf)).toEqual([topicOf('truck-1')])
    expect(kept.decisions.counters()).toEqual({ released: 0, dead: 0, dropped: 2 })
  })

  test('can be selected by the reason for which they are kept', async () => {
    const kept = await open()
    await kept.publish(topicOf('unlisted'), position(1))
    await kept.publish(topicOf('other'), position(2))
    await kept.publish(topicOf('truck-1'), unset(1))
    const all = { device: null, ids: [], reason: 'UNKNOWN_DEVICE' }
    expect(await kept.decisions.drop(all, { dryRun: false }, signal())).toMatchObject({ messages: 2 })
    expect(await keptIn(kept.world.spool, clockShelf)).toEqual([topicOf('truck-1')])
    await expect(kept.decisions.drop(all, { dryRun: false }, signal())).rejects.toThrow('UNKNOWN_DEVICE')
  })

  test('are not mapped by a remap, unless it names their reason', async () => {
    const kept = await open()
    await kept.publish(topicOf('unlisted'), position(1))
    await kept.decisions.drop(of('unlisted'), { dryRun: false }, signal())
    await kept.change({ listed: ['unlisted'] })
    expect(await kept.remap()).toMatchObject({ deadLetters: 0 })
    expect(await kept.remap({ reason: 'DROPPED_BY_OPERATOR' })).toMatchObject({ deadLetters: 1, payloads: 1 })
  })
})
