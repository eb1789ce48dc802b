import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { addText, newChunkBuilder, readChunk } from '../../../src/spool/chunk-log/chunk-codec.ts'
import { seqOf, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import {
  addRef,
  adjustWalk,
  chunkCommitted,
  chunkDeleted,
  firstOpenSeq,
  newLane,
  putNewChunk,
  type Walk,
} from '../../../src/spool/chunk-log/lane.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { openLevelStore, type StoreOp } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { namesIn, openSpoolWorld, sealAll } from '../../support/open-spool.ts'
import { provider } from '../../support/spool-world.ts'

function laneOf() {
  return newLane(1 as LaneId, provider('default'), { kind: 'live' }, 0)
}

function builderOf(...payloads: string[]) {
  const builder = newChunkBuilder(16)
  for (const payload of payloads) addText(builder, payload, 0)
  return builder
}

const deliver = async (spool: Spool, batch: Batch) => {
  await spool.load(batch)
  await spool.settle(batch, { payloads: 'all delivered', requestId: null })
}

describe('a lane', () => {
  test('numbers its payloads in ascending order, and the database holds them under these numbers', async () => {
    const store = await openLevelStore(join(await newFolder(), 'store'))
    const lane = laneOf()
    const ops: StoreOp[] = []
    const written = [builderOf('a', 'bb'), builderOf('ccc'), builderOf('d', 'e')].map((builder) =>
      putNewChunk(lane, builder, 7, ops),
    )
    expect(written.map(({ firstSeq }) => firstSeq)).toEqual([0, 2, 3])
    await store.write(ops, { sync: true })
    const found: unknown[] = []
    for await (const page of store.pages(tableRange(table.chunks)))
      for (const [key, value] of page) {
        const { count, startBytes, committedAt } = readChunk(value)!
        found.push({ seq: seqOf(key), count, startBytes, committedAt })
      }
    await store.close()
    expect(found).toEqual([
      { seq: 0, count: 2, startBytes: 0, committedAt: 7 },
      { seq: 2, count: 1, startBytes: 3, committedAt: 7 },
      { seq: 3, count: 2, startBytes: 6, committedAt: 7 },
    ])
  })

  test('counts a payload as open from its number on, and as pending only when it is durable', () => {
    const lane = laneOf()
    const written = putNewChunk(lane, builderOf('a', 'b'), 7, [])
    expect(lane).toMatchObject({ nextSeq: 2, openPayloads: 2, committedSeq: 0, refs: [] })
    chunkCommitted(written)
    expect(lane).toMatchObject({ committedSeq: 2, committedBytes: 2, refsEnd: 2 })
    chunkDeleted(lane, 0, 2)
    expect(lane).toMatchObject({ openPayloads: 0, nextSeq: 2 })
  })

  test('refuses chunks that become durable in another order than that of their numbers', () => {
    const lane = laneOf()
    putNewChunk(lane, builderOf('a'), 7, [])
    const second = putNewChunk(lane, builderOf('b'), 7, [])
    expect(() => chunkCommitted(second)).toThrow(/in the order of their numbers/)
  })

  test('knows only chunks that follow each other, up to its bound', () => {
    const lane = laneOf()
    const refAt = (firstSeq: number) => ({
      firstSeq,
      count: 1,
      bytes: 1,
      startBytes: firstSeq,
      committedAt: 0,
    })
    expect(addRef(lane, refAt(1))).toBe(false)
    for (let seq = 0; seq < 16_384; seq += 1) expect(addRef(lane, refAt(seq))).toBe(true)
    expect(addRef(lane, refAt(16_384))).toBe(false)
    expect(lane.refsEnd).toBe(16_384)
  })

  test('reports deletions behind a walk at once, and those ahead when the walk gets there', () => {
    const walk: Walk = { cursorSeq: 10, payloads: 5, bytes: 50, addedBytes: 0, deleted: new Map() }
    adjustWalk(walk, 4, 2, 20)
    adjustWalk(walk, 10, 3, 30)
    adjustWalk(null, 4, 2)
    const deleted = new Map([[10, { count: 3, bytes: 30 }]])
    expect(walk).toEqual({ cursorSeq: 10, payloads: 3, bytes: 30, addedBytes: 0, deleted })
  })
})

describe('the numbers of a lane', () => {
  test('are never assigned again, also after a restart with nothing left in the lane', async () => {
    const before = await openSpoolWorld()
    for (const name of ['a', 'b', 'c']) await before.publish(name)
    for (const batch of await sealAll(before.spool)) await deliver(before.spool, batch)
    expect(before.spool.lanes()).toMatchObject([{ appended: 3, settled: 3, open: 0 }])
    const { spool, publish } = await before.reopen()
    await publish('d')
    const [batch] = await sealAll(spool)
    expect(batch).toMatchObject({ firstSeq: 3, endSeq: 4 })
  })

  test('stay the same for pending payloads when a later batch settles first', async () => {
    const before = await openSpoolWorld()
    for (const name of ['a', 'b', 'c', 'd']) await before.publish(name)
    const { id } = before.spool.lanes()[0]!
    const limits = { payloadsMax: 1, bodyBytesMax: 1e6 }
    await before.spool.seal(id, limits)
    const second = await before.spool.seal(id, limits)
    await deliver(before.spool, second!)
    const { spool } = await before.reopen()
    expect(spool.batches()).toMatchObject([{ firstSeq: 0, endSeq: 1 }])
    const rest = await sealAll(spool)
    expect(rest).toMatchObject([{ firstSeq: 2, endSeq: 4 }])
    expect(await namesIn(spool, rest[0]!)).toEqual(['c', 'd'])
  })

  test('of a lane start at its first claim for a search', () => {
    const lane = laneOf()
    lane.sealSeq = 9
    expect(firstOpenSeq(lane)).toBe(9)
    lane.claims.set(4, { batch: {} as Batch, refs: null, settling: false })
    expect(firstOpenSeq(lane)).toBe(4)
  })
})
