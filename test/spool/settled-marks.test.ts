// What a reader of the spool sees of the progress of its lanes, shelves and dead letters: numbers below which everything
// is settled, taken or known.

import { describe, expect, test } from 'vitest'
import { openSpoolWorld } from '../support/open-spool.ts'
import { deadLetterNamed, keptNamed } from '../support/spool-world.ts'

const payloadsMax = { payloadsMax: 2, bodyBytesMax: 1e6 }
const delivered = { payloads: 'all delivered' as const, requestId: null }

describe('the first number that is not settled', () => {
  test('stays at the oldest sealed batch, also where a later one settles first', async () => {
    const { spool, publish } = await openSpoolWorld()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await publish(name)
    const { id } = spool.lanes()[0]!
    const [first, second] = [await spool.seal(id, payloadsMax), await spool.seal(id, payloadsMax)]
    const marks = () => {
      const { lowSeq, sealSeq, committedSeq, appended } = spool.lanes()[0]!
      return { lowSeq, sealSeq, committedSeq, appended }
    }
    await spool.load(second!)
    await spool.settle(second!, delivered)
    expect(marks()).toEqual({ lowSeq: 0, sealSeq: 4, committedSeq: 5, appended: 5 })
    await spool.load(first!)
    await spool.settle(first!, delivered)
    expect(marks()).toEqual({ lowSeq: 4, sealSeq: 4, committedSeq: 5, appended: 5 })
  })
})

describe('the head of a shelf', () => {
  test('passes what was taken, at the latest with the next read', async () => {
    const { spool } = await openSpoolWorld()
    for (const name of ['a', 'b', 'c']) spool.keepMessage(keptNamed(name).message)
    await new Promise((resolve) => spool.endMessage(resolve))
    const shelf = 'quarantine:default'
    const ids: string[] = []
    for await (const { id } of spool.keptMessages(shelf, null, { limit: 3 })) ids.push(id)
    expect(spool.shelves()).toMatchObject([{ headSeq: 0, nextSeq: 3 }])
    await spool.exchange({ take: [ids[1]!], payloads: [], deadLetters: [], stateChanges: [] })
    expect(spool.shelves()).toMatchObject([{ headSeq: 0, nextSeq: 3 }])
    await spool.exchange({ take: [ids[0]!], payloads: [], deadLetters: [], stateChanges: [] })
    for await (const _ of spool.keptMessages(shelf, null, { limit: 1 })) break
    expect(spool.shelves()).toMatchObject([{ headSeq: 2, nextSeq: 3, messages: 1 }])
  })
})

describe('dead letters', () => {
  test('are counted by their number, and those after an id are read alone', async () => {
    const { spool } = await openSpoolWorld()
    const before = spool.nextDeadLetter()!
    for (const name of ['a', 'b', 'c']) spool.addDeadLetter(deadLetterNamed(name).deadLetter)
    await new Promise((resolve) => spool.endMessage(resolve))
    expect(spool.nextDeadLetter()).toBe(before + 3)
    const all: string[] = []
    for await (const { id } of spool.deadLetters({ limit: 10 })) all.push(id)
    const rest: string[] = []
    for await (const { deadLetter } of spool.deadLetters({ limit: 10, after: all[0]! }))
      rest.push(deadLetter.detail)
    expect(rest).toEqual(['b', 'c'])
  })
})
