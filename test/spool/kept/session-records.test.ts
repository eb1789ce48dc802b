import { describe, expect, test } from 'vitest'
import { sessionKey } from '../../../src/spool/chunk-log/key-layout.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { collect, ended, flipLastByte, openSpoolWorld, reopenTampered } from '../../support/open-spool.ts'

async function recordsIn(spool: Spool): Promise<Record<string, string>> {
  const entries = await collect(spool.sessionRecords())
  return Object.fromEntries(entries.map(({ key, value }) => [key, value.toString()]))
}

describe('the records of stored sessions', () => {
  test('are durable with the message that changed them; the last change of a commit counts', async () => {
    const world = await openSpoolWorld()
    world.spool.putSession('a', Buffer.from('1'))
    world.spool.putSession('a', Buffer.from('2'))
    world.spool.putSession('b "quoted" \u0000', Buffer.from('3'))
    world.spool.putSession('c', Buffer.from('4'))
    await ended(world.spool)
    world.spool.putSession('c', null)
    await ended(world.spool)
    const { spool } = await world.reopen()
    expect(await recordsIn(spool)).toEqual({ a: '2', 'b "quoted" \u0000': '3' })
    const { ok, tables } = await spool.check(new AbortController().signal)
    expect(ok).toBe(true)
    expect(tables).toContainEqual(expect.objectContaining({ table: 'stored sessions', records: 2 }))
  })

  test('a damaged record is reported, and the others are read', async () => {
    const world = await openSpoolWorld()
    world.spool.putSession('a', Buffer.from('1'))
    world.spool.putSession('b', Buffer.from('2'))
    await ended(world.spool)
    const { spool, eventsOf } = await reopenTampered(world, sessionKey('a'), flipLastByte)
    expect(await recordsIn(spool)).toEqual({ b: '2' })
    expect(eventsOf('record_damaged')).toMatchObject([{ table: 'sessions', name: 'a' }])
  })
})
