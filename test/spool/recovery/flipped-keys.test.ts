// One bit of a chunk's key flips while the spool is closed.

import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { ended, namesIn, openSpoolWorld, sealLane, type SpoolWorld } from '../../support/open-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const changes = { recentBytesMax: 0 }

/** Three providers, in lanes 1 to 3; two payloads in each chunk. */
async function filledSpool(): Promise<SpoolWorld> {
  const world = await openSpoolWorld({ changes })
  for (let n = 0; n < 4; n += 1)
    for (const provider of ['a', 'b', 'c']) {
      for (const half of ['x', 'y']) world.spool.append(payloadNamed(`${provider}${n}${half}`, { provider }))
      expect(await ended(world.spool)).toBeNull()
    }
  return world
}

async function moveRecord(world: SpoolWorld, key: Buffer, newKey: Buffer): Promise<SpoolWorld> {
  await world.spool.close()
  const store = await openLevelStore(join(world.path, 'store'))
  const value = await store.get(key)
  await store.write(
    [
      { type: 'del', key },
      { type: 'put', key: newKey, value: value! },
    ],
    { sync: true },
  )
  await store.close()
  return world.reopen()
}

test('a chunk of one provider whose key moves it into the lane of another one is not delivered there', async () => {
  const before = await filledSpool()
  const world = await moveRecord(
    before,
    seqKey(table.chunks, 3 as LaneId, 4),
    seqKey(table.chunks, 2 as LaneId, 8),
  )
  expect(await delivered(world)).toEqual({ a: namesOf('a'), b: namesOf('b'), c: namesOf('c', 2) })
  expect(world.spool.totals()).toMatchObject({ delivered: 22, damaged: 2, payloads: 0, openBytes: 0 })
})

/** What each provider would get, delivered to the end. */
async function delivered({ spool }: SpoolWorld): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const { id, provider } of spool.lanes()) {
    const names = (found[provider] ??= [])
    for (const batch of await sealLane(spool, id)) {
      const loaded = await spool.load(batch)
      for (const left of loaded.kind === 'content' ? [batch] : loaded.batches) {
        names.push(...(await namesIn(spool, left)))
        await spool.settle(left, { payloads: 'all delivered', requestId: null })
      }
    }
  }
  return found
}

const namesOf = (provider: string, without: number | null = null) =>
  [0, 1, 2, 3].filter((n) => n !== without).flatMap((n) => [`${provider}${n}x`, `${provider}${n}y`])

/** Of the table, the lane and the number. Others make a key of a chunk that exists. */
const bitsOfKey = [0, 9, 31, 37, 51, 60, 95, 100] as const

test.each(bitsOfKey)(
  'bit %i of the key of a chunk flips: no other provider gets its payloads',
  async (bit) => {
    const before = await filledSpool()
    const key = seqKey(table.chunks, 3 as LaneId, 4)
    const flipped = Buffer.from(key)
    flipped[bit >> 3]! ^= 0x80 >> (bit & 7)
    const world = await moveRecord(before, key, flipped)
    expect(await delivered(world)).toMatchObject({ a: namesOf('a'), b: namesOf('b'), c: namesOf('c', 2) })
    expect(world.spool.totals()).toMatchObject({ delivered: 22, payloads: 0 })
    expect(world.spool.totals().damaged).toBeGreaterThanOrEqual(2)
  },
)
