import { expect, test } from 'vitest'
import { receiptKey } from '../../../src/spool/chunk-log/key-layout.ts'
import { createMemoryDisk, withDamagedBlock } from '../../support/memory-store.ts'
import { ended, openSpoolWorld, rolesIn, sealAll, type SpoolWorld } from '../../support/open-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { emptyDisk, payloadNamed, provider } from '../../support/spool-world.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startSpool, spoolWords)

test('a late payload shares a write with fresh payloads of a lane that is rotated meanwhile, and nothing is lost', async () => {
  const disk = createMemoryDisk()
  const isLate = (_provider: string, deviceTime: number) => deviceTime < 1000
  const world = await openSpoolWorld({ isLate, openStore: disk.boot(), disk: emptyDisk })
  const { spool } = world
  const send = (name: string, deviceTime = 1000) => {
    spool.append(payloadNamed(name, { deviceTime }))
    return ended(spool)
  }
  await send('one')
  disk.hold()
  const acks = [send('two')]
  while (disk.waiting() === 0) await world.clock.advance(0)
  acks.push(send('three'))
  const rotated = spool.rotate(provider('default'))
  acks.push(send('old', 999))
  disk.release()
  expect([...(await Promise.all(acks)), await rotated]).toEqual([null, null, null, true])
  expect(await rolesIn(spool)).toEqual(['backfill: one two three old'])
  expect(spool.lanes()[0]).toMatchObject({ appended: 4, open: 4 })
})

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
