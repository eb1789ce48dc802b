import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { bodyOf } from '../../support/batch-body.ts'
import {
  ended,
  flipLastByte,
  namesIn,
  openSpoolWorld,
  reopenTampered,
  type SpoolWorld,
  deliverAll,
} from '../../support/open-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const lane = 1 as LaneId
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }
/** Two messages of three payloads each, in chunks of 3, 1 and 2: one ends where four payloads make a full batch. */
async function twoMessages({ spool }: SpoolWorld): Promise<void> {
  for (const message of ['a', 'b']) {
    for (const part of [1, 2, 3]) spool.append(payloadNamed(`${message}${part}`))
    expect(await ended(spool)).toBeNull()
  }
}

async function sealed(world: SpoolWorld): Promise<Batch> {
  await twoMessages(world)
  const batch = await world.spool.seal(lane, wide)
  expect(batch?.payloads).toBe(6)
  return batch!
}

async function namesOf(spool: Spool, batches: readonly Batch[]): Promise<string[][]> {
  const names: string[][] = []
  for (const batch of batches) names.push(await namesIn(spool, batch))
  return names
}

describe('a resealed batch', () => {
  test('is cut inside chunks if the counts need it, and the same on the disk', async () => {
    const before = await openSpoolWorld({ changes: { recentBytesMax: 0 } })
    const parts = await before.spool.reseal(await sealed(before), [1, 4, 1])
    const names = [['a1'], ['a2', 'a3', 'b1', 'b2'], ['b3']]
    expect(await namesOf(before.spool, parts)).toEqual(names)
    const { spool } = await before.reopen()
    const recovered = spool.batches()
    expect(recovered.map(({ batchId }) => batchId)).toEqual(parts.map(({ batchId }) => batchId))
    expect(await namesOf(spool, recovered)).toEqual(names)
    expect((await spool.check(new AbortController().signal)).problems).toEqual([])
  })
})

describe('a damaged chunk', () => {
  test('that is found during a reseal is set aside, and batches of the rest come back', async () => {
    const before = await openSpoolWorld({ changes: { recentBytesMax: 0 } })
    const batch = await sealed(before)
    const world = await reopenTampered(before, seqKey(table.chunks, lane, 3), flipLastByte)
    const parts = await world.spool.reseal(world.spool.batches()[0]!, [2, 2, 2])
    const left = [
      ['a1', 'a2', 'a3'],
      ['b2', 'b3'],
    ]
    expect(await namesOf(world.spool, parts)).toEqual(left)
    expect(parts.map(({ batchId }) => batchId)).not.toContain(batch.batchId)
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ lane, firstSeq: 3, payloads: 1 }])
    expect(await deliverAll(world.spool)).toEqual(left.flat())
    expect(world.spool.lanes()[0]).toMatchObject({ appended: 6, settled: 6, open: 0 })
  })
})

describe('the operation of a batch', () => {
  async function sealedAlone(world: SpoolWorld): Promise<Batch> {
    await world.publish('one')
    const batch = await world.spool.seal(lane, wide)
    return batch!
  }

  async function bodyIn(spool: Spool, batch: Batch): Promise<string> {
    const loaded = await spool.load(batch)
    if (loaded.kind !== 'content') throw new Error('the batch is damaged')
    return bodyOf(loaded.content).toString()
  }

  test('changes its body to the payload itself and back, but not batchId, timestamp or range', async () => {
    const { spool, ...world } = await openSpoolWorld()
    const batch = await sealedAlone({ spool, ...world })
    const body = await bodyIn(spool, batch)
    await world.clock.advance(5000)
    const single = await spool.setOperation(batch, 'single')
    expect(single).toEqual({ ...batch, operation: 'single' })
    expect(await bodyIn(spool, single)).toBe(payloadNamed('one').json)
    const back = await spool.setOperation(single, 'batch')
    expect(back).toEqual(batch)
    expect(await bodyIn(spool, back)).toBe(body)
  })
})
