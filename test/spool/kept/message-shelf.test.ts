import { describe, expect, test } from 'vitest'
import { keptKey, shelfKey } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import {
  collect,
  ended,
  flipLastByte,
  keptIn,
  openSpoolWorld,
  reopenTampered,
} from '../../support/open-spool.ts'
import { createMemoryDisk, withDamagedBlock } from '../../support/memory-store.ts'
import { emptyDisk, exchangeOf, keptNamed } from '../../support/spool-world.ts'

const quarantine = 'quarantine:default'

async function keep(spool: Spool, name: string, options: Parameters<typeof keptNamed>[1] = {}) {
  const { message } = keptNamed(name, options)
  spool.keepMessage(message)
  expect(await ended(spool)).toBeNull()
}

async function idsIn(spool: Spool): Promise<string[]> {
  return (await collect(spool.keptMessages(quarantine, null, { limit: 100 }))).map(({ id }) => id)
}

describe('messages that are kept', () => {
  test('are read whole in order of arrival, of one device or of all, also after a restart', async () => {
    const before = await openSpoolWorld()
    await keep(before.spool, 'one', { device: 'b' })
    await keep(before.spool, 'two', { device: 'a' })
    await keep(before.spool, 'three', { device: 'b' })
    await keep(before.spool, 'elsewhere', { shelf: 'deferred:phones', device: null })
    const { spool } = await before.reopen()
    expect(await keptIn(spool, quarantine)).toEqual(['one', 'two', 'three'])
    expect(await keptIn(spool, quarantine, 'b')).toEqual(['one', 'three'])
    expect(await keptIn(spool, 'deferred:phones')).toEqual(['elsewhere'])
    expect(await keptIn(spool, 'quarantine:nobody')).toEqual([])
    const [first] = await collect(spool.keptMessages(quarantine, null, { limit: 1 }))
    expect(first).toEqual({
      id: 'quarantine:default#0',
      keptAt: before.clock.now(),
      message: keptNamed('one', { device: 'b' }).message,
    })
  })

  test('are counted by device with the time of the oldest, for any device name', async () => {
    const before = await openSpoolWorld()
    const { clock } = before
    const startMs = clock.now()
    for (const [index, device] of ['a', 'b"', 'a', 'a\u0000', '\ud800', 'a'].entries()) {
      await keep(before.spool, `m${index}`, { device })
      await clock.advance(1000)
    }
    await keep(before.spool, 'nobody', { device: null })
    const { spool } = await before.reopen()
    const devices = await collect(spool.keptDevices(quarantine))
    expect(devices.sort((a, b) => a.oldestAt - b.oldestAt)).toEqual([
      { device: 'a', messages: 3, oldestAt: startMs },
      { device: 'b"', messages: 1, oldestAt: startMs + 1000 },
      { device: 'a\u0000', messages: 1, oldestAt: startMs + 3000 },
      { device: '\ud800', messages: 1, oldestAt: startMs + 4000 },
    ])
  })

  test('are announced to listeners once they are durable', async () => {
    const { spool } = await openSpoolWorld()
    let calls = 0
    spool.listen({ messagesKept: () => void (calls += 1) })
    await keep(spool, 'one')
    expect(calls).toBe(1)
  })

  test('are counted at a start without being read', async () => {
    const before = await openSpoolWorld()
    for (let n = 0; n < 5; n += 1) await keep(before.spool, `m${n}`)
    const [first] = await idsIn(before.spool)
    await before.spool.exchange(exchangeOf({ take: [first!] }))
    const [shelf] = before.spool.shelves()
    const { spool } = await before.reopen()
    expect(shelf).toMatchObject({ shelf: quarantine, kept: 5, taken: 1, messages: 4, damaged: 0 })
    expect(spool.shelves()).toEqual([shelf])
    expect(spool.totals()).toMatchObject({ quarantined: 4, quarantineBytes: shelf!.bytes, deferred: 0 })
  })

  test('never get a number twice, so that an id always names the same message', async () => {
    const before = await openSpoolWorld()
    await keep(before.spool, 'one')
    await before.spool.exchange(exchangeOf({ take: await idsIn(before.spool) }))
    const { spool } = await before.reopen()
    await keep(spool, 'two')
    expect(await idsIn(spool)).toEqual(['quarantine:default#1'])
  })

  test('count towards the limit of the spool', async () => {
    const { spool } = await openSpoolWorld({ changes: { bytesMax: 4000 } })
    for (let n = 0; spool.holdReason() === null; n += 1) await keep(spool, `m${n}`, { padding: 500 })
    expect(spool.holdReason()).toBe('spool_full')
  })
})

describe('a damaged shelf', () => {
  test('sets a damaged message aside, counts it, and returns the others', async () => {
    const before = await openSpoolWorld()
    for (const name of ['one', 'two', 'three']) await keep(before.spool, name)
    const world = await reopenTampered(before, keptKey(quarantine, 1), flipLastByte)
    const { spool, eventsOf } = world
    await expect(spool.exchange(exchangeOf({ take: [`${quarantine}#1`] }))).rejects.toMatchObject({
      code: 'SPOOL_ENTRY_GONE',
    })
    expect(await keptIn(spool, quarantine, 'truck-1')).toEqual(['one', 'three'])
    expect(await keptIn(spool, quarantine)).toEqual(['one', 'three'])
    expect(eventsOf('record_damaged')).toHaveLength(1)
    expect(spool.shelves()).toMatchObject([{ kept: 3, taken: 0, damaged: 1, messages: 2 }])
    expect(await collect(spool.keptDevices(quarantine))).toMatchObject([{ device: 'truck-1', messages: 2 }])
  })

  test('is recounted if its totals are damaged, and assigns no number twice', async () => {
    const before = await openSpoolWorld()
    for (const name of ['one', 'two']) await keep(before.spool, name)
    await before.spool.exchange(exchangeOf({ take: [(await idsIn(before.spool))[1]!] }))
    const { spool, eventsOf, clock } = await reopenTampered(before, shelfKey(quarantine), flipLastByte)
    expect(eventsOf('record_damaged')).toMatchObject([{ table: 'kept', name: quarantine }])
    expect(spool.shelves()).toMatchObject([{ messages: 1 }])
    await keep(spool, 'three')
    expect(await keptIn(spool, quarantine)).toEqual(['one', 'three'])
    expect((await idsIn(spool))[1]).not.toBe('quarantine:default#1')
    await clock.advance(1000)
    expect(eventsOf('records_unbalanced')).toEqual([])
  })

  test('with a missing message is reported by the audit in the background', async () => {
    const before = await openSpoolWorld()
    for (const name of ['one', 'two']) await keep(before.spool, name)
    const { clock, eventsOf } = await reopenTampered(before, keptKey(quarantine, 0), () => null)
    while (eventsOf('records_unbalanced').length === 0) await clock.advance(1000)
    expect(eventsOf('records_unbalanced')).toEqual([
      { kind: 'records_unbalanced', table: 'kept', name: quarantine, known: 2, found: 1 },
    ])
  })

  test('skips a block that cannot be read, reports it, and loses nothing else', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    for (let n = 0; n < 12; n += 1) await keep(before.spool, `m${n}`)
    await before.spool.close()
    const damaged = [4, 5, 6].map((seq) => keptKey(quarantine, seq))
    const openStore = withDamagedBlock(disk.boot(), damaged)
    const { spool, eventsOf, clock } = await openSpoolWorld({ openStore, disk: emptyDisk })
    const readable = ['m0', 'm1', 'm2', 'm3', 'm7', 'm8', 'm9', 'm10', 'm11']
    expect(await keptIn(spool, quarantine)).toEqual(readable)
    expect(await keptIn(spool, quarantine)).toEqual(readable)
    expect(eventsOf('record_damaged')[0]).toMatchObject({ what: expect.stringContaining('from number 4') })
    await clock.advance(1000)
    expect(spool.holdReason()).toBeNull()
    expect(spool.shelves()).toMatchObject([{ messages: 12, damaged: 0 }])
    await expect(spool.exchange(exchangeOf({ take: [`${quarantine}#5`] }))).rejects.toMatchObject({
      code: 'SPOOL_DAMAGED',
    })
    const ids = await idsIn(spool)
    await spool.exchange(exchangeOf({ take: ids }))
    expect(await keptIn(spool, quarantine)).toEqual([])
    expect(spool.shelves()).toMatchObject([{ messages: 3 }])
  })
})
