import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Held } from '../../../src/domain/held.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../../src/domain/settlement.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { claimRecord } from '../../../src/spool/chunk-log/record-codec.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { openExistingStore } from '../../../src/storage/storage.ts'
import { bodyOf } from '../../support/batch-body.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startSpool, spoolWords)

const lane = 1 as LaneId
const held: Held = { reason: 'repeated', since: 1_750_000_000_000, requestId: 'r-1', why: 'HTTP 409' }

async function sealedOne(world: SpoolWorld): Promise<Batch> {
  await world.publish('one')
  const batch = await world.spool.seal(lane, { payloadsMax: 1000, bodyBytesMax: 1e6 })
  return batch!
}

async function bodyIn(spool: Spool, batch: Batch): Promise<string> {
  const loaded = await spool.load(batch)
  if (loaded.kind !== 'content') throw new Error('the batch is damaged')
  return bodyOf(loaded.content).toString()
}

test('the body of a held batch is the same after a restart', async () => {
  const before = await openSpoolWorld()
  const batch = await sealedOne(before)
  const body = await bodyIn(before.spool, batch)
  await before.spool.setHeld(batch, held)
  const { spool } = await before.reopen()
  expect(spool.batches()).toEqual([{ ...batch, held, recovered: true }])
  expect(await bodyIn(spool, spool.batches()[0]!)).toBe(body)
})

test('of the cause of a held batch at most 300 characters are stored', async () => {
  const world = await openSpoolWorld()
  const stopped = await world.spool.setHeld(await sealedOne(world), { ...held, why: 'x'.repeat(1000) })
  expect(stopped.held?.why).toBe('x'.repeat(300))
})

test('the record of a claim is that of version 0.1.0 while the batch is not held', async () => {
  const world = await openSpoolWorld()
  const batch = await sealedOne(world)
  await world.spool.setHeld(await world.spool.setHeld(batch, held), null)
  await world.spool.close()
  const store = await openExistingStore(join(world.path, 'store'))
  const record = claimRecord.decode(await store.get(seqKey(table.batches, lane, 0)))
  await store.close()
  const { batchId, endSeq, payloads, bytes, timestamp } = batch
  expect(record).toEqual({ batchId, endSeq, payloads, bytes, timestamp, turn: 'batch' })
})

test('the operation of a batch changes its body to the payload itself and back, but not batchId, timestamp or range', async () => {
  const world = await openSpoolWorld()
  const { spool } = world
  const batch = await spool.setHeld(await sealedOne(world), held)
  const body = await bodyIn(spool, batch)
  await world.clock.advance(5000)
  const single = await spool.setOperation(batch, 'single')
  expect(single).toEqual({ ...batch, operation: 'single' })
  expect(await bodyIn(spool, single)).toBe(payloadNamed('one').json)
  const back = await spool.setOperation(single, 'batch')
  expect(back).toEqual(batch)
  expect(await bodyIn(spool, back)).toBe(body)
})

test('a lane counts nothing as settled before that is durable, when its retry is in its lane, too', async () => {
  const store = createHeldStore()
  const world = await openSpoolWorld({ openStore: store.openStore })
  const { spool } = world
  await world.publish('a')
  const [batch] = await sealAll(spool)
  await spool.load(batch!)
  const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }
  const retried: PayloadSettlement = { kind: 'retry', schedule: 'Timeout', step: 2, failure }
  store.hold()
  const settled = spool.settle(batch!, { payloads: [retried], requestId: null })
  while (store.waiting() === 0) await world.clock.advance(0)
  expect(spool.lanes()[0]).toMatchObject({ lowSeq: 0 })
  store.release()
  await settled
  const laneOf = (kind: string) => spool.lanes().find(({ role }) => role.kind === kind)
  expect(laneOf('live')).toMatchObject({ lowSeq: 1 })
  expect(laneOf('retry')).toMatchObject({ lowSeq: 0, committedSeq: 1 })
})
