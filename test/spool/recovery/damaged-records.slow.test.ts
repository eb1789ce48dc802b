// Every table of the spool, with a record that is damaged, missing or in a block that cannot be read: the start
// succeeds and reports it, nothing but that record is lost, and the lanes add up.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { State } from '../../../src/domain/condition-state.ts'
import type { ProviderName } from '../../../src/domain/ids.ts'
import type { ShelfName } from '../../../src/domain/kept-store.ts'
import { allKeys, laneOf, table } from '../../../src/spool/chunk-log/key-layout.ts'
import {
  openExistingStore,
  openLevelStore,
  type StoreEntry,
  type StoreOp,
} from '../../../src/storage/storage.ts'
import { withDamagedBlock } from '../../support/memory-store.ts'
import {
  addDeadLetters,
  collect,
  deadLettersIn,
  ended,
  flipLastByte,
  keptIn,
  openSpoolWorld,
  statesIn,
  type SpoolWorld,
  deliverAll,
} from '../../support/open-spool.ts'
import { createRandom } from '../../support/random.ts'
import { keptNamed } from '../../support/spool-world.ts'

const deferred = 'deferred:trucks' as ShelfName
const quarantine = 'quarantine:default' as ShelfName
const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }

/**
 * Lane 1: backfill with a and b sealed and c pending; lane 2: retry with d; lane 3: live with e sealed, f to h
 * pending. Dead letters, state, kept messages, a journal, sessions and a receipt beside them.
 */
async function fullSpool(padding = 0): Promise<SpoolWorld> {
  const world = await openSpoolWorld({ changes: { forgetMs: 1e9, recentBytesMax: 0 } })
  const { spool, publish } = world
  const seal = async (payloadsMax: number, lane: number) => {
    const id = spool.lanes().find((view) => view.id === lane)!.id
    const batch = await spool.seal(id, { payloadsMax, bodyBytesMax: 1e9 })
    await spool.load(batch!)
    return batch!
  }
  for (const name of ['settled', 'd']) expect(await publish(name, { padding })).toBeNull()
  await spool.settle(
    await seal(2, 1),
    {
      payloads: [{ kind: 'delivered' }, { kind: 'retry', schedule: 'Timeout', step: 0, failure }],
      requestId: null,
    },
    Buffer.from('receipt'),
  )
  for (const name of 'abc') expect(await publish(name, { padding })).toBeNull()
  await seal(2, 1)
  await spool.rotate('default' as ProviderName)
  for (const name of 'efgh') expect(await publish(name, { padding })).toBeNull()
  await seal(1, 3)
  await addDeadLetters(spool, ['one', 'two'])
  spool.putState('van-1', Buffer.from('open 1'))
  spool.putState('van-2', Buffer.from('open 2'))
  spool.note(Buffer.from('packet 1'))
  spool.putSession('client-1', Buffer.from('session'))
  spool.keepMessage(keptNamed('kept 1').message)
  spool.keepMessage(keptNamed('kept 2', { device: 'truck-2' }).message)
  spool.keepMessage(keptNamed('later', { shelf: deferred }).message)
  await ended(spool)
  return world
}

async function recordsOf({ path }: SpoolWorld): Promise<StoreEntry[]> {
  const store = await openExistingStore(join(path, 'store'))
  const found: StoreEntry[] = []
  for await (const page of store.pages(allKeys)) found.push(...page)
  await store.close()
  return found
}

const reported = [
  'record_damaged',
  'chunk_damaged',
  'writes_missing',
  'records_unbalanced',
  'conservation_broken',
]

type Loss = { payloads?: readonly string[]; isSilent?: boolean }

/** Opens the spool, and checks that nothing but `loss` is gone. */
async function expectStart(
  before: SpoolWorld,
  { payloads = [], isSilent = false }: Loss,
  keys: Buffer[] = [],
): Promise<SpoolWorld & { statesAtStart: State[] }> {
  const { path, clock } = before
  const openStore = keys.length === 0 ? openLevelStore : withDamagedBlock(openLevelStore, keys)
  const world = await openSpoolWorld({
    path,
    clock,
    openStore,
    changes: { forgetMs: 1e9, recentBytesMax: 0 },
  })
  const { spool, events } = world
  for (let n = 0; n < 20; n += 1) await clock.advance(100)
  const lanes = spool.lanes()
  const statesAtStart = [...spool.states()]
  // Every number is given once: the next payload follows.
  expect(await world.publish('new')).toBeNull()
  const delivered = await deliverAll(world.spool)
  expect(isSilent || events.some(({ kind }) => reported.includes(kind))).toBe(true)
  expect(delivered.toSorted()).toEqual([...names.filter((name) => !payloads.includes(name)), 'new'])
  for (const { id, appended, settled, open, pendingBytes, sealedBytes } of spool.lanes()) {
    expect({ lane: id, open, settled }).toEqual({ lane: id, open: 0, settled: appended })
    expect({ lane: id, pendingBytes, sealedBytes }).toEqual({ lane: id, pendingBytes: 0, sealedBytes: 0 })
    expect(appended).toBeGreaterThanOrEqual(lanes.find((lane) => lane.id === id)?.appended ?? 0)
  }
  expect(spool.totals().openBytes).toBe(0)
  return { ...world, statesAtStart }
}

async function expectBesides(
  { spool }: SpoolWorld,
  { deadLetters = 2, state = 2, kept = 3 }: { deadLetters?: number; state?: number; kept?: number },
): Promise<void> {
  expect(await deadLettersIn(spool)).toHaveLength(deadLetters)
  expect(Object.keys(await statesIn(spool))).toHaveLength(state)
  const found = [...(await keptIn(spool, quarantine)), ...(await keptIn(spool, deferred))]
  expect(found).toHaveLength(kept)
  await collect(spool.keptDevices(quarantine))
  await collect(spool.journal())
  await collect(spool.sessionRecords())
  await spool.receipts({ limit: 100 })
}

type Damage = 'damaged' | 'missing' | 'unreadable'
const damages: readonly Damage[] = ['damaged', 'missing', 'unreadable']

async function damage(world: SpoolWorld, key: Buffer, how: Damage): Promise<Buffer[]> {
  if (how === 'unreadable') return [key]
  const store = await openExistingStore(join(world.path, 'store'))
  const value = await store.get(key)
  if (value === undefined) throw new Error('there is no such record')
  await store.write(
    [how === 'missing' ? { type: 'del', key } : { type: 'put', key, value: flipLastByte(value) }],
    {
      sync: true,
    },
  )
  await store.close()
  return []
}

/** Payloads in the chunks of the world by lane and number. */
const chunkNames: Record<string, string> = {
  '1:2': 'a',
  '1:3': 'b',
  '1:4': 'c',
  '2:0': 'd',
  '3:0': 'e',
  '3:1': 'f',
  '3:2': 'g',
  '3:3': 'h',
}

type Case = { name: string; kind: number; besides?: (how: Damage) => object; silent?: readonly Damage[] }

const cases: readonly Case[] = [
  { name: 'the format', kind: table.format },
  { name: 'the lanes', kind: table.lanes },
  { name: 'the chunks', kind: table.chunks },
  // Without its claim, a batch is pending again; without its totals, a lane of which nothing is settled is whole.
  { name: 'the batches', kind: table.batches, silent: ['missing'] },
  { name: 'the totals', kind: table.totals, silent: ['missing'] },
  { name: 'the dedup window', kind: table.windowKeys, silent: ['missing'] },
  { name: 'the mapping state', kind: table.state, besides: () => ({ state: 1 }) },
  { name: 'the journal', kind: table.journal, silent: ['missing'] },
  // Read when ingest asks for them.
  { name: 'the sessions', kind: table.sessions, silent: damages },
  { name: 'the dead letters', kind: table.deadLetters, besides: () => ({ deadLetters: 1 }), silent: damages },
  { name: 'the kept messages', kind: table.kept, besides: () => ({ kept: 2 }), silent: damages },
  { name: 'the keys by device', kind: table.keptByDevice, silent: damages },
  { name: 'the shelves', kind: table.shelves },
  { name: 'the receipts', kind: table.receipts, silent: damages },
]

describe.each(cases)('a start with a record of $name', ({ kind, besides = () => ({}), silent = [] }) => {
  test.each(damages)(
    'that is %s succeeds, reports it, and loses nothing else',
    async (how) => {
      const probe = await fullSpool()
      await probe.spool.close()
      const keysOf = async (world: SpoolWorld) =>
        (await recordsOf(world)).map(([key]) => key).filter((key) => key[0] === kind)
      const count = (await keysOf(probe)).length
      expect(count).toBeGreaterThan(0)
      for (let index = 0; index < count; index += 1) {
        const before = await fullSpool()
        await before.spool.close()
        const key = (await keysOf(before))[index]!
        const unreadable = await damage(before, key, how)
        const chunk = kind === table.chunks ? [chunkNames[`${laneOf(key)}:${key.readUInt32BE(9)}`] ?? ''] : []
        const loss = { payloads: chunk, isSilent: silent.includes(how) }
        const world = await expectStart(before, loss, unreadable)
        await expectBesides(world, besides(how))
        await world.spool.close()
      }
    },
    60_000,
  )
})

describe('a start without the high-water mark', () => {
  test.each(['damaged', 'missing'] as const)(
    'takes provider and role of a %s record from the totals',
    async (how) => {
      const before = await fullSpool()
      await before.spool.close()
      const records = await recordsOf(before)
      for (const [key] of records) if (key[0] === table.lanes) await damage(before, key, how)
      await rm(join(before.path, 'mark'))
      const world = await expectStart(before, {})
      expect(world.spool.lanes().map(({ id, provider, role }) => [id, provider, role.kind])).toEqual([
        [1, 'default', 'backfill'],
        [2, 'default', 'retry'],
        [3, 'default', 'live'],
      ])
    },
  )

  test('keeps a lane of which record and totals are lost, and gives its number to no other', async () => {
    const before = await fullSpool()
    await before.spool.close()
    for (const [key] of await recordsOf(before))
      if ([table.lanes, table.totals].includes(key[0] as never) && laneOf(key) === 3)
        await damage(before, key, 'missing')
    await rm(join(before.path, 'mark'))
    const world = await expectStart(before, {})
    expect(world.statesAtStart).toMatchObject([{ code: 'LANE_UNKNOWN', lane: 3, payloads: 4 }])
    expect(world.spool.lanes().map(({ id, provider }) => [id, provider])).toEqual([
      [1, 'default'],
      [2, 'default'],
      [3, 'unknown-lane-3'],
      [4, 'default'],
    ])
  })
})

describe('a start with records of any content', () => {
  test.each([1, 2, 3, 4, 5, 6])('succeeds and delivers what is whole (seed %d)', async (seed) => {
    const random = createRandom(seed)
    const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => random.below(256)))
    const before = await fullSpool()
    await before.spool.close()
    const store = await openExistingStore(join(before.path, 'store'))
    const ops: StoreOp[] = []
    for (const kind of Object.values(table)) {
      for (let n = 0; n < 8; n += 1) {
        // Keys of any length, and of the length that those of the table have.
        const length = random.pick([0, 1, 4, 8, 12, 16, 20])
        const key = Buffer.concat([Buffer.from([kind]), bytes(length)])
        ops.push({ type: 'put', key, value: bytes(random.below(60)) })
      }
    }
    await store.write(ops, { sync: true })
    await store.close()
    const { path, clock } = before
    const world = await openSpoolWorld({ path, clock, changes: { forgetMs: 1e9, recentBytesMax: 0 } })
    for (let n = 0; n < 20; n += 1) await clock.advance(100)
    expect(await world.publish('new')).toBeNull()
    const delivered = await deliverAll(world.spool)
    expect(delivered).toEqual(expect.arrayContaining(names))
    await expectBesides(world, {})
    await world.reopen()
  })
})
