import { describe, expect, test } from 'vitest'
import type { PayloadSettlement } from '../../../src/domain/settlement.ts'
import { laneKey, receiptKey, receiptTotalsLane, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { createMemoryDisk, withDamagedBlock } from '../../support/memory-store.ts'
import {
  flipLastByte,
  openSpoolWorld,
  reopenTampered,
  sealAll,
  type SpoolWorld,
} from '../../support/open-spool.ts'
import { emptyDisk } from '../../support/spool-world.ts'

async function settleAll(
  { spool, publish }: Pick<SpoolWorld, 'spool' | 'publish'>,
  names: readonly string[],
  fate: PayloadSettlement = { kind: 'delivered' },
): Promise<void> {
  for (const name of names) {
    await publish(name)
    const [batch] = await sealAll(spool)
    await settle(spool, batch!, name, fate)
  }
}

async function settle(
  spool: Spool,
  batch: Batch,
  receipt: string,
  fate: PayloadSettlement = { kind: 'delivered' },
): Promise<void> {
  await spool.load(batch)
  await spool.settle(batch, { payloads: [fate], requestId: 'r' }, Buffer.from(receipt))
}

async function receiptsIn(spool: Spool, limit = 100): Promise<[number, string][]> {
  return (await spool.receipts({ limit })).map(({ n, value }) => [n, value.toString()])
}

describe('receipts', () => {
  test('are left out and counted above their bound, and the settle still succeeds', async () => {
    const world = await openSpoolWorld({ changes: { receiptBytesMax: 20 } })
    await settleAll(world, ['receipt 1', 'receipt 2'])
    expect(await receiptsIn(world.spool)).toEqual([[0, 'receipt 1']])
    expect(world.spool.totals()).toMatchObject({
      delivered: 2,
      openBytes: 0,
      receipts: 1,
      receiptBytes: 14,
      receiptsDropped: 1,
    })
    await world.spool.forgetReceipts(0)
    await settleAll(world, ['receipt 3'])
    expect(await receiptsIn(world.spool)).toEqual([[1, 'receipt 3']])
  })
})

describe('a damaged receipt', () => {
  test('is read without its bytes, keeps its number, and can be forgotten', async () => {
    const before = await openSpoolWorld()
    await settleAll(before, ['one', 'two'])
    const { spool } = await reopenTampered(before, receiptKey(0), flipLastByte)
    expect(await receiptsIn(spool)).toEqual([
      [0, ''],
      [1, 'two'],
    ])
    await spool.forgetReceipts(0)
    expect(await receiptsIn(spool)).toEqual([[1, 'two']])
  })

  test('in a block that cannot be read is skipped, and later numbers keep a distance', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    await settleAll(before, ['one', 'two', 'three', 'four', 'five'])
    await before.spool.close()
    const openStore = withDamagedBlock(disk.boot(), [receiptKey(1), receiptKey(4)])
    const world = await openSpoolWorld({ openStore, disk: emptyDisk })
    expect(await receiptsIn(world.spool)).toEqual([
      [0, 'one'],
      [2, 'three'],
      [3, 'four'],
    ])
    await settleAll(world, ['six'])
    const last = (await receiptsIn(world.spool)).at(-1)
    expect(last?.[1]).toBe('six')
    expect(last?.[0]).toBeGreaterThan(4)
  })

  test('total loses no receipt and reuses no number', async () => {
    const before = await openSpoolWorld()
    await settleAll(before, ['one', 'two', 'three'])
    await before.spool.forgetReceipts(1)
    const world = await reopenTampered(before, laneKey(table.totals, receiptTotalsLane), flipLastByte)
    await settleAll(world, ['four'])
    expect(await receiptsIn(world.spool)).toEqual([
      [2, 'three'],
      [3, 'four'],
    ])
  })
})
