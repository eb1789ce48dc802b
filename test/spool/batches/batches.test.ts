import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Held } from '../../../src/domain/held.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { PayloadSettlement } from '../../../src/domain/settlement.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { claimRecord } from '../../../src/spool/chunk-log/record-codec.ts'
import type { Batch } from '../../../src/spool/spool.ts'
import { openExistingStore } from '../../../src/storage/storage.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startSpool, spoolWords)

const lane = 1 as LaneId
const held: Held = { reason: 'repeated', since: 1_750_000_000_000, requestId: 'r-1', why: 'HTTP 409' }

async function sealedOne(world: SpoolWorld): Promise<Batch> {
  await world.publish('one')
  const batch = await world.spool.seal(lane, { payloadsMax: 1000, bodyBytesMax: 1e6 })
  return batch!
}

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
  expect(record).toEqual({
    at: [batch.lane, batch.firstSeq],
    batchId,
    endSeq,
    payloads,
    bytes,
    timestamp,
    turn: 'batch',
  })
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
