import { describe, expect, test } from 'vitest'
import { shelfKey } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import {
  collect,
  ended,
  flipLastByte,
  keptIn,
  openSpoolWorld,
  reopenTampered,
} from '../../support/open-spool.ts'
import { exchangeOf, keptNamed } from '../../support/spool-world.ts'

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

  test('never get a number twice, so that an id always names the same message', async () => {
    const before = await openSpoolWorld()
    await keep(before.spool, 'one')
    await before.spool.exchange(exchangeOf({ take: await idsIn(before.spool) }))
    const { spool } = await before.reopen()
    await keep(spool, 'two')
    expect(await idsIn(spool)).toEqual(['quarantine:default#1'])
  })
})

describe('a damaged shelf', () => {
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
})
