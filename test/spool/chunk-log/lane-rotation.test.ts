import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import { ended, openSpoolWorld, rolesIn } from '../../support/open-spool.ts'
import { atEachPowerCut } from '../../support/power-cuts.ts'
import { emptyDisk, payloadNamed, provider } from '../../support/spool-world.ts'

const owner = provider('default')
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }

function send(spool: Spool, name: string): Promise<unknown> {
  spool.append(payloadNamed(name))
  return ended(spool)
}

describe('a live lane that is rotated', () => {
  test('becomes backfill with all its pending payloads, and the next payload opens a new live lane', async () => {
    const world = await openSpoolWorld()
    await world.publish('one')
    await world.publish('two')
    expect(await world.spool.rotate(owner)).toBe(true)
    await world.publish('three')
    expect(await rolesIn(world.spool)).toEqual(['backfill: one two', 'live: three'])
  })

  test('stays live if its provider has the maximum of backfill lanes', async () => {
    const world = await openSpoolWorld({ changes: { backfillLanesMax: 2 } })
    const rotated: boolean[] = []
    for (const name of ['one', 'two', 'three']) {
      await world.publish(name)
      rotated.push(await world.spool.rotate(owner))
    }
    expect(rotated).toEqual([true, true, false])
    expect(await rolesIn(world.spool)).toEqual(['backfill: one', 'backfill: two', 'live: three'])
  })

  test('still receives the payloads of the open group, and nothing is lost between the two lanes', async () => {
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

  test('never leaves two live lanes or a lost payload, at any power cut', async () => {
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
      async check(spool, done) {
        const rotated = done.filter((step) => step === 'rotated').length
        const acked = done.filter((step) => step !== 'rotated')
        // The power failed before a write, so the disk has exactly what was reported.
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

describe('the view of a lane', () => {
  test('says when the oldest pending and the oldest sealed payload was stored, also after a restart', async () => {
    let world = await openSpoolWorld()
    const { clock } = world
    const startedAt = clock.now()
    const agesOf = () =>
      world.spool
        .lanes()
        .map(({ oldestAt, oldestSealedAt }) =>
          [oldestAt, oldestSealedAt].map((at) => (at === null ? null : at - startedAt)),
        )
    await world.publish('one')
    expect(agesOf()).toEqual([[0, null]])
    await clock.advance(200_000)
    await world.spool.seal(1 as LaneId, wide)
    await clock.advance(50_000)
    await world.publish('two')
    expect(agesOf()).toEqual([[250_000, 0]])
    world = await world.reopen()
    // Of a sealed batch only the time of sealing is known until it is read.
    expect(agesOf()).toEqual([[250_000, 200_000]])
  })
})
