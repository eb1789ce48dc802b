import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { laneKey, seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { flipLastByte, namesIn, openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'

const lane = 1 as LaneId
const totals = laneKey(table.totals, lane)
const chunks = (...seqs: number[]) => seqs.map((seq) => seqKey(table.chunks, lane, seq))
const claims = (...seqs: number[]) => seqs.map((seq) => seqKey(table.batches, lane, seq))

/**
 * Twenty payloads in chunks of one, named by their numbers. Batches of two hold 0 to 7; those with 0 and 4
 * are delivered.
 */
async function twentyPayloads(): Promise<SpoolWorld> {
  const world = await openSpoolWorld()
  for (let n = 0; n < 20; n += 1) await world.publish(String(n))
  for (let n = 0; n < 4; n += 1)
    await world.spool.seal(lane, { payloadsMax: 2, bodyBytesMax: 64 * 1024 ** 2 })
  for (const batch of world.spool.batches()) {
    if (batch.firstSeq % 4 !== 0) continue
    await world.spool.load(batch)
    await world.spool.settle(batch, { payloads: 'all delivered', requestId: null })
  }
  return world
}

/** Opens it again without the mark and with these changes. */
async function damaged(
  world: SpoolWorld,
  { missing, flipped }: { missing: Buffer[]; flipped: Buffer[] },
): Promise<SpoolWorld> {
  await world.spool.close()
  await rm(join(world.path, 'mark'))
  const store = await openLevelStore(join(world.path, 'store'))
  await store.write(
    missing.map((key) => ({ type: 'del', key })),
    { sync: true },
  )
  for (const key of flipped)
    await store.write([{ type: 'put', key, value: flipLastByte((await store.get(key))!) }], { sync: true })
  await store.close()
  return world.reopen()
}

async function deliverAll({ spool }: SpoolWorld): Promise<string[]> {
  const names: string[] = []
  await sealAll(spool)
  for (const batch of spool.batches()) {
    const loaded = await spool.load(batch)
    for (const left of loaded.kind === 'replaced' ? loaded.batches : [batch]) {
      names.push(...(await namesIn(spool, left)))
      await spool.settle(left, { payloads: 'all delivered', requestId: null })
    }
  }
  return names.sort((one, other) => Number(one) - Number(other))
}

const unsettled = ['2', '3', ...Array.from({ length: 14 }, (_, n) => String(n + 6))]

describe('a lane without totals and without the high-water mark', () => {
  const cases: { name: string; missing: Buffer[]; flipped: Buffer[]; lost: string[]; damaged: number }[] = [
    // 0, 1, 4 and 5 were delivered, which nothing shows any more.
    { name: 'nothing else is lost', missing: [totals], flipped: [], lost: [], damaged: 4 },
    { name: 'the totals are damaged only', missing: [], flipped: [totals], lost: [], damaged: 0 },
    {
      name: 'the first pending chunks are missing',
      missing: [totals, ...chunks(8, 9, 10, 11)],
      flipped: [],
      lost: ['8', '9', '10', '11'],
      damaged: 8,
    },
    {
      name: 'pending chunks in the middle are missing',
      missing: [totals, ...chunks(14, 15)],
      flipped: [],
      lost: ['14', '15'],
      damaged: 6,
    },
    {
      name: 'the totals and a pending chunk are damaged',
      missing: [],
      flipped: [totals, ...chunks(14)],
      lost: ['14'],
      damaged: 1,
    },
    {
      name: 'a sealed chunk is missing',
      missing: [totals, ...chunks(2)],
      flipped: [],
      lost: ['2'],
      damaged: 5,
    },
    {
      name: 'the record of a batch is missing',
      missing: [totals, ...claims(2)],
      flipped: [],
      lost: [],
      damaged: 4,
    },
    {
      name: 'the records of all batches are missing',
      missing: [totals, ...claims(2, 6)],
      flipped: [],
      lost: [],
      damaged: 4,
    },
    {
      name: 'everything before the last payloads is missing',
      missing: [totals, ...claims(2, 6), ...chunks(2, 3, ...Array.from({ length: 12 }, (_, n) => n + 6))],
      flipped: [],
      lost: ['2', '3', ...Array.from({ length: 12 }, (_, n) => String(n + 6))],
      damaged: 18,
    },
  ]

  test.each(cases)('$name', async ({ missing, flipped, lost, damaged: count }) => {
    const world = await damaged(await twentyPayloads(), { missing, flipped })
    const [view] = world.spool.lanes()
    expect(view?.open).toBeGreaterThanOrEqual(0)
    for (let n = 0; n < 10; n += 1) {
      await world.clock.advance(200)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(world.eventsOf('conservation_broken')).toEqual([])
    expect(await world.publish('100')).toBeNull()
    expect(await deliverAll(world)).toEqual([...unsettled.filter((name) => !lost.includes(name)), '100'])
    expect(world.spool.totals().damaged).toBe(count)
    expect(world.eventsOf('chunk_damaged').reduce((sum, { payloads }) => sum + payloads, 0)).toBe(count)
    const [after] = world.spool.lanes()
    expect(after).toMatchObject({ open: 0, pending: 0, sealed: 0, settled: after!.appended })
    expect(after!.appended).toBeGreaterThan(1_000_000)
  })

  test('says how many payloads were settled or are missing', async () => {
    const world = await damaged(await twentyPayloads(), { missing: [], flipped: [totals] })
    expect(world.eventsOf('chunk_damaged')).toMatchObject([
      {
        payloads: 0,
        what: 'the totals of the lane are damaged; they were recounted; which of 4 payloads were settled before is not known',
      },
    ])
  })
})
