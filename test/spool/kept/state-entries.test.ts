import { describe, expect, test } from 'vitest'
import { stateKey, setAsideKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { ended, flipLastByte, openSpoolWorld, reopenTampered, statesIn } from '../../support/open-spool.ts'
import { exchangeOf, payloadNamed } from '../../support/spool-world.ts'
import { join } from 'node:path'

const bytes = (text: string) => Buffer.from(text)

describe('state of the mapping', () => {
  test('holds intake at its bound, but no exchange, and intake resumes when entries were deleted', async () => {
    const { spool, eventsOf } = await openSpoolWorld({ changes: { stateBytesMax: 1000 } })
    let entries = 0
    for (; spool.holdReason() === null; entries += 1) {
      spool.putState(`van-${entries}`, Buffer.alloc(50))
      spool.endMessage(null)
    }
    expect(spool.holdReason()).toBe('state_full')
    expect(entries).toBeLessThan(17)
    const writes = Array.from({ length: entries }, (_, index) => ({ key: `van-${index}`, value: null }))
    await spool.exchange(exchangeOf({ payloads: [payloadNamed('closed')], stateChanges: writes }))
    expect(spool.holdReason()).toBeNull()
    expect(spool.totals()).toMatchObject({ stateEntries: 0, stateBytes: 0 })
    expect(eventsOf('spool_held')).toMatchObject([{ reason: 'state_full' }])
  })

  test('that is damaged is reported and set aside unchanged, and the rest is returned', async () => {
    const before = await openSpoolWorld()
    before.spool.putState('van-1', bytes('one'))
    before.spool.putState('van-2', bytes('two'))
    await ended(before.spool)
    const world = await reopenTampered(before, stateKey('van-1'), flipLastByte)
    expect(world.eventsOf('record_damaged')).toMatchObject([{ table: 'state', name: 'van-1' }])
    expect(await statesIn(world.spool)).toEqual({ 'van-2': 'two' })
    await world.spool.close()
    const store = await openLevelStore(join(world.path, 'store'))
    const aside = await store.get(setAsideKey(stateKey('van-1')))
    const left = []
    for await (const page of store.pages(tableRange(table.state))) left.push(...page)
    await store.close()
    expect(aside?.toString()).toContain('on')
    expect(left).toHaveLength(1)
  })
})

describe('a message that only changes state', () => {
  test('is a duplicate when it is sent again after a crash', async () => {
    const before = await openSpoolWorld()
    const key = 'a'.repeat(32)
    expect(before.spool.addWindowKey(key)).toBe('stored')
    before.spool.putState('van-1', bytes('open'))
    await ended(before.spool)
    const { spool } = await before.reopen()
    expect(spool.addWindowKey(key)).toBe('duplicate')
    expect(spool.addWindowKey('b'.repeat(32))).toBe('stored')
    expect(spool.totals().duplicates).toBe(1)
  })
})
