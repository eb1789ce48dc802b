import { describe, expect, test } from 'vitest'
import type { Spool } from '../../../src/spool/spool.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import {
  addDeadLetters,
  collect,
  deadLettersIn,
  ended,
  keptIn,
  namesIn,
  openSpoolWorld,
  sealAll,
  statesIn,
} from '../../support/open-spool.ts'
import { exchangeOf, emptyDisk, keptNamed, deadLetterNamed, payloadNamed } from '../../support/spool-world.ts'

const shelf = 'quarantine:default'

async function keepAll(spool: Spool, names: readonly string[]): Promise<string[]> {
  for (const name of names) {
    const { message } = keptNamed(name)
    spool.keepMessage(message)
    spool.endMessage(null)
  }
  await ended(spool)
  return (await collect(spool.keptMessages(shelf, null, { limit: 1000 }))).map(({ id }) => id)
}

async function pendingNames(spool: Spool): Promise<string[]> {
  const names: string[] = []
  for (const batch of await sealAll(spool)) names.push(...(await namesIn(spool, batch)))
  return names
}

describe('an exchange', () => {
  test('replaces kept messages and dead letters by what they became, in one write', async () => {
    const disk = createMemoryDisk()
    const { spool } = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    const ids = await keepAll(spool, ['one', 'two'])
    await addDeadLetters(spool, ['old'])
    const [old] = await deadLettersIn(spool)
    const groups = spool.totals().groups
    disk.hold()
    const exchanged = spool.exchange({
      take: [ids[0]!, old!.id],
      payloads: [payloadNamed('a'), payloadNamed('b')],
      deadLetters: [deadLetterNamed('new').deadLetter],
      stateChanges: [{ key: 'van-1', value: Buffer.from('open') }],
    })
    while (disk.waiting() === 0) await new Promise((resolve) => setImmediate(resolve))
    const waiting = disk.waiting()
    disk.release()
    await exchanged
    expect(waiting).toBe(1)
    expect(spool.totals().groups).toBe(groups + 1)
    expect(await keptIn(spool, shelf)).toEqual(['two'])
    expect((await deadLettersIn(spool)).map(({ deadLetter: letter }) => letter.detail)).toEqual(['new'])
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

  test('is refused as a whole if another call took an entry, and then nothing has changed', async () => {
    const { spool } = await openSpoolWorld()
    const ids = await keepAll(spool, ['one', 'two'])
    const first = spool.exchange(exchangeOf({ take: [ids[0]!] }))
    const second = spool.exchange({
      take: [ids[1]!, ids[0]!],
      payloads: [payloadNamed('a')],
      deadLetters: [deadLetterNamed('l').deadLetter],
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
    expect(await deadLettersIn(spool)).toEqual([])
    expect(await statesIn(spool)).toEqual({})
    expect(spool.lanes()).toEqual([])
    await spool.exchange(exchangeOf({ take: [ids[1]!] }))
  })

  test('keeps the order of the calls among the payloads, also when it must look up entries first', async () => {
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

  test('stays in order with the state that messages put before and after it', async () => {
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
})
