// The records of the ledger on real LevelDB: append, drop, reopen, damage.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { timeUnknown } from '../../src/domain/arrival.ts'
import { receiptKey, indexBlockKey } from '../../src/ledger/record-keys.ts'
import { openLevelStore } from '../../src/storage/storage.ts'
import { openRecordsWorld, receiptNumbered, startAt, uuidNamed } from '../support/ledger-world.ts'

const numbered = (from: number, until: number, payloads = 3) =>
  Array.from({ length: until - from }, (_, index) => receiptNumbered(from + index, payloads))

/** As all() lists them: the newest receipt first, in it the last payload first. */
const idsOf = (from: number, until: number, payloads = 3) =>
  Array.from({ length: until - from }, (_, index) => until - 1 - index).flatMap((n) =>
    Array.from({ length: payloads }, (_, index) => uuidNamed(`${n} ${payloads - 1 - index}`)),
  )

describe('the records of the ledger', () => {
  test('list a receipt once that is copied twice', async () => {
    const world = await openRecordsWorld()
    await world.records.append(numbered(5, 30), startAt)
    // The process ended before the spool removed them; more have come meanwhile.
    const again = await world.reopen()
    await again.records.append(numbered(10, 40), startAt)
    expect(await again.all()).toEqual(idsOf(5, 40))
    expect(again.records.totals().records).toBe(35 * 3)
  })

  test('keep old entries when a new spool starts its numbers again', async () => {
    const world = await openRecordsWorld()
    await world.records.append(numbered(1, 20), startAt)
    const again = await world.reopen()
    const others = numbered(101, 110).map(({ value }, index) => ({ n: index + 1, value }))
    await again.records.append(others.slice(0, 5), startAt)
    const third = await again.reopen()
    await third.records.append(others.slice(3), startAt)
    expect(await third.all()).toEqual([...idsOf(101, 110), ...idsOf(1, 20)])
  })

  test('are dropped oldest first, and the rest is still found', async () => {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 1000 })
    await world.records.append(numbered(1, 101), startAt)
    const { bytes } = world.records.totals()
    let dropped = 0
    while (world.records.totals().bytes > bytes / 2) dropped += await world.records.dropOldest()
    expect(world.records.totals().records).toBe(300 - dropped)
    const left = idsOf(1, 101).slice(0, 300 - dropped)
    expect(await world.all()).toEqual(left)
    const again = await world.reopen()
    expect(await again.all()).toEqual(left)
    expect(again.records.totals()).toEqual(world.records.totals())
    await again.records.append(numbered(101, 105), startAt)
    expect(await again.all()).toEqual([...idsOf(101, 105), ...left])
  })

  test('begin a new index block after a time, over restarts too, so that few do not outlive the retention', async () => {
    const hour = 3_600_000
    let world = await openRecordsWorld({ blockAgeMaxMs: 24 * hour })
    for (let n = 1; n <= 40; n += 1) {
      await world.records.append([receiptNumbered(n)], n === 1 ? timeUnknown : startAt + n * 6 * hour)
      if (n % 3 === 0) world = await world.reopen()
    }
    let blocks = 0
    for (let left = 120; left > 0; blocks += 1) {
      const dropped = await world.records.dropOldest()
      expect(dropped).toBeLessThanOrEqual(15)
      left -= dropped
    }
    expect(blocks).toBeLessThan(20)
  })

  test('that were written while our time was not known are as old as those behind them', async () => {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 1000 })
    await world.records.append(numbered(1, 61), timeUnknown)
    const { records } = await world.reopen()
    expect(records.totals().oldestAt).toBeNull()
    await records.append(numbered(61, 121), startAt)
    await records.dateOldest(startAt + 1000)
    expect(records.totals().oldestAt).toBe(startAt)
  })

  test('without a time count from the moment when it is known, where nothing is behind them', async () => {
    const { records } = await openRecordsWorld()
    await records.append(numbered(1, 3), timeUnknown)
    await records.dateOldest(startAt)
    expect(records.totals().oldestAt).toBe(startAt)
    await records.dateOldest(startAt + 1000)
    expect(records.totals().oldestAt).toBe(startAt)
  })

  test('lose only the entries of a damaged index block or receipt', async () => {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 1000 })
    await world.records.append(numbered(1, 61), startAt)
    await world.records.close()
    const store = await openLevelStore(world.path)
    const blocks: number[] = []
    for (let n = 1; n < 61; n += 1) if ((await store.get(indexBlockKey(n))) !== undefined) blocks.push(n)
    expect(blocks.length).toBeGreaterThan(5)
    const [, second = 0, third = 0] = blocks
    const damaged = [indexBlockKey(second), receiptKey(60)]
    await store.write(
      damaged.map((key) => ({ type: 'put', key, value: Buffer.from('x') })),
      { sync: false },
    )
    await store.close()
    const again = await world.reopen()
    const left = [...idsOf(third, 60), ...idsOf(1, second)]
    expect(await again.all()).toEqual(left)
    // Dropping the oldest also drops the receipts behind it that have no index block.
    await again.records.dropOldest()
    expect(await again.all()).toEqual(idsOf(third, 60))
  })

  test('cannot be used when their last index block is damaged or their format is unknown', async () => {
    for (const key of [indexBlockKey(1), Buffer.from([1])]) {
      const world = await openRecordsWorld()
      await world.records.append(numbered(1, 3), startAt)
      await world.records.close()
      const store = await openLevelStore(world.path)
      await store.write([{ type: 'put', key, value: Buffer.from('2') }], { sync: false })
      await store.close()
      await expect(openRecordsWorld({ path: world.path })).rejects.toMatchObject({ code: 'LEVEL_CORRUPTION' })
    }
  })

  test('free the disk space of what was dropped', async () => {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 200_000 })
    const onDisk = () =>
      readdirSync(world.path).reduce((sum, name) => sum + statSync(join(world.path, name)).size, 0)
    const { value } = receiptNumbered(1, 300)
    for (let from = 1; from < 4000; from += 100) {
      const receipts = Array.from({ length: 100 }, (_, index) => ({ n: from + index, value }))
      await world.records.append(receipts, startAt)
      while (world.records.totals().bytes > 2_000_000) await world.records.dropOldest()
    }
    await world.records.compact()
    // The records, and LevelDB's log of the last writes.
    expect(onDisk()).toBeLessThan(12_000_000)
    expect(await world.all(10_000)).toHaveLength(world.records.totals().records)
  })
})
