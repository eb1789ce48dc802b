import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Held } from '../../../src/domain/held.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { claimRecord } from '../../../src/spool/chunk-log/record-codec.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { openExistingStore } from '../../../src/storage/storage.ts'
import { bodyOf } from '../../support/batch-body.ts'
import { namesIn, openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'

const lane = 1 as LaneId
const held: Held = { reason: 'repeated', since: 1_750_000_000_000, requestId: 'r-1', why: 'HTTP 409' }
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }

async function sealedOne(world: SpoolWorld): Promise<Batch> {
  await world.publish('one')
  const batch = await world.spool.seal(lane, wide)
  return batch!
}

async function bodyIn(spool: Spool, batch: Batch): Promise<string> {
  const loaded = await spool.load(batch)
  if (loaded.kind !== 'content') throw new Error('the batch is damaged')
  return bodyOf(loaded.content).toString()
}

describe('a held batch', () => {
  test('is held after a restart, and still the same batch', async () => {
    const before = await openSpoolWorld()
    const batch = await sealedOne(before)
    const body = await bodyIn(before.spool, batch)
    await before.spool.setHeld(batch, held)
    const { spool } = await before.reopen()
    const [recovered] = spool.batches()
    expect(recovered).toEqual({ ...batch, held, recovered: true })
    expect(await bodyIn(spool, recovered!)).toBe(body)
    expect((await spool.check(new AbortController().signal)).problems).toEqual([])
  })

  test('keeps its held state when its operation changes', async () => {
    const { spool, ...world } = await openSpoolWorld()
    const stopped = await spool.setHeld(await sealedOne({ spool, ...world }), held)
    expect(await spool.setOperation(stopped, 'single')).toMatchObject({ operation: 'single', held })
  })

  test('stores at most 300 characters of the cause', async () => {
    const world = await openSpoolWorld()
    const stopped = await world.spool.setHeld(await sealedOne(world), { ...held, why: 'x'.repeat(1000) })
    expect(stopped.held?.why).toBe('x'.repeat(300))
  })

  test('counts in its lane and in the totals, also after a restart', async () => {
    const before = await openSpoolWorld()
    await before.publish('a')
    await before.publish('b')
    const batch = (await before.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 1e6 }))!
    await before.spool.setHeld(batch, held)
    await sealAll(before.spool)
    const expected = { sealed: 2, heldBatches: 1, heldPayloads: 1, heldBytes: batch.bytes }
    expect(before.spool.lanes()).toMatchObject([expected])
    expect(before.spool.totals()).toMatchObject({ heldBatches: 1, heldPayloads: 1 })
    const { spool } = await before.reopen()
    expect(spool.lanes()).toMatchObject([expected])
    expect(spool.totals()).toMatchObject({ heldBatches: 1, heldPayloads: 1 })
  })
})

describe('the record of a claim', () => {
  async function recordAfter(world: SpoolWorld): Promise<object | null> {
    await world.spool.close()
    const store = await openExistingStore(join(world.path, 'store'))
    const value = await store.get(seqKey(table.batches, lane, 0))
    await store.close()
    return claimRecord.decode(value)
  }

  test('is that of version 0.1.0 while the batch is not held', async () => {
    const world = await openSpoolWorld()
    const batch = await sealedOne(world)
    await world.spool.setHeld(await world.spool.setHeld(batch, held), null)
    const { batchId, endSeq, payloads, bytes, timestamp } = batch
    expect(await recordAfter(world)).toEqual({ batchId, endSeq, payloads, bytes, timestamp, turn: 'batch' })
  })
})

describe('the timestamp of a batch', () => {
  const timestamp = 1_700_000_000_123

  test('is the one that the caller gives, rounded to milliseconds, and survives a restart', async () => {
    const before = await openSpoolWorld()
    await before.publish('one')
    const batch = (await before.spool.seal(lane, { ...wide, timestamp: timestamp + 0.3 }))!
    expect(batch.timestamp).toBe(timestamp)
    expect(JSON.parse(await bodyIn(before.spool, batch))).toMatchObject({ timestamp })
    const { spool } = await before.reopen()
    expect(spool.batches()).toMatchObject([{ batchId: batch.batchId, timestamp }])
    expect(await namesIn(spool, spool.batches()[0]!)).toEqual(['one'])
  })
})
