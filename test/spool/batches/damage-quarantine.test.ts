import { hash } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { laneKey, seqKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { openLevelStore, type OpenStore, type Store } from '../../../src/storage/storage.ts'
import { eventually } from '../../support/eventually.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { compacted } from '../../support/damaged-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import {
  collect,
  ended,
  flipLastByte,
  namesIn,
  openSpoolWorld,
  deliverAll,
  publishAll,
  reopenTampered,
  type SpoolWorld,
} from '../../support/open-spool.ts'

const lane = 1 as LaneId

/** Moves everything into tables and makes 64 bytes in the middle of each of them useless. */
async function damageTables(path: string): Promise<void> {
  await compacted(path)
  const store = join(path, 'store')
  for (const name of await readdir(store)) {
    if (!name.endsWith('.ldb')) continue
    const bytes = await readFile(join(store, name))
    const middle = Math.floor(bytes.length / 2)
    await writeFile(join(store, name), bytes.fill(0xff, middle, middle + 64))
  }
}

/** Gives the chunk with this number another key, as a flipped bit does. */
async function flipKey(store: Store, seq: number, byte: number, bit: number): Promise<void> {
  const key = seqKey(table.chunks, lane, seq)
  const value = await store.get(key)
  const flipped = Buffer.from(key)
  flipped[byte]! ^= bit
  await store.write(
    [
      { type: 'del', key },
      { type: 'put', key: flipped, value: value! },
    ],
    { sync: true },
  )
}

const never = new AbortController().signal
const oneEach = { payloadsMax: 1, bodyBytesMax: 1e9 }

/** A world whose first chunk is damaged on the disk from `damageNow` on. */
async function withLateDamage(openStore: OpenStore) {
  let isBad = false
  const key = seqKey(table.chunks, lane, 0)
  const world = await openSpoolWorld({
    changes: { recentBytesMax: 0 },
    openStore: async (path, options) => {
      const store = await openStore(path, options)
      return {
        ...store,
        async *pages(range, how) {
          for await (const page of store.pages(range, how))
            yield page.map(([at, value]) => [at, isBad && at.equals(key) ? flipLastByte(value) : value])
        },
      }
    },
  })
  return { world, damageNow: () => void (isBad = true) }
}

/** Changes records while nobody has the spool open; null deletes one. */
async function tamper(
  { spool, path }: SpoolWorld,
  keys: readonly Buffer[],
  change: (value: Buffer) => Buffer | null,
): Promise<void> {
  await spool.close()
  const store = await openLevelStore(join(path, 'store'))
  for (const key of keys) {
    const value = change((await store.get(key))!)
    await store.write([value === null ? { type: 'del', key } : { type: 'put', key, value }], { sync: true })
  }
  await store.close()
}

/** As delivery does: a lane without pending payloads is not sealed. */
async function deliverPending(spool: Spool): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const pending = spool.lanes().find((view) => view.pending > 0)
    if (pending !== undefined) await spool.seal(pending.id, { payloadsMax: 1, bodyBytesMax: 1e9 })
    const [batch] = spool.batches()
    if (batch === undefined && pending === undefined) return names
    if (batch === undefined) continue
    const loaded = await spool.load(batch)
    if (loaded.kind !== 'content') continue
    names.push(...(await namesIn(spool, batch)))
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  }
}

/** Nothing is open, and the head of each lane is behind all gaps: else the lane would never be deleted. */
function expectNothing(spool: Spool): void {
  expect(spool.totals()).toMatchObject({ openBytes: 0 })
  for (const view of spool.lanes()) {
    expect(view).toMatchObject({ pending: 0, pendingBytes: 0, sealed: 0, sealedBytes: 0, open: 0 })
    expect([view.sealSeq, view.settled]).toEqual([view.committedSeq, view.appended])
  }
}

describe('a chunk of which a bit flips in the key', () => {
  type Seqs = readonly number[]
  /** `newest`: behind what can be read and is sealed. They get their keys back, where one bit has flipped. */
  type Place = { place: string; seqs: Seqs; newest?: Seqs; sealed?: number; values?: Seqs }
  const places: readonly Place[] = [
    { place: 'the first one', seqs: [0] },
    { place: 'one in the middle', seqs: [2] },
    { place: 'two in the middle, with another between them', seqs: [1, 3] },
    { place: 'the last one', seqs: [5], newest: [5] },
    { place: 'the last two', seqs: [4, 5], newest: [4, 5] },
    { place: 'all', seqs: [0, 1, 2, 3, 4, 5], newest: [0, 1, 2, 3, 4, 5] },
    { place: 'the first one of a sealed batch', seqs: [0], sealed: 2 },
    { place: 'the last one of a sealed batch', seqs: [1], sealed: 2 },
    { place: 'the only one of a sealed batch', seqs: [0], sealed: 1 },
    { place: 'all, of which some are sealed', seqs: [0, 1, 2, 3, 4, 5], newest: [3, 4, 5], sealed: 3 },
    { place: 'the last one, which is sealed as all others', seqs: [5], sealed: 6 },
    {
      place: 'the last of a sealed batch, and all behind it',
      seqs: [2, 3, 4, 5],
      newest: [3, 4, 5],
      sealed: 3,
    },
    { place: 'the last one, behind one with damaged content', seqs: [5], newest: [5], values: [4] },
    { place: 'two in the tail, the others damaged otherwise', seqs: [2, 4], newest: [2, 4], values: [3, 5] },
  ]
  /** To a high number, to a low one of another lane, to one within reach of those that follow; and two bits. */
  const bits: readonly { byte: number; bit: number; hasTotals: boolean }[] = [
    { byte: 9, bit: 0x10, hasTotals: true },
    { byte: 4, bit: 0x40, hasTotals: true },
    { byte: 12, bit: 0x08, hasTotals: true },
    { byte: 9, bit: 0x10, hasTotals: false },
    { byte: 9, bit: 0x30, hasTotals: true },
    { byte: 9, bit: 0x30, hasTotals: false },
  ]
  test.each(places.flatMap((place) => bits.map((row) => ({ ...place, ...row }))))(
    '($place, byte $byte, totals $hasTotals) costs its payloads alone, or nothing: they are counted, and take no bytes',
    async ({ seqs, newest = [], values = [], sealed = 0, byte, bit, hasTotals }) => {
      const changes = { recentBytesMax: 0 }
      const before = await openSpoolWorld({ changes })
      const names = ['a', 'b', 'c', 'd', 'e', 'f']
      // The first settle writes the totals of the lane.
      const first = hasTotals ? 1 : 0
      if (hasTotals) await publishAll(before, '0')
      const batch = await before.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 1e9 })
      await publishAll(before, names)
      if (batch !== null) await before.spool.load(batch)
      if (batch !== null) await before.spool.settle(batch, { payloads: 'all delivered', requestId: null })
      if (sealed > 0) await before.spool.seal(lane, { payloadsMax: sealed, bodyBytesMax: 1e9 })
      await before.spool.close()
      const store = await openLevelStore(join(before.path, 'store'))
      for (const seq of seqs) await flipKey(store, seq + first, byte, bit)
      for (const seq of values) {
        const key = seqKey(table.chunks, lane, seq + first)
        await store.write([{ type: 'put', key, value: flipLastByte((await store.get(key))!) }], {
          sync: true,
        })
      }
      await store.close()
      const isOneBit = (bit & (bit - 1)) === 0
      const lost = [...seqs, ...values].filter((seq) => !isOneBit || !newest.includes(seq))
      const world = await openSpoolWorld({ changes, path: before.path, clock: before.clock })
      expect(await deliverPending(world.spool)).toEqual(names.filter((_, seq) => !lost.includes(seq)))
      expect(world.spool.totals()).toMatchObject({ damaged: lost.length, openBytes: 0 })
      await publishAll(world, 'g')
      expect(await deliverPending(world.spool)).toEqual(['g'])
      expectNothing(world.spool)
      const { spool } = await world.reopen()
      expectNothing(spool)
      await spool.close()
      const rest = await openLevelStore(join(before.path, 'store'))
      expect(await collect(rest.pages(tableRange(table.chunks)))).toEqual([])
      await rest.close()
    },
  )

  test('takes no bytes either where what precedes it is returned to its message source', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'abc')
    await deliverPending(before.spool)
    await publishAll(before, 'de')
    const batch = await before.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 1e9 })
    await before.spool.load(batch!)
    await before.spool.settle(batch!, { payloads: 'all delivered', requestId: null })
    await publishAll(before, 'f')
    await before.spool.close()
    const store = await openLevelStore(join(before.path, 'store'))
    await flipKey(store, 5, 9, 0x30)
    await store.close()
    const { spool } = await openSpoolWorld({ path: before.path, clock: before.clock })
    const run = await spool.readPending(lane, { payloadsMax: 10, bytesMax: 1e9 })
    expect(await spool.returnPending(run!, null)).toBe(true)
    expect(spool.totals()).toMatchObject({ returned: 1, damaged: 1 })
    expectNothing(spool)
  })
})

describe('a flipped bit in the key of a chunk', () => {
  test('beside lost totals: the mark says how many payloads are missing', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'ab')
    await deliverAll(before.spool)
    await publishAll(before, 'cdefg')
    await tamper(before, [laneKey(table.totals, lane)], flipLastByte)
    const store = await openLevelStore(join(before.path, 'store'))
    // Of number 4: it has number 0 then, which was settled.
    await flipKey(store, 4, 12, 0x04)
    await store.close()
    const world = await before.reopen()
    expect(await deliverAll(world.spool)).toEqual(['c', 'd', 'f', 'g'])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, openBytes: 0 })
    expect(world.spool.lanes()).toMatchObject([{ appended: 7, settled: 7, open: 0 }])
  })

  test('that makes it far away moves no number there, also without the mark', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'abc')
    await before.spool.close()
    const store = await openLevelStore(join(before.path, 'store'))
    await flipKey(store, 2, 7, 0x40)
    await store.close()
    await rm(join(before.path, 'mark'))
    const world = await before.reopen()
    expect(world.eventsOf('record_damaged')).toMatchObject([{ table: 'chunks' }])
    expect(await deliverAll(world.spool)).toEqual(['a', 'b', 'c'])
    expect(world.spool.lanes()).toMatchObject([{ appended: 3, settled: 3, open: 0 }])
  })
})

describe('a damaged spool', () => {
  test('of which all that can be read is sealed when the rest is counted is empty when that is settled', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'abc')
    const keys = [1, 2].map((seq) => seqKey(table.chunks, lane, seq))
    await tamper(before, keys, flipLastByte)
    const { spool } = await before.reopen()
    const batch = await spool.seal(lane, oneEach)
    await eventually(() => spool.totals().damaged === 2)
    expect(batch).toMatchObject({ payloads: 1 })
    await spool.load(batch!)
    await spool.settle(batch!, { payloads: 'all delivered', requestId: null })
    expectNothing(spool)
  })

  test('a lane whose only chunk is damaged takes no bytes of the limit afterwards', async () => {
    const before = await openSpoolWorld()
    await before.publish('one')
    const world = await reopenTampered(before, seqKey(table.chunks, lane, 0), flipLastByte)
    expect(await deliverAll(world.spool)).toEqual([])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, payloads: 0, openBytes: 0 })
  })

  test('is reported before the write that counts it, so that no end of the process hides it', async () => {
    const held = createHeldStore()
    const { world, damageNow } = await withLateDamage(held.openStore)
    world.spool.append(payloadNamed('one'))
    expect(await world.publish('two')).toBeNull()
    damageNow()
    held.hold()
    const sealing = world.spool.seal(lane, oneEach)
    await eventually(() => held.waiting() === 1)
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0, payloads: 2 }])
    expect(world.spool.totals().damaged).toBe(0)
    held.release()
    await sealing
    expect(world.spool.totals().damaged).toBe(2)
  })

  test('a chunk that becomes damaged before it is cut is set aside too', async () => {
    const { world, damageNow } = await withLateDamage(openLevelStore)
    world.spool.append(payloadNamed('one'))
    expect(await world.publish('two')).toBeNull()
    expect(await world.publish('three')).toBeNull()
    damageNow()
    const batch = await world.spool.seal(lane, oneEach)
    expect(batch && (await namesIn(world.spool, batch))).toEqual(['three'])
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0, payloads: 2 }])
  })

  test.each(['damaged', 'missing'] as const)(
    'far behind the head is counted after the start, and the lane adds up before it is delivered (%s)',
    async (how) => {
      const before = await openSpoolWorld({ changes: { recentBytesMax: 0 } })
      await publishAll(before, 'abcdefgh')
      const value = (found: Buffer) => (how === 'damaged' ? flipLastByte(found) : null)
      const damaged = [3, 4].map((seq) => seqKey(table.chunks, lane, seq))
      await tamper(before, damaged, value)
      const world = await before.reopen()
      await eventually(() => world.spool.totals().damaged === 2)
      const reports = world.eventsOf('chunk_damaged')
      expect(reports[0]).toMatchObject({ lane, firstSeq: 3 })
      expect(reports.reduce((sum, { payloads }) => sum + payloads, 0)).toBe(2)
      expect(await world.spool.check(never)).toMatchObject({ ok: true })
      // What is counted is not taken for the settled payloads of a batch whose record is lost.
      for (let n = 0; n < 2; n += 1) await world.spool.seal(lane, oneEach)
      await tamper(world, [seqKey(table.batches, lane, 0)], () => null)
      const again = await world.reopen()
      expect(await deliverAll(again.spool)).toEqual(['a', 'b', 'c', 'f', 'g', 'h'])
      expect(again.eventsOf('chunk_damaged')).toMatchObject([{ payloads: 0 }])
      expect(again.spool.lanes()).toMatchObject([{ appended: 8, settled: 8, open: 0 }])
      expect(again.spool.totals().openBytes).toBe(0)
    },
  )

  test('a damaged block of a table costs only its own payloads, and the rest is delivered in order', async () => {
    const changes = { recentBytesMax: 0 }
    const before = await openSpoolWorld({ changes })
    const names = Array.from({ length: 400 }, (_, n) => `${n} ${hash('sha512', `${n}`, 'hex').repeat(3)}`)
    for (const [n, name] of names.entries()) {
      before.spool.append(payloadNamed(name))
      if (n % 10 === 9) await ended(before.spool)
    }
    expect(before.spool.totals().payloads).toBe(names.length)
    await before.spool.close()
    await damageTables(before.path)
    const world = await openSpoolWorld({ changes, path: before.path })
    const found = await deliverAll(world.spool)
    const [first = 0] = names.flatMap((name, n) => (found.includes(name) ? [] : [n]))
    const lost = names.length - found.length
    expect(found).toEqual(names.toSpliced(first, lost))
    // A block has 16 KiB.
    expect(lost).toBeGreaterThan(0)
    expect(lost).toBeLessThan(50)
    expect(world.spool.totals()).toMatchObject({ damaged: lost, delivered: 400 - lost, openBytes: 0 })
  })
})
