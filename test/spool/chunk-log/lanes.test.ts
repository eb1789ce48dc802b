import { expect, test } from 'vitest'
import { receiptKey } from '../../../src/spool/chunk-log/key-layout.ts'
import { createMemoryDisk, withDamagedBlock } from '../../support/memory-store.ts'
import { openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { emptyDisk } from '../../support/spool-world.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startSpool, spoolWords)

test('receipts in a block that cannot be read are skipped, and later numbers keep a distance', async () => {
  const settle = async ({ spool, publish }: SpoolWorld, names: readonly string[]) => {
    for (const name of names) {
      await publish(name)
      const [batch] = await sealAll(spool)
      await spool.load(batch!)
      await spool.settle(batch!, { payloads: 'all delivered', requestId: 'r' }, Buffer.from(name))
    }
  }
  const disk = createMemoryDisk()
  const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
  await settle(before, ['one', 'two', 'three', 'four', 'five'])
  await before.spool.close()
  const openStore = withDamagedBlock(disk.boot(), [receiptKey(1), receiptKey(4)])
  const world = await openSpoolWorld({ openStore, disk: emptyDisk })
  const receipts = async () =>
    (await world.spool.receipts({ limit: 100 })).map(({ n, value }) => [n, value.toString()])
  expect(await receipts()).toEqual([
    [0, 'one'],
    [2, 'three'],
    [3, 'four'],
  ])
  await settle(world, ['six'])
  const [number, last] = (await receipts()).at(-1) ?? []
  expect(last).toBe('six')
  expect(number).toBeGreaterThan(4)
})
