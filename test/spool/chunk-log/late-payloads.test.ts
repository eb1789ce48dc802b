import { describe, expect, test } from 'vitest'
import type { Spool } from '../../../src/spool/spool.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import { ended, openSpoolWorld, rolesIn } from '../../support/open-spool.ts'
import { emptyDisk, exchangeOf, payloadNamed, provider } from '../../support/spool-world.ts'

const owner = provider('default')
/** Payloads of before this moment are late. */
const lateBefore = 1000
const isLate = (_provider: string, deviceTime: number) => deviceTime < lateBefore

function send(spool: Spool, name: string, deviceTime = lateBefore): Promise<unknown> {
  spool.append(payloadNamed(name, { deviceTime }))
  return ended(spool)
}

const sendLate = (spool: Spool, name: string) => send(spool, name, lateBefore - 1)

describe('a payload that is late on arrival', () => {
  test('goes to another lane than fresh payloads of its message, in one write', async () => {
    const { spool } = await openSpoolWorld({ isLate })
    spool.append(payloadNamed('fresh 1'))
    spool.append(payloadNamed('old', { deviceTime: 1 }))
    spool.append(payloadNamed('fresh 2', { deviceTime: lateBefore }))
    spool.append(payloadNamed('no time', { deviceTime: null }))
    expect(await ended(spool)).toBeNull()
    expect(spool.totals()).toMatchObject({ groups: 1, payloads: 4 })
    expect(await rolesIn(spool)).toEqual(['backfill: fresh 1 old', 'live: fresh 2 no time'])
  })

  test('goes to the backfill lane that was opened or rotated last', async () => {
    const { spool } = await openSpoolWorld({ isLate })
    await sendLate(spool, 'old 1')
    await send(spool, 'one')
    await spool.rotate(owner)
    await sendLate(spool, 'old 2')
    await send(spool, 'two')
    await sendLate(spool, 'old 3')
    expect(await rolesIn(spool)).toEqual(['backfill: old 1', 'backfill: one old 2 old 3', 'live: two'])
  })

  test('shares a write with fresh payloads of a lane that is rotated meanwhile, and nothing is lost', async () => {
    const disk = createMemoryDisk()
    const world = await openSpoolWorld({ isLate, openStore: disk.boot(), disk: emptyDisk })
    const { spool } = world
    await send(spool, 'one')
    disk.hold()
    const acks = [send(spool, 'two')]
    while (disk.waiting() === 0) await world.clock.advance(0)
    acks.push(send(spool, 'three'))
    const rotated = spool.rotate(owner)
    acks.push(sendLate(spool, 'old'))
    disk.release()
    expect([...(await Promise.all(acks)), await rotated]).toEqual([null, null, null, true])
    expect(await rolesIn(spool)).toEqual(['backfill: one two three old'])
    expect(spool.lanes()[0]).toMatchObject({ appended: 4, open: 4 })
  })

  test('is late too when it comes from the quarantine or a dead letter', async () => {
    const { spool } = await openSpoolWorld({ isLate })
    const payloads = [payloadNamed('old', { deviceTime: 1 }), payloadNamed('fresh', { deviceTime: 1e6 })]
    await spool.exchange(exchangeOf({ payloads }))
    expect(await rolesIn(spool)).toEqual(['backfill: old', 'live: fresh'])
  })

  test('goes to the same lane after a restart', async () => {
    const before = await openSpoolWorld({ isLate })
    await sendLate(before.spool, 'old 1')
    const { spool } = await before.reopen()
    await sendLate(spool, 'old 2')
    expect(await rolesIn(spool)).toEqual(['backfill: old 1 old 2'])
  })
})
