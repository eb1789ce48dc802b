import { describe, expect, test } from 'vitest'
import { addDeadLetters, collect, deadLettersIn, openSpoolWorld } from '../../support/open-spool.ts'
import { exchangeOf } from '../../support/spool-world.ts'

describe('dead letters', () => {
  test('are found by id, and listed by stage and reason', async () => {
    const before = await openSpoolWorld()
    await addDeadLetters(before.spool, ['a', 'b'])
    await addDeadLetters(before.spool, ['c'], 'NO_SOURCE')
    const [a] = await deadLettersIn(before.spool)
    const { spool } = await before.reopen()
    expect(await spool.deadLetter(a!.id)).toEqual(a)
    expect(await spool.deadLetter('nothing')).toBeNull()
    expect(await spool.deadLetter('0'.repeat(32))).toBeNull()
    const details = async (filter: Parameters<typeof deadLettersIn>[1]) =>
      (await deadLettersIn(spool, filter)).map(({ deadLetter: letter }) => letter.detail)
    expect(await details({ reason: 'NO_SOURCE' })).toEqual(['c'])
    expect(await details({ stage: 'mapping' })).toEqual(['a', 'b', 'c'])
    expect(await details({ stage: 'delivery' })).toEqual([])
    expect(await collect(spool.deadLetters({ limit: 2 }))).toHaveLength(2)
  })

  test('that were taken leave the totals, also after a restart', async () => {
    const before = await openSpoolWorld()
    await addDeadLetters(before.spool, ['a', 'b'])
    const letters = await deadLettersIn(before.spool)
    await before.spool.exchange(exchangeOf({ take: letters.map(({ id }) => id) }))
    expect(before.spool.totals()).toMatchObject({ deadLetters: 0, deadLetterBytes: 0 })
    const { spool } = await before.reopen()
    expect(spool.totals()).toMatchObject({ deadLetters: 0, deadLetterBytes: 0 })
  })
})
