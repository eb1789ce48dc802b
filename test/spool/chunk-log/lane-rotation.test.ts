import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { openSpoolWorld, rolesIn } from '../../support/open-spool.ts'
import { provider } from '../../support/spool-world.ts'

const owner = provider('default')
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }

describe('a live lane that is rotated', () => {
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
