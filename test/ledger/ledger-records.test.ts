import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { receiptKey, indexBlockKey } from '../../src/ledger/record-keys.ts'
import { openLevelStore } from '../../src/storage/storage.ts'
import { openRecordsWorld, receiptNumbered, receiptOf, startAt, uuidNamed } from '../support/ledger-world.ts'

const numbered = (from: number, until: number, payloads = 3) =>
  Array.from({ length: until - from }, (_, index) => receiptNumbered(from + index, payloads))

/** As all() lists them: the newest receipt first, in it the last payload first. */
const idsOf = (from: number, until: number, payloads = 3) =>
  Array.from({ length: until - from }, (_, index) => until - 1 - index).flatMap((n) =>
    Array.from({ length: payloads }, (_, index) => uuidNamed(`${n} ${payloads - 1 - index}`)),
  )

describe('the records', () => {
  test('list every payload once, the newest first, over answers of a few and over a restart', async () => {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 2000 })
    for (let from = 1; from < 61; from += 20) await world.records.append(numbered(from, from + 20), startAt)
    expect(await world.all()).toEqual(idsOf(1, 61))
    const again = await world.reopen()
    expect(await again.all()).toEqual(idsOf(1, 61))
    expect(again.records.totals()).toEqual(world.records.totals())
    expect(again.records.totals().records).toBe(180)
    // Of the payload that was settled first, whenever its block was written to.
    await again.records.append(numbered(61, 62), startAt + 3_600_000)
    expect(await again.records.beginsAt()).toBe(startAt + 90_000)
  })

  test('receipts that come a second time are not listed twice', async () => {
    const world = await openRecordsWorld()
    await world.records.append(numbered(5, 30), startAt)
    // The process died before the spool forgot them; more have come meanwhile.
    const again = await world.reopen()
    await again.records.append(numbered(10, 40), startAt)
    expect(await again.all()).toEqual(idsOf(5, 40))
    expect(again.records.totals().records).toBe(35 * 3)
  })

  test('a new spool beside old records, whose numbers begin again, is added to them', async () => {
    const world = await openRecordsWorld()
    await world.records.append(numbered(1, 20), startAt)
    const again = await world.reopen()
    const others = numbered(101, 110).map(({ value }, index) => ({ n: index + 1, value }))
    await again.records.append(others.slice(0, 5), startAt)
    const oncemore = await again.reopen()
    await oncemore.records.append(others.slice(3), startAt)
    expect(await oncemore.all()).toEqual([...idsOf(101, 110), ...idsOf(1, 20)])
  })

  test('are dropped from the oldest on, and what is left can be asked', async () => {
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

  test('can be dropped to the last one, and go on', async () => {
    const world = await openRecordsWorld()
    await world.records.append(numbered(1, 5), startAt)
    expect(await world.records.dropOldest()).toBe(12)
    expect(await world.records.dropOldest()).toBe(0)
    expect(world.records.totals()).toEqual({ records: 0, bytes: 0, oldestAt: null })
    expect(await world.records.beginsAt()).toBe(null)
    expect(await world.all()).toEqual([])
    await world.records.append(numbered(5, 7), startAt)
    expect(await world.all()).toEqual(idsOf(5, 7))
    expect((await world.reopen()).records.totals().records).toBe(6)
  })

  test('a receipt that is damaged is left out and counted; the others are there', async () => {
    const world = await openRecordsWorld()
    const receipts = numbered(1, 6)
    receipts[2]?.value.writeUInt8(7, 60)
    expect(await world.records.append(receipts, startAt)).toEqual({ damaged: 1 })
    expect(await world.all()).toEqual([...idsOf(4, 6), ...idsOf(1, 3)])
    // Also when they come again because the spool did not forget them.
    const again = await world.reopen()
    await again.records.append(receipts.slice(2), startAt)
    expect(await again.all()).toEqual([...idsOf(4, 6), ...idsOf(1, 3)])
  })

  test('a block or a receipt that cannot be read hides what it holds, and nothing else', async () => {
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
    // The oldest goes, and with it what stands behind it without a block.
    await again.records.dropOldest()
    expect(await again.all()).toEqual(idsOf(third, 60))
  })

  test('records whose last block is damaged, or of another format, cannot be used', async () => {
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

  test('give the disk of what was dropped back', async () => {
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
    // What is kept, and the log of what was written last.
    expect(onDisk()).toBeLessThan(12_000_000)
    expect(await world.all(10_000)).toHaveLength(world.records.totals().records)
  })
})

describe('a question', () => {
  async function threeDays() {
    const world = await openRecordsWorld({ blockReceiptBytesMax: 20_000 })
    const failure = {
      payloadId: '',
      errorType: 'Validation',
      errorMessage: 'no latitude',
      validationErrorDetails: [],
    }
    await world.records.append(numbered(1, 200), startAt)
    const entries = ['truck-7', 'van-1', 'bus-1'].map((device) => ({
      payloadId: uuidNamed(device),
      deviceTime: startAt + 999_000,
      device,
    }))
    const fates = [
      { kind: 'retry' as const, schedule: 'Validation', step: 1, failure },
      { kind: 'dead' as const, reason: 'Validation', detail: 'no latitude', failure },
      { kind: 'delivered' as const },
    ]
    const value = receiptOf(entries, { fates, batch: uuidNamed('odd'), request: 'Odd-Request', at: startAt })
    await world.records.append([{ n: 200, value }], startAt)
    await world.records.append(numbered(201, 400), startAt)
    return world
  }

  test('by device and time names the request that answered', async () => {
    const world = await threeDays()
    const { entries, next } = await world.ask({ device: 'truck-2', at: String(startAt + 150 * 60_000) })
    expect(entries).toEqual([
      {
        at: startAt + 150 * 60_000 + 30_000,
        payloadId: uuidNamed('150 2'),
        device: 'truck-2',
        deviceTime: startAt + 150 * 60_000 + 2000,
        outcome: 'delivered',
        schedule: null,
        step: null,
        reason: null,
        detail: null,
        provider: 'default',
        lane: 1,
        batchId: uuidNamed('batch 150'),
        requestId: 'request-150',
      },
      expect.objectContaining({ payloadId: uuidNamed('149 2'), requestId: 'request-149' }),
    ])
    expect(next).toBeNull()
  })

  test('by payload, batch and request finds them whatever their case', async () => {
    const world = await threeDays()
    const ids = async (words: Record<string, string>) =>
      (await world.ask(words)).entries.map((one) => one.device)
    expect(await ids({ payload: uuidNamed('van-1').toUpperCase() })).toEqual(['van-1'])
    expect(await ids({ batch: uuidNamed('odd').toUpperCase() })).toEqual(['bus-1', 'van-1', 'truck-7'])
    expect(await ids({ request: 'odd-request' })).toEqual(['bus-1', 'van-1', 'truck-7'])
    expect(await ids({ request: 'odd-request', device: 'truck-7' })).toEqual(['truck-7'])
    expect(await ids({ payload: uuidNamed('van-1'), device: 'truck-7' })).toEqual([])
    expect(await ids({ payload: uuidNamed('nothing') })).toEqual([])
    expect(await ids({ device: 'truck-70' })).toEqual([])
  })

  test('by outcome lists what was retried or given up, with its reason', async () => {
    const world = await threeDays()
    const dead = await world.ask({ outcome: 'dead' })
    expect(dead.entries).toMatchObject([{ device: 'van-1', reason: 'Validation', detail: 'no latitude' }])
    const retried = await world.ask({ outcome: 'retried' })
    expect(retried.entries).toMatchObject([{ device: 'truck-7', schedule: 'Validation', step: 1 }])
    expect((await world.ask({ outcome: 'delivered', limit: '10000' })).entries).toHaveLength(398 * 3 + 1)
  })

  test('by time takes both ends in', async () => {
    const world = await threeDays()
    const from = String(startAt + 10 * 60_000)
    const to = String(startAt + 11 * 60_000)
    const { entries } = await world.ask({ from, to })
    expect(entries.map(({ requestId }) => requestId)).toEqual([
      'request-11',
      'request-10',
      'request-10',
      'request-10',
    ])
  })

  test('goes on where an answer ended, while more is added and the oldest goes', async () => {
    const world = await threeDays()
    const first = await world.ask({ device: 'truck-1', limit: '50' })
    expect(first.entries[0]?.requestId).toBe('request-399')
    await world.records.append(numbered(400, 500), startAt)
    await world.records.dropOldest()
    const second = await world.ask({ device: 'truck-1', limit: '50', after: first.next ?? '' })
    expect(second.entries[0]?.requestId).toBe('request-349')
    expect(second.entries).toHaveLength(50)
  })
})
