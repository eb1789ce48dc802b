// Messages that a version before 0.2 put on shelves of their own, as its records are in a spool.

import { describe, expect, test } from 'vitest'
import type { ShelfName } from '../../../src/domain/kept-store.ts'
import { envelopeOf } from '../../../src/domain/message.ts'
import { openKeptWorld, position, type KeptWorld } from '../../support/kept-world.ts'
import { messageOf, truckSource } from '../../support/mapping-world.ts'
import { ended, keptIn } from '../../support/open-spool.ts'

const shelf: ShelfName = 'deferred:odd'
const oddly = (n: number) => ({ t: position(n).ts, p: [position(n).lat, 13.4] })

/** The same source with expressions. */
const odd = truckSource(
  { time: { path: 't', format: 'ms' }, latitude: { expr: 'p[0]' }, longitude: { expr: 'p[1]' } },
  { name: 'odd', topic: 'odd/{device}' },
)

async function keepOld({ world: { spool } }: KeptWorld, payloads: readonly unknown[]): Promise<void> {
  for (const payload of payloads) {
    spool.keepMessage({
      shelf,
      provider: null,
      device: null,
      reason: 'EXPRESSION',
      detail: 'It waits for its expression to be evaluated.',
      envelope: envelopeOf(messageOf(payload, { topic: 'odd/van-1', arrivedAt: position(5000).ts }), 'odd'),
    })
    spool.endMessage(null)
  }
  expect(await ended(spool)).toBeNull()
}

async function openAfter(payloads: readonly unknown[], sources: readonly unknown[]): Promise<KeptWorld> {
  const before = await openKeptWorld({ sources: [odd], unknown: 'accept' })
  await keepOld(before, payloads)
  await before.leave()
  const kept = await openKeptWorld({ path: before.world.path, sources, unknown: 'accept' })
  kept.deferred.start()
  await kept.deferred.idle()
  return kept
}

describe('deferred messages of an earlier version', () => {
  test('2,000 are mapped in order at the first start', async () => {
    const all = Array.from({ length: 2000 }, (_, n) => oddly(n))
    const kept = await openAfter(all, [odd])
    expect((await kept.sent()).map(({ time }) => time)).toEqual(all.map(({ t }) => t))
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
    expect(kept.deferred.counters()).toEqual({ payloads: 2000, dead: 0 })
  })

  test('that the source cannot read now become dead letters with the reason; the others continue', async () => {
    const kept = await openAfter([oddly(0), { p: [1, 2] }, 'no json', oddly(1)], [odd])
    expect((await kept.sent()).map(({ time }) => time)).toEqual([position(0).ts, position(1).ts])
    expect(await kept.deadReasons()).toEqual(['NO_TIME', 'NOT_JSON'])
    expect(kept.deferred.counters()).toEqual({ payloads: 2, dead: 2 })
  })

  test('whose source is gone become dead letters too', async () => {
    const kept = await openAfter([oddly(0), oddly(1)], [truckSource()])
    expect(await kept.deadReasons()).toEqual(['NO_SOURCE', 'NO_SOURCE'])
    expect(await keptIn(kept.world.spool, shelf)).toEqual([])
  })

  test('stay where a stop comes first, and are mapped after it', async () => {
    const before = await openKeptWorld({ sources: [odd], unknown: 'accept' })
    await keepOld(before, [oddly(0)])
    await before.deferred.stop()
    before.deferred.start()
    await before.deferred.idle()
    expect(await keptIn(before.world.spool, shelf)).toEqual(['odd/van-1'])
    await before.leave()
    const kept = await openKeptWorld({ path: before.world.path, sources: [odd], unknown: 'accept' })
    kept.deferred.start()
    await kept.deferred.idle()
    expect(await kept.sent()).toHaveLength(1)
  })
})
