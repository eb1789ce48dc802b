import { describe, expect, test } from 'vitest'
import { attemptsIn, type PayloadSettlement } from '../../../src/domain/settlement.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { retryKey } from '../../../src/spool/session-state.ts'
import type { Batch, Spool } from '../../../src/spool/spool.ts'
import { openLevelStore, type Store } from '../../../src/storage/storage.ts'
import { flipLastByte, namesIn, openSpoolWorld, sealAll, type SpoolWorld } from '../../support/open-spool.ts'

const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }
const delivered: PayloadSettlement = { kind: 'delivered' }
const dead: PayloadSettlement = { kind: 'dead', reason: 'Validation', detail: 'no asset', failure }

function retryAt(step: number): PayloadSettlement {
  return { kind: 'retry', schedule: 'Timeout', step, failure }
}

async function settleAs(
  spool: Spool,
  batch: Batch,
  payloads: PayloadSettlement[] | 'all delivered',
): Promise<void> {
  await spool.load(batch)
  await spool.settle(batch, { payloads, requestId: 'request-1' })
}

/** One sealed batch with a payload for each name. */
async function sealed(world: SpoolWorld, ...names: string[]): Promise<Batch> {
  for (const name of names) await world.publish(name)
  const [batch] = await sealAll(world.spool)
  expect(batch).toMatchObject({ payloads: names.length })
  return batch!
}

async function attemptsOf(spool: Spool, batch: Batch): Promise<readonly number[]> {
  const loaded = await spool.load(batch)
  return loaded.kind === 'content' ? loaded.content.attempts() : []
}

describe('a settle', () => {
  test('reads the lanes of version 0.1: each step is an attempt of its schedule', async () => {
    const role = { kind: 'retry', schedule: 'Timeout', step: 1 } as const
    expect([...attemptsIn(role)]).toEqual([['Timeout', 2]])
    expect(retryKey(role)).toBe(retryKey({ ...role, counted: { Timeout: 2 } }))
    expect(retryKey(role)).not.toBe(retryKey({ ...role, counted: { Timeout: 1 } }))
  })

  test('opens a bounded number of retry lanes, however the answers change', async () => {
    const world = await openSpoolWorld()
    const { spool } = world
    let batch = await sealed(world, 'a')
    for (let answer = 0; answer < 200; answer += 1) {
      await settleAs(spool, batch, [
        { kind: 'retry', schedule: `rule-${answer % 7}`, step: answer % 5, failure },
      ])
      batch = (await sealAll(spool)).at(-1)!
    }
    expect(spool.lanes().length).toBeLessThanOrEqual(1 + 64 + 7 * 5)
    expect(await attemptsOf(spool, batch)).toEqual([200])
  })
})

describe('a settle of a batch with a chunk that became damaged after it was sent', () => {
  /** A sealed batch of a, b and c, of which the chunk of b is damaged once it was loaded. */
  async function damagedAfterSending(world: SpoolWorld, store: Store): Promise<Batch> {
    const batch = await sealed(world, 'a', 'b', 'c')
    await world.spool.load(batch)
    const key = seqKey(table.chunks, batch.lane, 1)
    const value = await store.get(key)
    await store.write([{ type: 'put', key, value: flipLastByte(value!) }], { sync: true })
    return batch
  }

  async function openWorld() {
    const stores: Store[] = []
    const openStore = async (path: string) => {
      const store = await openLevelStore(path)
      stores.push(store)
      return store
    }
    const world = await openSpoolWorld({ openStore, changes: { recentBytesMax: 0 } })
    return { world, store: stores[0]! }
  }

  test('settles what was delivered as delivered, also what cannot be read any more', async () => {
    const { world, store } = await openWorld()
    const batch = await damagedAfterSending(world, store)
    await world.spool.settle(batch, { payloads: [delivered, delivered, retryAt(0)], requestId: null })
    expect(world.spool.totals()).toMatchObject({ delivered: 2, retried: 1, damaged: 0 })
    expect(world.eventsOf('chunk_damaged')).toEqual([])
    const [retry] = await sealAll(world.spool)
    expect(await namesIn(world.spool, retry!)).toEqual(['c'])
  })

  test.each([
    ['be retried', retryAt(0)],
    ['become dead letters', dead],
  ])('counts those that must %s and cannot be read as damaged, and sets them aside', async (_what, kind) => {
    const { world, store } = await openWorld()
    const batch = await damagedAfterSending(world, store)
    await world.spool.settle(batch, { payloads: [delivered, kind, kind], requestId: null })
    expect(world.spool.totals()).toMatchObject({ delivered: 1, damaged: 1 })
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ lane: batch.lane, firstSeq: 1, payloads: 1 }])
    const [lane] = world.spool.lanes()
    expect(lane).toMatchObject({ appended: 3, settled: 3, open: 0 })
    expect(await store.get(seqKey(table.damaged, batch.lane, 1))).toBeDefined()
    const again = await world.reopen()
    expect(again.spool.lanes()[0]).toMatchObject({ appended: 3, settled: 3, open: 0 })
    expect(await again.spool.check(new AbortController().signal)).toMatchObject({ ok: true })
  })
})
