import { describe, expect, test } from 'vitest'
import type { Spool } from '../../../src/spool/spool.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import {
  collect,
  ended,
  keptIn,
  namesIn,
  openSpoolWorld,
  passTimeUntil,
  sealAll,
  statesIn,
} from '../../support/open-spool.ts'
import { exchangeOf, emptyDisk, keptNamed, letterNamed, payloadNamed } from '../../support/spool-world.ts'

const shelf = 'quarantine:default'

async function keepAll(spool: Spool, names: readonly string[]): Promise<string[]> {
  for (const name of names) {
    const { message, windowKey } = keptNamed(name)
    spool.keepMessage(message, windowKey, false)
    spool.endMessage(null)
  }
  await ended(spool)
  return (await collect(spool.keptMessages(shelf, null, { limit: 1000 }))).map(({ id }) => id)
}

async function buryAll(spool: Spool, names: readonly string[], reason = 'NOT_JSON'): Promise<void> {
  for (const name of names) {
    const { letter, windowKey } = letterNamed(name)
    spool.addDeadLetter({ ...letter, reason }, windowKey, false)
    spool.endMessage(null)
  }
  await ended(spool)
}

async function pendingNames(spool: Spool): Promise<string[]> {
  const names: string[] = []
  for (const batch of await sealAll(spool)) names.push(...(await namesIn(spool, batch)))
  return names
}

async function lettersIn(spool: Spool, filter: { stage?: 'mapping' | 'delivery'; reason?: string } = {}) {
  return collect(spool.deadLetters({ limit: 100, ...filter }))
}

describe('an exchange', () => {
  test('replaces kept messages and dead letters by what they became, in one write', async () => {
    const disk = createMemoryDisk()
    const { spool } = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    const ids = await keepAll(spool, ['one', 'two'])
    await buryAll(spool, ['old'])
    const [old] = await lettersIn(spool)
    const groups = spool.totals().groups
    disk.hold()
    const exchanged = spool.exchange({
      take: [ids[0]!, old!.id],
      payloads: [payloadNamed('a'), payloadNamed('b')],
      deadLetters: [letterNamed('new').letter],
      stateChanges: [{ key: 'van-1', value: Buffer.from('open') }],
    })
    while (disk.waiting() === 0) await new Promise((resolve) => setImmediate(resolve))
    const waiting = disk.waiting()
    disk.release()
    await exchanged
    expect(waiting).toBe(1)
    expect(spool.totals().groups).toBe(groups + 1)
    expect(await keptIn(spool, shelf)).toEqual(['two'])
    expect((await lettersIn(spool)).map(({ deadLetter: letter }) => letter.detail)).toEqual(['new'])
    expect(await pendingNames(spool)).toEqual(['a', 'b'])
    expect(await statesIn(spool)).toEqual({ 'van-1': 'open' })
    expect(spool.totals()).toMatchObject({
      payloads: 2,
      exchanged: 2,
      taken: 2,
      deadLetters: 1,
      quarantined: 1,
    })
    expect(spool.lanes()).toMatchObject([{ appended: 2, settled: 0, open: 2 }])
  })

  test('puts a message from one shelf on another, whatever the dedup window knows', async () => {
    const before = await openSpoolWorld()
    const { spool } = before
    const { message, windowKey } = keptNamed('one', { shelf: 'deferred:phones', device: null })
    spool.keepMessage(message, windowKey, false)
    await ended(spool)
    const [entry] = await collect(spool.keptMessages('deferred:phones', null, { limit: 1 }))
    await spool.exchange(exchangeOf({ take: [entry!.id], keptMessages: [keptNamed('one').message] }))
    const again = (await before.reopen()).spool
    expect(await keptIn(again, 'deferred:phones')).toEqual([])
    expect(await keptIn(again, shelf, 'truck-1')).toEqual(['one'])
    expect(again.totals()).toMatchObject({ deferred: 0, deferredBytes: 0, quarantined: 1 })
  })

  test('leaves everything as it was when the power goes before its write', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk, crashes: true })
    const ids = await keepAll(before.spool, ['one'])
    disk.hold()
    void before.spool.exchange(exchangeOf({ take: ids, payloads: [payloadNamed('a')] }))
    while (disk.waiting() === 0) await before.clock.advance(0)
    disk.crash({ keepRunning: false })
    const { spool } = await openSpoolWorld({
      openStore: disk.boot(),
      disk: emptyDisk,
      clock: createFakeClock(),
    })
    expect(await keptIn(spool, shelf)).toEqual(['one'])
    expect(spool.lanes()).toEqual([])
  })

  test('does not ask the dedup window, and does not fill it either', async () => {
    const { spool, publish } = await openSpoolWorld()
    const ids = await keepAll(spool, ['one'])
    const { windowIds } = spool.totals()
    await publish('a')
    await spool.exchange(exchangeOf({ take: ids, payloads: [payloadNamed('a'), payloadNamed('b')] }))
    expect(await pendingNames(spool)).toEqual(['a', 'a', 'b'])
    expect(spool.totals().windowIds).toBe(windowIds + 1)
  })

  test('is refused whole where somebody else took an entry, and then nothing has happened', async () => {
    const { spool } = await openSpoolWorld()
    const ids = await keepAll(spool, ['one', 'two'])
    const first = spool.exchange(exchangeOf({ take: [ids[0]!] }))
    const second = spool.exchange({
      take: [ids[1]!, ids[0]!],
      payloads: [payloadNamed('a')],
      deadLetters: [letterNamed('l').letter],
      stateChanges: [{ key: 'k', value: Buffer.from('v') }],
    })
    await expect(second).rejects.toMatchObject({
      code: 'SPOOL_ENTRY_GONE',
      what: expect.stringContaining(ids[0]!),
    })
    await first
    await expect(spool.exchange(exchangeOf({ take: [ids[0]!] }))).rejects.toMatchObject({
      code: 'SPOOL_ENTRY_GONE',
    })
    expect(await keptIn(spool, shelf)).toEqual(['two'])
    expect(await lettersIn(spool)).toEqual([])
    expect(await statesIn(spool)).toEqual({})
    expect(spool.lanes()).toEqual([])
    await spool.exchange(exchangeOf({ take: [ids[1]!] }))
  })

  test.each([
    '',
    'quarantine:default#',
    'quarantine:default#00',
    'quarantine:default#1e0',
    'quarantine:x#0',
    'ab',
  ])('knows no entry by the id "%s"', async (id) => {
    const { spool } = await openSpoolWorld()
    await keepAll(spool, ['one', 'two'])
    await expect(spool.exchange(exchangeOf({ take: [id] }))).rejects.toMatchObject({
      code: 'SPOOL_ENTRY_GONE',
    })
  })

  test('finds entries by ids that were written down before a restart, and takes each of them once', async () => {
    const before = await openSpoolWorld()
    const ids = await keepAll(before.spool, ['one'])
    await buryAll(before.spool, ['old'])
    const [old] = await lettersIn(before.spool)
    const { spool } = await before.reopen()
    const outcomes = await Promise.allSettled(
      [1, 2, 3].map(() =>
        spool.exchange(exchangeOf({ take: [...ids, old!.id], payloads: [payloadNamed('a')] })),
      ),
    )
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(await pendingNames(spool)).toEqual(['a'])
    expect(await spool.deadLetter(old!.id)).toBeNull()
  })

  test('keeps the order of the calls among the payloads, also where it must look for entries first', async () => {
    const before = await openSpoolWorld()
    const ids = await keepAll(before.spool, ['m0', 'm1', 'm2', 'm3', 'm4', 'm5'])
    const { spool } = await before.reopen()
    await spool.keptMessages(shelf, null, { limit: 1 })[Symbol.asyncIterator]().next()
    // The first is known already, the second and third are not, the last takes nothing.
    await Promise.all([
      spool.exchange(exchangeOf({ take: [ids[0]!], payloads: [payloadNamed('a')] })),
      spool.exchange(exchangeOf({ take: ids.slice(1, 5), payloads: [payloadNamed('b')] })),
      spool.exchange(exchangeOf({ take: [ids[5]!], payloads: [payloadNamed('c')] })),
      spool.exchange(exchangeOf({ payloads: [payloadNamed('d')] })),
    ])
    expect(await pendingNames(spool)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('stands in order with what messages remember before and after it', async () => {
    const before = await openSpoolWorld()
    const { spool } = before
    spool.putState('van-1', Buffer.from('first'))
    spool.endMessage(null)
    const closed = spool.exchange(
      exchangeOf({ payloads: [payloadNamed('a')], stateChanges: [{ key: 'van-1', value: null }] }),
    )
    spool.putState('van-1', Buffer.from('second'))
    await Promise.all([closed, ended(spool)])
    expect(await statesIn((await before.reopen()).spool)).toEqual({ 'van-1': 'second' })
  })

  test('is rejected by a write that fails, and the same one can be made again afterwards', async () => {
    const disk = createMemoryDisk()
    const { spool, clock } = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    const ids = await keepAll(spool, ['one'])
    disk.failNextWrite({ reachesDisk: false })
    const exchange = exchangeOf({ take: ids, payloads: [payloadNamed('a')] })
    await expect(spool.exchange(exchange)).rejects.toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    await expect(spool.exchange(exchange)).rejects.toMatchObject({ code: 'SPOOL_CLOSED' })
    await passTimeUntil(clock, () => spool.holdReason === null)
    await spool.exchange(exchange)
    expect(await keptIn(spool, shelf)).toEqual([])
    expect(await pendingNames(spool)).toEqual(['a'])
  })

  test('goes on while intake is held', async () => {
    const { spool } = await openSpoolWorld({ changes: { quarantineBytesMax: 500 } })
    const ids = await keepAll(spool, ['one', 'two'])
    expect(spool.holdReason).toBe('quarantine_full')
    await spool.exchange(exchangeOf({ take: ids, payloads: [payloadNamed('a')] }))
    expect(spool.holdReason).toBeNull()
  })

  test('that drains a shelf from its head leaves a reader with the next message at once', async () => {
    const before = await openSpoolWorld()
    await keepAll(
      before.spool,
      Array.from({ length: 60 }, (_, index) => `m${index}`),
    )
    const { spool } = await before.reopen()
    const seen: string[] = []
    for (;;) {
      const entries = await collect(spool.keptMessages(shelf, null, { limit: 7 }))
      if (entries.length === 0) break
      seen.push(...entries.map(({ message }) => message.envelope.topic))
      // Not in the order in which they stand: what is behind must not be forgotten for it.
      for (const { id } of entries.reverse()) await spool.exchange(exchangeOf({ take: [id] }))
    }
    expect(seen).toEqual(Array.from({ length: 60 }, (_, index) => `m${index}`))
    expect(spool.totals()).toMatchObject({ quarantined: 0, quarantineBytes: 0 })
  })
})

describe('dead letters', () => {
  test('are found by id, and listed by stage and reason', async () => {
    const before = await openSpoolWorld()
    await buryAll(before.spool, ['a', 'b'])
    await buryAll(before.spool, ['c'], 'NO_SOURCE')
    const [a] = await lettersIn(before.spool)
    const { spool } = await before.reopen()
    expect(await spool.deadLetter(a!.id)).toEqual(a)
    expect(await spool.deadLetter('nothing')).toBeNull()
    expect(await spool.deadLetter('0'.repeat(32))).toBeNull()
    const details = async (filter: Parameters<typeof lettersIn>[1]) =>
      (await lettersIn(spool, filter)).map(({ deadLetter: letter }) => letter.detail)
    expect(await details({ reason: 'NO_SOURCE' })).toEqual(['c'])
    expect(await details({ stage: 'mapping' })).toEqual(['a', 'b', 'c'])
    expect(await details({ stage: 'delivery' })).toEqual([])
    expect(await collect(spool.deadLetters({ limit: 2 }))).toHaveLength(2)
  })

  test('that were taken leave the totals, also after a restart', async () => {
    const before = await openSpoolWorld()
    await buryAll(before.spool, ['a', 'b'])
    const letters = await lettersIn(before.spool)
    await before.spool.exchange(exchangeOf({ take: letters.map(({ id }) => id) }))
    expect(before.spool.totals()).toMatchObject({ deadLetters: 0, deadLetterBytes: 0 })
    const { spool } = await before.reopen()
    expect(spool.totals()).toMatchObject({ deadLetters: 0, deadLetterBytes: 0 })
  })
})
