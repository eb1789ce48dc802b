import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { laneKey, seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Batch, BatchOperation } from '../../../src/spool/spool.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import {
  flipLastByte,
  namesIn,
  openSpoolWorld,
  reopenTampered,
  sealAll,
  type SpoolWorld,
} from '../../support/open-spool.ts'

const lane = 1 as LaneId
const claimAt = (firstSeq: number) => seqKey(table.batches, lane, firstSeq)

/** Messages named by their numbers, in batches of two. */
async function batchesOfTwo(count: number, operation: BatchOperation = 'batch') {
  const world = await openSpoolWorld()
  for (let n = 0; n < count; n += 1) expect(await world.publish(String(n))).toBeNull()
  const batches: Batch[] = []
  for (;;) {
    const limits = { payloadsMax: operation === 'single' ? 1 : 2, bodyBytesMax: 1e6, operation }
    const batch = await world.spool.seal(lane, limits)
    if (batch === null) return { world, batches }
    batches.push(batch)
  }
}

async function settle({ spool }: SpoolWorld, batch: Batch): Promise<string[]> {
  const names = await namesIn(spool, batch)
  await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  return names
}

async function deliverAll(world: SpoolWorld): Promise<string> {
  await sealAll(world.spool)
  const names: string[] = []
  for (const batch of world.spool.batches()) names.push(...(await settle(world, batch)))
  return names.join(' ')
}

async function expectWhole({ spool }: SpoolWorld): Promise<void> {
  expect(spool.totals()).toMatchObject({ damaged: 0, openBytes: 0 })
  expect(await spool.check(new AbortController().signal)).toMatchObject({ ok: true, problems: [] })
}

describe('a batch whose record is damaged', () => {
  test('is sent again with its own payloads if the one behind it was settled before', async () => {
    const { world: before, batches } = await batchesOfTwo(6)
    await settle(before, batches[1]!)
    const world = await reopenTampered(before, claimAt(0), flipLastByte)
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ lane: 1, firstSeq: 0, payloads: 0 }])
    expect(world.spool.batches()).toMatchObject([
      { firstSeq: 0, endSeq: 2, payloads: 2, operation: 'batch', recovered: true },
      { firstSeq: 4, batchId: batches[2]?.batchId },
    ])
    expect(world.spool.batches()[0]?.batchId).not.toBe(batches[0]?.batchId)
    expect(await deliverAll(world)).toBe('0 1 4 5')
    await expectWhole(world)
  })

  test('is sent again if it was the only one left and those around it were settled before', async () => {
    const { world: before, batches } = await batchesOfTwo(6)
    expect(await before.publish('6')).toBeNull()
    await settle(before, batches[2]!)
    await settle(before, batches[0]!)
    const world = await reopenTampered(before, claimAt(2), flipLastByte)
    expect(world.spool.lanes()).toMatchObject([{ pending: 1, sealed: 2, settled: 4, open: 3 }])
    expect(await deliverAll(world)).toBe('2 3 6')
    await expectWhole(world)
  })

  test('is pending again if nothing shows its end', async () => {
    const { world: before } = await batchesOfTwo(3)
    await before.spool.close()
    const world = await reopenTampered(await before.reopen(), claimAt(2), flipLastByte)
    expect(world.spool.lanes()).toMatchObject([{ pending: 1, sealed: 2 }])
    expect(await deliverAll(world)).toBe('0 1 2')
    await expectWhole(world)
  })

  test('or missing is sent again at any position, and so is one with a damaged record before it', async () => {
    const { world: before, batches } = await batchesOfTwo(8)
    await settle(before, batches[1]!)
    await settle(before, batches[3]!)
    const half = await reopenTampered(before, claimAt(4), () => null)
    expect(half.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 4, payloads: 0 }])
    expect(half.spool.batches()).toMatchObject([{ batchId: batches[0]?.batchId }, { firstSeq: 4, endSeq: 6 }])
    const mended = half.spool.batches().map(({ batchId }) => ({ batchId }))
    const again = await half.reopen()
    expect(again.spool.batches()).toMatchObject(mended)
    expect(again.eventsOf('chunk_damaged')).toEqual([])
    await again.spool.close()
    const store = await openLevelStore(join(again.path, 'store'))
    const claim = await store.get(claimAt(0))
    await store.write(
      [
        { type: 'put', key: claimAt(0), value: flipLastByte(claim!) },
        { type: 'del', key: claimAt(4) },
      ],
      { sync: true },
    )
    await store.close()
    const world = await again.reopen()
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0 }, { firstSeq: 4 }])
    expect(await deliverAll(world)).toBe('0 1 4 5')
    await expectWhole(world)
  })

  test('is sent by the batch operation, whatever its operation was', async () => {
    const { world: before, batches } = await batchesOfTwo(2, 'single')
    expect(batches).toMatchObject([{ operation: 'single' }, { operation: 'single' }])
    const world = await reopenTampered(before, claimAt(0), flipLastByte)
    expect(world.spool.batches()).toMatchObject([
      { operation: 'batch', payloads: 1 },
      { operation: 'single', batchId: batches[1]?.batchId },
    ])
    await settle(world, world.spool.batches()[0]!)
    const [left] = world.spool.batches()
    await world.spool.load(left!)
    await world.spool.settle(left!, { payloads: 'all delivered', requestId: null })
    await expectWhole(world)
  })

  test('loses nothing if only the totals of its lane are damaged and others were settled', async () => {
    const { world: before, batches } = await batchesOfTwo(4)
    expect(await before.publish('4')).toBeNull()
    await settle(before, batches[1]!)
    const world = await reopenTampered(before, laneKey(table.totals, lane), flipLastByte)
    expect(world.spool.lanes()).toMatchObject([{ pending: 1, sealed: 2, settled: 2, open: 3 }])
    expect(world.spool.batches()).toMatchObject([{ batchId: batches[0]?.batchId }])
    expect(await deliverAll(world)).toBe('0 1 4')
    await expectWhole(world)
  })

  test('loses nothing more if the totals of its lane are damaged as well', async () => {
    const { world: before, batches } = await batchesOfTwo(6)
    await settle(before, batches[0]!)
    const half = await reopenTampered(before, claimAt(2), flipLastByte)
    const world = await reopenTampered(half, laneKey(table.totals, lane), flipLastByte)
    expect(await deliverAll(world)).toBe('2 3 4 5')
    await expectWhole(world)
  })
})
