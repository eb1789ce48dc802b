import { describe, expect, test } from 'vitest'
import { stateKey, setAsideKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { eventually } from '../../support/eventually.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { createMemoryDisk, withDamagedBlock } from '../../support/memory-store.ts'
import {
  ended,
  flipLastByte,
  openSpoolWorld,
  passTimeUntil,
  reopenTampered,
  statesIn,
} from '../../support/open-spool.ts'
import { exchangeOf, emptyDisk, payloadNamed } from '../../support/spool-world.ts'
import { join } from 'node:path'

const bytes = (text: string) => Buffer.from(text)

/** Changes with `now`. */
function lateState(key: string) {
  return {
    key,
    now: 'new',
    encoded: 0,
    isWaiting: false,
    get value() {
      this.encoded += 1
      return bytes(this.now)
    },
  }
}

/** In the database: the key and the record. */
function bytesOf(key: string, value: string): number {
  return stateKey(key).length + 5 + value.length
}

describe('state of the mapping', () => {
  test('is the same after a restart as when the last message was acknowledged', async () => {
    const before = await openSpoolWorld()
    before.spool.putState('van-1', bytes('latitude'))
    before.spool.putState('van-2', bytes('battery'))
    expect(await ended(before.spool)).toBeNull()
    before.spool.putState('van-1', bytes('latitude, longitude'))
    before.spool.putState('van-2', null)
    before.spool.putState('van-3', Buffer.alloc(0))
    expect(await ended(before.spool)).toBeNull()
    const { spool } = await before.reopen()
    expect(await statesIn(spool)).toEqual({ 'van-1': 'latitude, longitude', 'van-3': '' })
    expect(spool.totals().stateEntries).toBe(2)
  })

  test('is copied, so that the caller may reuse its buffer', async () => {
    const { spool } = await openSpoolWorld()
    const value = bytes('before')
    spool.putState('van-1', value)
    value.write('after!')
    await ended(spool)
    expect(await statesIn(spool)).toEqual({ 'van-1': 'before' })
  })

  test('that many messages of a write change is encoded once, with what they changed and nothing later', async () => {
    const store = createHeldStore()
    const before = await openSpoolWorld({ openStore: store.openStore })
    const device = lateState('van-1')
    const change = (to: string) => {
      device.now = to
      before.spool.putLateState(device)
      before.spool.append(payloadNamed(to))
      return ended(before.spool)
    }
    store.hold()
    const first = [change('1'), change('2'), change('3')]
    await eventually(() => store.waiting() === 1)
    const later = [change('4'), change('5')]
    expect(device.encoded).toBe(1)
    store.releaseOne()
    await Promise.all(first)
    const killed = await openSpoolWorld({ path: await killedCopy(before.path) })
    expect(await statesIn(killed.spool)).toEqual({ 'van-1': '3' })
    expect(killed.spool.lanes()).toMatchObject([{ open: 3 }])
    store.release()
    await Promise.all(later)
    expect(device.encoded).toBe(2)
    expect(await statesIn(before.spool)).toEqual({ 'van-1': '5' })
    const { spool } = await before.reopen()
    expect(spool.totals()).toMatchObject({ stateEntries: 1, stateBytes: bytesOf('van-1', '5') })
  })

  test('that is encoded late is as of the last message of its group, also where that waits in the queue', async () => {
    const store = createHeldStore()
    const { spool, path } = await openSpoolWorld({
      openStore: store.openStore,
      changes: { groupBytesMax: 1000 },
    })
    const device = lateState('van-1')
    const change = (to: string, padding = 0) => {
      device.now = to
      spool.putLateState(device)
      spool.append(payloadNamed(to, { padding }))
      return ended(spool)
    }
    store.hold()
    const running = change('1')
    await eventually(() => store.waiting() === 1)
    const queued = change('2', 2000)
    const open = change('3')
    store.releaseOne()
    await running
    await eventually(() => store.waiting() === 1)
    store.releaseOne()
    await queued
    const copied = await openSpoolWorld({ path: await killedCopy(path) })
    expect(await statesIn(copied.spool)).toEqual({ 'van-1': '2' })
    store.release()
    await open
    expect(await statesIn(spool)).toEqual({ 'van-1': '3' })
  })

  test('is that of the last call, whether it is encoded late or at once', async () => {
    const { spool } = await openSpoolWorld()
    const devices = ['van-1', 'van-2', 'van-3'].map(lateState)
    for (const device of devices) spool.putLateState(device)
    spool.putState('van-1', null)
    spool.putState('van-2', bytes('at once'))
    spool.putState('van-3', null)
    expect(devices.map(({ isWaiting }) => isWaiting)).toEqual([false, false, false])
    for (const device of devices.slice(2)) spool.putLateState(device)
    await ended(spool)
    expect(await statesIn(spool)).toEqual({ 'van-2': 'at once', 'van-3': 'new' })
    expect(spool.totals().stateEntries).toBe(2)
    expect(devices.map(({ isWaiting }) => isWaiting)).toEqual([false, false, false])
  })

  test('distinguishes keys of any text, including invalid Unicode', async () => {
    const before = await openSpoolWorld()
    const names = ['a', 'a"', 'a\u0000', '\ud800', '\ud801', 'ü', 'x'.repeat(512)]
    for (const name of names) before.spool.putState(name, bytes(JSON.stringify(name)))
    await ended(before.spool)
    const { spool } = await before.reopen()
    const found = await statesIn(spool)
    expect(new Set(Object.keys(found))).toEqual(new Set(names))
    for (const name of names) expect(found[name]).toBe(JSON.stringify(name))
  })

  test('becomes durable together with its message or not at all', async () => {
    const disk = createMemoryDisk()
    const world = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk, crashes: true })
    disk.hold()
    world.spool.putState('van-1', bytes('open'))
    world.spool.append(payloadNamed('one'))
    world.spool.endMessage(() => undefined)
    while (disk.waiting() === 0) await world.clock.advance(0)
    disk.crash({ keepRunning: false })
    const lost = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk, clock: createFakeClock() })
    expect(await statesIn(lost.spool)).toEqual({})
    expect(lost.spool.lanes()).toEqual([])
  })

  test('is read from the disk again when the store is reopened after a failed write', async () => {
    const disk = createMemoryDisk()
    const { spool, clock } = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    spool.putState('van-1', bytes('safe'))
    await ended(spool)
    disk.failNextWrite({ reachesDisk: false })
    spool.putState('van-1', bytes('unlucky'))
    spool.putState('van-2', bytes('unlucky'))
    expect(await ended(spool)).toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    await expect(statesIn(spool)).rejects.toMatchObject({ code: 'SPOOL_CLOSED' })
    await passTimeUntil(clock, () => spool.holdReason() === null)
    expect(await statesIn(spool)).toEqual({ 'van-1': 'safe' })
    expect(spool.totals().stateEntries).toBe(1)
  })

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

  test('is returned except for a block that cannot be read', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    for (let n = 0; n < 10; n += 1) before.spool.putState(`van-${n}`, bytes(`${n}`))
    await ended(before.spool)
    await before.spool.close()
    const openStore = withDamagedBlock(disk.boot(), [stateKey('van-4')])
    const { spool, eventsOf } = await openSpoolWorld({ openStore, disk: emptyDisk })
    const found = Object.keys(await statesIn(spool))
    expect(found.sort()).toEqual([0, 1, 2, 3, 5, 6, 7, 8, 9].map((n) => `van-${n}`))
    expect(eventsOf('record_damaged')[0]).toMatchObject({
      table: 'state',
      what: expect.stringContaining('block'),
    })
    expect(eventsOf('records_unbalanced')).toMatchObject([{ known: 10, found: 9 }])
  })

  test('that is damaged since the start is reported once by a reading', async () => {
    const disk = createMemoryDisk()
    const { spool, eventsOf } = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    spool.putState('van-1', bytes('one'))
    spool.putState('van-2', bytes('two'))
    spool.putLateState(lateState('van-3'))
    await ended(spool)
    disk.damage(stateKey('van-1'), flipLastByte)
    disk.damage(stateKey('memory "" 0'), flipLastByte)
    expect(await statesIn(spool)).toEqual({ 'van-2': 'two' })
    expect(eventsOf('record_damaged').map(({ name }) => name)).toEqual(['memory "" 0', 'van-1'])
  })

  test('that is missing at a start is found by the totals and reported once', async () => {
    const before = await openSpoolWorld()
    before.spool.putState('van-1', bytes('one'))
    before.spool.putState('van-2', bytes('two'))
    await ended(before.spool)
    const world = await reopenTampered(before, stateKey('van-1'), () => null)
    const event = { kind: 'records_unbalanced', table: 'state', name: '', known: 2, found: 1 }
    expect(world.eventsOf('records_unbalanced')).toEqual([event])
    expect((await world.reopen()).eventsOf('records_unbalanced')).toEqual([])
  })

  test('is counted on the disk by the audit in the background, which reports a missing entry', async () => {
    const disk = createMemoryDisk()
    const before = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk })
    before.spool.putState('van-1', bytes('one'))
    await ended(before.spool)
    const sound = await before.reopen()
    sound.spool.putState('van-2', bytes('two'))
    await ended(sound.spool)
    await sound.clock.advance(1000)
    expect(sound.eventsOf('records_unbalanced')).toEqual([])
    const { clock, eventsOf } = await sound.reopen()
    disk.damage(stateKey('van-1'), () => null)
    await clock.advance(1000)
    expect(eventsOf('records_unbalanced')).toMatchObject([{ table: 'state', known: 2, found: 1 }])
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
