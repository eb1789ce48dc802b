import { describe, expect, test } from 'vitest'
import { ended, openSpoolWorld } from '../../support/open-spool.ts'
import { exchangeOf, payloadNamed } from '../../support/spool-world.ts'

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
