import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../src/domain/ids.ts'
import { seqKey, table } from '../../src/spool/chunk-log/key-layout.ts'
import type { LaneView, Spool } from '../../src/spool/spool.ts'
import { createMemoryDisk } from '../support/memory-store.ts'
import {
  ended,
  flipLastByte,
  openSpoolWorld,
  reopenTampered,
  rolesIn,
  sealLane,
  type SpoolWorld,
} from '../support/open-spool.ts'
import { atEachPowerCut } from '../support/power-cuts.ts'
import { emptyDisk, payloadNamed, provider } from '../support/spool-world.ts'

const owner = provider('default')
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }

function send(spool: Spool, name: string): Promise<unknown> {
  spool.append(payloadNamed(name), false)
  return ended(spool)
}

async function drain(spool: Spool, id: LaneId): Promise<void> {
  for (const batch of await sealLane(spool, id)) {
    await spool.load(batch)
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  }
}

const kinds = (lanes: readonly LaneView[]) => lanes.map(({ id, role }) => `${id} ${role.kind}`)

describe('a live lane that is rotated', () => {
  test('becomes backfill with all that waits in it, and what comes next is live in a new lane', async () => {
    const world = await openSpoolWorld()
    await world.publish('one')
    await world.publish('two')
    expect(await world.spool.rotate(owner)).toBe(true)
    await world.publish('three')
    expect(await rolesIn(world.spool)).toEqual(['backfill: one two', 'live: three'])
  })

  test('moves nothing: it costs one small write', async () => {
    const world = await openSpoolWorld()
    await world.publish('one')
    const { groups, payloads } = world.spool.totals()
    await world.spool.rotate(owner)
    expect(world.spool.totals()).toMatchObject({ groups: groups + 1, payloads })
    expect(kinds(world.spool.lanes())).toEqual(['1 backfill'])
  })

  test('keeps its sealed batches as they are; those sealed from now on are backfill', async () => {
    const world = await openSpoolWorld()
    await world.publish('one')
    const before = await world.spool.seal(1 as LaneId, wide)
    await world.publish('two')
    await world.spool.rotate(owner)
    const after = await world.spool.seal(1 as LaneId, wide)
    expect(world.spool.batches().map(({ batchId }) => batchId)).toEqual([before?.batchId, after?.batchId])
    expect([before?.role.kind, after?.role.kind]).toEqual(['live', 'backfill'])
  })

  test('stays live where nothing waits in it, and where there is none', async () => {
    const world = await openSpoolWorld()
    expect(await world.spool.rotate(owner)).toBe(false)
    await world.publish('one')
    await world.spool.seal(1 as LaneId, wide)
    expect(await world.spool.rotate(owner)).toBe(false)
    expect(kinds(world.spool.lanes())).toEqual(['1 live'])
  })

  test('stays live where its provider has as many backfill lanes as may be', async () => {
    const world = await openSpoolWorld({ changes: { backfillLanesMax: 2 } })
    const rotated: boolean[] = []
    for (const name of ['one', 'two', 'three']) {
      await world.publish(name)
      rotated.push(await world.spool.rotate(owner))
    }
    expect(rotated).toEqual([true, true, false])
    expect(await rolesIn(world.spool)).toEqual(['backfill: one', 'backfill: two', 'live: three'])
  })

  test('is that of its provider alone', async () => {
    const world = await openSpoolWorld()
    await world.publish('one')
    world.spool.append(payloadNamed('other', { provider: 'second' }), false)
    await ended(world.spool)
    await world.spool.rotate(provider('second'))
    expect(await rolesIn(world.spool)).toEqual(['live: one', 'backfill: other'])
  })

  test('takes in what was on its way to the disk, and nothing is lost between the two lanes', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    const { spool } = before
    await before.publish('one')
    disk.hold()
    const acks = [before.publish('two')]
    while (disk.waiting() === 0) await before.clock.advance(0)
    acks.push(before.publish('three'))
    const rotated = spool.rotate(owner)
    acks.push(before.publish('four'))
    disk.release()
    expect(await Promise.all(acks)).toEqual([null, null, null])
    expect(await rotated).toBe(true)
    await before.publish('five')
    expect(await rolesIn(spool)).toEqual(['backfill: one two three four', 'live: five'])
  })

  test('is backfill after a restart as before it', async () => {
    const before = await openSpoolWorld()
    await before.publish('one')
    await before.spool.rotate(owner)
    const world = await before.reopen()
    await world.publish('two')
    expect(await rolesIn(world.spool)).toEqual(['backfill: one', 'live: two'])
    expect((await world.spool.check(new AbortController().signal)).problems).toEqual([])
  })

  test('leaves never two live lanes and nothing in neither, wherever the power goes', async () => {
    const names = ['one', 'two', 'three']
    const writes = await atEachPowerCut({
      async history({ spool, publish }, done) {
        for (const name of names) {
          expect(await publish(name)).toBeNull()
          done.push(name)
          expect(await spool.rotate(owner)).toBe(true)
          done.push('rotated')
        }
      },
      async judge(spool, done) {
        const rotated = done.filter((step) => step === 'rotated').length
        const acked = done.filter((step) => step !== 'rotated')
        // The power went before a write: what is there is what was told, and nothing else.
        expect(await rolesIn(spool)).toEqual(
          acked.map((name, index) => `${index < rotated ? 'backfill' : 'live'}: ${name}`),
        )
        expect(await send(spool, 'later')).toBeNull()
        const live = spool.lanes().filter(({ role }) => role.kind === 'live')
        expect(live).toHaveLength(1)
      },
    })
    expect(writes).toBe(6)
  })
})

describe('a backfill lane that is drained', () => {
  /** Each outage leaves one backfill lane. */
  async function outage({ spool }: SpoolWorld, name: string): Promise<void> {
    await send(spool, name)
    await spool.rotate(owner)
  }

  /** The spool looks for what is drained once in `forgetMs`. */
  async function aMinute({ clock, spool }: SpoolWorld): Promise<void> {
    const { groups } = spool.totals()
    await clock.advance(60_000)
    // Whatever was asked for is durable once a write behind it is.
    while (spool.totals().groups === groups) await send(spool, `after ${groups}`)
  }

  test('is deleted with its totals, but for the youngest one of its provider', async () => {
    const world = await openSpoolWorld()
    await outage(world, 'one')
    await outage(world, 'two')
    await send(world.spool, 'three')
    for (const id of [1, 2]) await drain(world.spool, id as LaneId)
    await aMinute(world)
    expect(kinds(world.spool.lanes())).toEqual(['2 backfill', '3 live'])
    const check = await world.spool.check(new AbortController().signal)
    expect(check.problems).toEqual([])
    expect(check.lanes.map(({ lane }) => lane)).toEqual([2, 3])
  })

  test('stays while anything of it is pending or sealed', async () => {
    const world = await openSpoolWorld()
    for (const name of ['one', 'two', 'three']) await outage(world, name)
    await sealLane(world.spool, 1 as LaneId)
    await aMinute(world)
    expect(kinds(world.spool.lanes())).toEqual(['1 backfill', '2 backfill', '3 backfill', '4 live'])
  })

  test('gives its number to no other lane, also after a restart with nothing left', async () => {
    const before = await openSpoolWorld()
    for (const name of ['one', 'two', 'three']) await outage(before, name)
    for (const { id } of before.spool.lanes()) await drain(before.spool, id)
    const { groups } = before.spool.totals()
    await before.clock.advance(60_000)
    while (before.spool.totals().groups === groups) await new Promise((resolve) => setImmediate(resolve))
    const world = await before.reopen()
    expect(kinds(world.spool.lanes())).toEqual(['3 backfill'])
    await world.publish('four')
    expect(kinds(world.spool.lanes())).toEqual(['3 backfill', '4 live'])
  })

  test('leaves a few lanes only after a hundred outages', async () => {
    const world = await openSpoolWorld({ changes: { backfillLanesMax: 3 } })
    for (let n = 0; n < 100; n += 1) {
      await send(world.spool, `message ${n}`)
      expect(await world.spool.rotate(owner)).toBe(true)
      for (const { id } of world.spool.lanes()) await drain(world.spool, id)
      await aMinute(world)
    }
    expect(world.spool.lanes().length).toBeLessThan(5)
    expect(world.eventsOf('conservation_broken')).toEqual([])
    expect((await world.spool.check(new AbortController().signal)).problems).toEqual([])
  })

  test('stays where something of it was set aside, since its record says whose that is', async () => {
    const before = await openSpoolWorld()
    await outage(before, 'one')
    await outage(before, 'two')
    const world = await reopenTampered(before, seqKey(table.chunks, 1 as LaneId, 0), flipLastByte)
    expect(await world.spool.seal(1 as LaneId, wide)).toBeNull()
    await drain(world.spool, 2 as LaneId)
    await aMinute(world)
    expect(kinds(world.spool.lanes())).toEqual(['1 backfill', '2 backfill', '3 live'])
  })

  test('is there or gone as a whole, wherever the power goes', async () => {
    const writes = await atEachPowerCut({
      async history(world) {
        await outage(world, 'one')
        await outage(world, 'two')
        await send(world.spool, 'three')
        for (const id of [1, 2]) await drain(world.spool, id as LaneId)
        await aMinute(world)
      },
      async judge(spool) {
        expect((await spool.check(new AbortController().signal)).problems).toEqual([])
        const known = spool.lanes().map(({ id }) => id)
        expect(await send(spool, 'later')).toBeNull()
        const live = spool.lanes().filter(({ role }) => role.kind === 'live')
        expect(live).toHaveLength(1)
        const opened = spool.lanes().filter(({ id }) => !known.includes(id))
        for (const { id } of opened) expect(id).toBeGreaterThan(Math.max(0, ...known))
      },
    })
    expect(writes).toBe(10)
  })

  test('is nothing to seal any more for whoever still knows it', async () => {
    const world = await openSpoolWorld()
    await outage(world, 'one')
    await outage(world, 'two')
    await send(world.spool, 'three')
    await drain(world.spool, 1 as LaneId)
    await aMinute(world)
    expect(await world.spool.seal(1 as LaneId, wide)).toBeNull()
  })
})
