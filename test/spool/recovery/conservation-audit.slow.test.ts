import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { keptKey, seqKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore, type Store, type StoreEntry } from '../../../src/storage/storage.ts'
import { addDeadLetters, ended, flipLastByte, openSpoolWorld, deliverAll } from '../../support/open-spool.ts'
import type { SpoolWorld } from '../../support/open-spool.ts'
import { exchangeOf, keptNamed } from '../../support/spool-world.ts'

const lane = 1 as LaneId
const quarantine = 'quarantine:default'
const chunk = (seq: number) => seqKey(table.chunks, lane, seq)

type TableByte = Parameters<typeof tableRange>[0]

/** Changes the store behind the back of the spool, then opens it again. */
async function changed(world: SpoolWorld, change: (store: Store) => Promise<void>): Promise<SpoolWorld> {
  await world.spool.close()
  const store = await openLevelStore(join(world.path, 'store'))
  await change(store)
  await store.close()
  return world.reopen()
}

async function remove(store: Store, keys: readonly Buffer[]): Promise<void> {
  await store.write(
    keys.map((key) => ({ type: 'del', key })),
    { sync: true },
  )
}

async function damage(store: Store, key: Buffer): Promise<void> {
  const value = await store.get(key)
  await store.write([{ type: 'put', key, value: flipLastByte(value ?? Buffer.alloc(1)) }], { sync: true })
}

async function entriesOf(store: Store, first: TableByte): Promise<StoreEntry[]> {
  const entries: StoreEntry[] = []
  for await (const page of store.pages(tableRange(first))) entries.push(...page)
  return entries
}

/** The audit reads the disk and rests between, and reports no end: so the disk gets time, too. */
async function audited({ clock }: SpoolWorld): Promise<void> {
  for (let n = 0; n < 20; n += 1) {
    await clock.advance(100)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Ten payloads in ten chunks; those up to number four are sealed in batches of one. */
async function tenPayloads(): Promise<SpoolWorld> {
  const world = await openSpoolWorld()
  for (let n = 0; n < 10; n += 1) await world.publish(`p${n}`)
  for (let n = 0; n < 5; n += 1)
    await world.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 64 * 1024 ** 2 })
  return world
}

describe('payloads that are lost ahead of delivery are no fault of the counters', () => {
  const cases: [name: string, lost: number, change: (store: Store) => Promise<void>][] = [
    ['the first pending chunk is missing', 1, (store) => remove(store, [chunk(5)])],
    ['pending chunks in the middle are missing', 2, (store) => remove(store, [chunk(6), chunk(7)])],
    ['all pending chunks but the last are missing', 4, (store) => remove(store, [5, 6, 7, 8].map(chunk))],
    ['the last chunks are missing', 2, (store) => remove(store, [chunk(8), chunk(9)])],
    ['sealed chunks are missing', 2, (store) => remove(store, [chunk(0), chunk(3)])],
    ['sealed and pending chunks are missing', 3, (store) => remove(store, [3, 4, 5].map(chunk))],
    ['a sealed chunk is damaged', 1, (store) => damage(store, chunk(2))],
    ['a pending chunk is damaged', 1, (store) => damage(store, chunk(7))],
    [
      'damaged and missing chunks follow each other',
      4,
      async (store) => {
        await damage(store, chunk(3))
        await remove(store, [chunk(4), chunk(5)])
        await damage(store, chunk(6))
      },
    ],
    ['all chunks are missing', 10, (store) => remove(store, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(chunk))],
  ]

  test.each(cases)('%s', async (_name, lost, change) => {
    const world = await changed(await tenPayloads(), change)
    await audited(world)
    expect(world.eventsOf('conservation_broken')).toEqual([])
    await deliverAll(world.spool)
    expect(world.spool.totals()).toMatchObject({ damaged: lost })
    const reports = [...world.eventsOf('chunk_damaged'), ...world.eventsOf('writes_missing')]
    expect(reports.reduce((sum, { payloads }) => sum + payloads, 0)).toBe(lost)
    expect(world.spool.lanes()).toMatchObject([{ appended: 10, settled: 10, open: 0 }])
    const again = await world.reopen()
    await audited(again)
    expect(again.eventsOf('conservation_broken')).toEqual([])
  })

  test('but a payload that is there twice is one', async () => {
    const before = await tenPayloads()
    await before.spool.close()
    const store = await openLevelStore(join(before.path, 'store'))
    const value = (await store.get(chunk(2)))!
    await store.close()
    const open = await before.reopen()
    await open.spool.load(open.spool.batches()[2]!)
    await open.spool.settle(open.spool.batches()[2]!, { payloads: 'all delivered', requestId: null })
    const world = await changed(open, (store) =>
      store.write([{ type: 'put', key: chunk(2), value }], { sync: true }),
    )
    await audited(world)
    expect(world.eventsOf('conservation_broken')).toMatchObject([{ appended: 10, settled: 1, open: 10 }])
  })
})

describe('counters of records that are wrong are corrected at the start that finds them', () => {
  async function fiveOfEach(): Promise<SpoolWorld> {
    const world = await openSpoolWorld()
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      world.spool.keepMessage(keptNamed(name, { device: null }).message)
      await ended(world.spool)
    }
    await addDeadLetters(world.spool, ['v', 'w', 'x', 'y', 'z'])
    return world
  }

  const lettersOf = async (store: Store) => (await entriesOf(store, table.deadLetters)).map(([key]) => key)

  const cases: {
    name: string
    table: string
    found: number
    change: (store: Store) => Promise<void>
    totals: object
  }[] = [
    {
      name: 'two kept messages are missing',
      table: 'kept',
      found: 3,
      change: (store) => remove(store, [keptKey(quarantine, 0), keptKey(quarantine, 3)]),
      totals: { quarantined: 3, deadLetters: 5, recordsMissing: 2 },
    },
    {
      name: 'all kept messages are missing',
      table: 'kept',
      found: 0,
      change: (store) =>
        remove(
          store,
          [0, 1, 2, 3, 4].map((seq) => keptKey(quarantine, seq)),
        ),
      totals: { quarantined: 0, quarantineBytes: 0, deadLetters: 5, recordsMissing: 5 },
    },
    {
      name: 'two dead letters are missing',
      table: 'dead letters',
      found: 3,
      change: async (store) => remove(store, (await lettersOf(store)).slice(1, 3)),
      totals: { quarantined: 5, deadLetters: 3, recordsMissing: 2 },
    },
    {
      name: 'all dead letters are missing',
      table: 'dead letters',
      found: 0,
      change: async (store) => remove(store, await lettersOf(store)),
      totals: { quarantined: 5, deadLetters: 0, deadLetterBytes: 0, recordsMissing: 5 },
    },
  ]

  test.each(cases)('$name', async ({ table, found, change, totals }) => {
    const world = await changed(await fiveOfEach(), change)
    await audited(world)
    expect(world.eventsOf('records_unbalanced')).toMatchObject([{ table, known: 5, found }])
    expect(world.spool.totals()).toMatchObject(totals)
    const again = await world.reopen()
    await audited(again)
    expect(again.eventsOf('records_unbalanced')).toEqual([])
    expect(again.spool.totals()).toMatchObject({ ...totals, recordsMissing: 0 })
    expect(again.spool.shelves()[0]).toMatchObject({ kept: 5, taken: 0 })
  })

  test('a kept message that is back after its deletion was lost', async () => {
    const before = await fiveOfEach()
    await before.spool.close()
    const store = await openLevelStore(join(before.path, 'store'))
    const value = (await store.get(keptKey(quarantine, 1)))!
    await store.close()
    const open = await before.reopen()
    await open.spool.exchange(exchangeOf({ take: [`${quarantine}#1`] }))
    const world = await changed(open, (store) =>
      store.write([{ type: 'put', key: keptKey(quarantine, 1), value }], { sync: true }),
    )
    await audited(world)
    expect(world.eventsOf('records_unbalanced')).toMatchObject([{ known: 4, found: 5 }])
    expect(world.spool.totals()).toMatchObject({ quarantined: 5, recordsMissing: 0 })
    const again = await world.reopen()
    await audited(again)
    expect(again.eventsOf('records_unbalanced')).toEqual([])
    expect(again.spool.shelves()[0]).toMatchObject({ kept: 5, taken: 0, messages: 5 })
  })

  test('of messages that come and go during the count', async () => {
    const world = await changed(await fiveOfEach(), (store) => remove(store, [keptKey(quarantine, 2)]))
    const auditing = audited(world)
    world.spool.keepMessage(keptNamed('f', { device: null }).message)
    await world.spool.exchange(exchangeOf({ take: [`${quarantine}#0`] }))
    await auditing
    await audited(world)
    const { quarantineBytes } = world.spool.totals()
    const again = await world.reopen()
    await audited(again)
    expect(again.eventsOf('records_unbalanced')).toEqual([])
    expect(again.spool.totals()).toMatchObject({ quarantined: 4, quarantineBytes })
  })
})
