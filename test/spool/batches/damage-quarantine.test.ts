import { hash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { seqKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { openLevelStore, type Store } from '../../../src/storage/storage.ts'
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
  type Place = { place: string; seqs: readonly number[]; sealed?: number; values?: readonly number[] }
  const places: readonly Place[] = [
    { place: 'the first one', seqs: [0] },
    { place: 'one in the middle', seqs: [2] },
    { place: 'two in the middle, with another between them', seqs: [1, 3] },
    { place: 'the last one', seqs: [5] },
    { place: 'the last two', seqs: [4, 5] },
    { place: 'all', seqs: [0, 1, 2, 3, 4, 5] },
    { place: 'the first one of a sealed batch', seqs: [0], sealed: 2 },
    { place: 'the last one of a sealed batch', seqs: [1], sealed: 2 },
    { place: 'the only one of a sealed batch', seqs: [0], sealed: 1 },
    { place: 'all, of which some are sealed', seqs: [0, 1, 2, 3, 4, 5], sealed: 3 },
    { place: 'the last one, which is sealed as all others', seqs: [5], sealed: 6 },
    { place: 'the last one of a sealed batch, and all behind it', seqs: [2, 3, 4, 5], sealed: 3 },
    { place: 'the last one, behind one with damaged content', seqs: [5], values: [4] },
    { place: 'two in the tail, all others of which have damaged content', seqs: [2, 4], values: [3, 5] },
  ]
  /** To a high number, to a low one of another lane, and to one within reach of the numbers that follow. */
  const bits: readonly { byte: number; bit: number; hasTotals: boolean }[] = [
    { byte: 9, bit: 0x10, hasTotals: true },
    { byte: 4, bit: 0x40, hasTotals: true },
    { byte: 12, bit: 0x08, hasTotals: true },
    { byte: 9, bit: 0x10, hasTotals: false },
  ]
  test.each(places.flatMap((place) => bits.map((row) => ({ ...place, ...row }))))(
    '($place, byte $byte, totals $hasTotals) costs its payloads alone: they are counted, and take no bytes',
    async ({ seqs, values = [], sealed = 0, byte, bit, hasTotals }) => {
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
      const lost = [...seqs, ...values]
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
    await flipKey(store, 5, 9, 0x10)
    await store.close()
    const { spool } = await openSpoolWorld({ path: before.path, clock: before.clock })
    const run = await spool.readPending(lane, { payloadsMax: 10, bytesMax: 1e9 })
    expect(await spool.returnPending(run!, null)).toBe(true)
    expect(spool.totals()).toMatchObject({ returned: 1, damaged: 1 })
    expectNothing(spool)
  })
})

describe('a damaged spool', () => {
  test('a lane whose only chunk is damaged takes no bytes of the limit afterwards', async () => {
    const before = await openSpoolWorld()
    await before.publish('one')
    const world = await reopenTampered(before, seqKey(table.chunks, lane, 0), flipLastByte)
    expect(await deliverAll(world.spool)).toEqual([])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, payloads: 0, openBytes: 0 })
  })

  test('is reported before the write that counts it, so that no end of the process hides it', async () => {
    const held = createHeldStore()
    const options = { changes: { recentBytesMax: 0 }, openStore: held.openStore }
    const before = await openSpoolWorld(options)
    await publishAll(before, 'abc')
    const world = await reopenTampered(before, seqKey(table.chunks, lane, 1), flipLastByte)
    const limits = { payloadsMax: 1, bodyBytesMax: 1e9 }
    await world.spool.seal(lane, limits)
    held.hold()
    const sealing = world.spool.seal(lane, limits)
    await eventually(() => held.waiting() === 1)
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 1, payloads: 1 }])
    expect(world.spool.totals().damaged).toBe(0)
    held.release()
    await sealing
    expect(world.spool.totals().damaged).toBe(1)
  })

  test('a chunk that becomes damaged before it is cut is set aside too', async () => {
    let bad = false
    const key = seqKey(table.chunks, lane, 0)
    const world = await openSpoolWorld({
      changes: { recentBytesMax: 0 },
      openStore: async (path) => {
        const store = await openLevelStore(path)
        return {
          ...store,
          async *pages(range, options) {
            for await (const page of store.pages(range, options))
              yield page.map(([at, value]) => [at, bad && at.equals(key) ? flipLastByte(value) : value])
          },
        }
      },
    })
    world.spool.append(payloadNamed('one'))
    expect(await world.publish('two')).toBeNull()
    expect(await world.publish('three')).toBeNull()
    bad = true
    const batch = await world.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 64 * 1024 ** 2 })
    expect(batch && (await namesIn(world.spool, batch))).toEqual(['three'])
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0, payloads: 2 }])
  })

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
