import { describe, expect, test } from 'vitest'
import type { Spool } from '../../../src/spool/spool.ts'
import { collect, ended, openSpoolWorld } from '../../support/open-spool.ts'

const journal = { windowMs: 10_000, bytesMax: 20 }

async function notedIn(spool: Spool): Promise<string[]> {
  return (await collect(spool.journal())).map(({ entries }) => entries.toString())
}

async function note(spool: Spool, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) spool.note(Buffer.from(text))
  await ended(spool)
}

describe('the journal of the intake', () => {
  test('holds what was noted with the messages of each commit, over a restart', async () => {
    const world = await openSpoolWorld()
    await note(world.spool, 'one ', 'two')
    await note(world.spool, 'three')
    const { spool } = await world.reopen()
    expect(await notedIn(spool)).toEqual(['one two', 'three'])
    await note(spool, 'four')
    expect(await notedIn(spool)).toEqual(['one two', 'three', 'four'])
  })

  test('forgets what is older than its window, also over a restart, and the oldest beyond its bound', async () => {
    const world = await openSpoolWorld({ changes: { journal } })
    await note(world.spool, 'old')
    await world.clock.advance(6000)
    const { spool, clock } = await world.reopen()
    await note(spool, 'young')
    await clock.advance(5000)
    await note(spool, 'youngest')
    expect(await notedIn(spool)).toEqual(['young', 'youngest'])
    await note(spool, '12345678')
    expect(await notedIn(spool)).toEqual(['youngest', '12345678'])
  })
})
