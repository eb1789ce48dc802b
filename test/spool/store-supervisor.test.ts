import { describe, expect, test } from 'vitest'
import type { Disk, OpenStore } from '../../src/storage/storage.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { collect, namesIn, openSpoolWorld, passTimeUntil, sealAll } from '../support/open-spool.ts'
import { payloadNamed } from '../support/spool-world.ts'

/** Real LevelDB whose next write fails on demand, and whose opening can be refused. */
function faultyStore() {
  const faults = { write: null as string | null, opens: 0 }
  const openStore: OpenStore = async (path) => {
    if (faults.opens > 0) {
      faults.opens -= 1
      throw Object.assign(new Error('input/output error'), { code: 'EIO' })
    }
    const store = await openLevelStore(path)
    return {
      ...store,
      write(ops, options) {
        if (faults.write === null) return store.write(ops, options)
        const code = faults.write
        faults.write = null
        return Promise.reject(Object.assign(new Error(`no: ${code}`), { code }))
      },
    }
  }
  return { faults, openStore }
}

describe('a spool that is full', () => {
  test('holds intake at its limit, and resumes by itself when batches are settled', async () => {
    const { spool, publish, events, eventsOf } = await openSpoolWorld({ changes: { bytesMax: 4000 } })
    let stored = 0
    while (spool.holdReason === null) {
      expect(await publish(`m${stored}`, { padding: 300 })).toBeNull()
      stored += 1
      expect(stored).toBeLessThan(100)
    }
    expect(spool.holdReason).toBe('spool_full')
    expect(spool.totals().openBytes).toBeLessThan(4000 + 500)
    const [batch] = await sealAll(spool)
    await spool.load(batch!)
    await spool.settle(batch!, { payloads: 'all delivered', requestId: null })
    expect(spool.holdReason).toBeNull()
    expect(eventsOf('spool_held')).toMatchObject([{ reason: 'spool_full' }])
    expect(events.at(-1)).toMatchObject({ kind: 'spool_resumed' })
  })

  test('counts what waits to be written as well, so a burst cannot run past the limit', async () => {
    const { spool } = await openSpoolWorld({ changes: { bytesMax: 4000 } })
    let appended = 0
    while (spool.holdReason === null && appended < 1000) {
      spool.append(payloadNamed(`m${appended}`, { padding: 300 }), false)
      spool.endMessage(null)
      appended += 1
    }
    expect(spool.holdReason).toBe('spool_full')
    expect(appended).toBeLessThan(15)
  })

  test('settles use the reserve: a failed payload can be retried although intake is held', async () => {
    const { spool, publish } = await openSpoolWorld({ changes: { bytesMax: 6000, reserveBytes: 2000 } })
    for (let n = 0; spool.holdReason === null; n += 1) await publish(`m${n}`, { padding: 300 })
    const [batch] = await sealAll(spool)
    await spool.load(batch!)
    const failure = { payloadId: '', errorType: 'Internal', errorMessage: '', validationErrorDetails: [] }
    const fates = Array.from({ length: batch!.payloads }, () => {
      return { kind: 'retry', schedule: 'default', step: 0, failure } as const
    })
    await spool.settle(batch!, { payloads: fates, requestId: null })
    const retryLane = spool.lanes().find(({ role }) => role.kind === 'retry')
    expect(retryLane).toMatchObject({ pending: batch!.payloads, role: { schedule: 'default', step: 0 } })
  })

  test('holds intake while the disk has less free than it must leave, and resumes when there is room', async () => {
    let freeBytes = 10_000
    const disk: Disk = { ...realDisk, freeBytes: async () => freeBytes }
    const { spool, clock, eventsOf } = await openSpoolWorld({ disk, changes: { freeBytesMin: 5000 } })
    expect(spool.holdReason).toBeNull()
    freeBytes = 4999
    await passTimeUntil(clock, () => spool.holdReason !== null)
    expect(spool.holdReason).toBe('disk_low')
    freeBytes = 20_000
    await passTimeUntil(clock, () => spool.holdReason === null)
    expect(eventsOf('spool_resumed')).toHaveLength(1)
  })

  test('tells when the dead letters reach their bound and have room again, and holds nothing for it', async () => {
    const { spool, eventsOf } = await openSpoolWorld({ changes: { deadLetterBytesMax: 1000 } })
    const { letterNamed } = await import('../support/spool-world.ts')
    for (let n = 0; n < 10; n += 1) {
      const { letter, windowKey } = letterNamed(`letter ${n}`)
      if (spool.deadLettersFull) break
      expect(spool.addDeadLetter(letter, windowKey, false)).toBe('stored')
      await new Promise((resolve) => {
        spool.endMessage(resolve)
      })
    }
    expect([spool.deadLettersFull, spool.holdReason]).toEqual([true, null])
    expect(eventsOf('dead_letters_full')).toEqual([{ kind: 'dead_letters_full', bytesMax: 1000 }])
    const take = (await collect(spool.deadLetters({ limit: 2 }))).map(({ id }) => id)
    await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
    expect(spool.deadLettersFull).toBe(false)
    expect(eventsOf('dead_letters_resumed')).toHaveLength(1)
  })
})

describe('a spool whose write fails', () => {
  test('acknowledges nothing of it, opens the store anew, and goes on', async () => {
    const { faults, openStore } = faultyStore()
    const world = await openSpoolWorld({ openStore })
    const { spool, clock, publish, eventsOf } = world
    expect(await publish('safe')).toBeNull()
    faults.write = 'EIO'
    expect(await publish('unlucky')).toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    expect(spool.holdReason).toBe('store_lost')
    expect(eventsOf('store_lost')).toHaveLength(1)
    await passTimeUntil(clock, () => spool.holdReason === null)
    // The device sends it again; the window of the failed group is forgotten, so it is no copy.
    expect(spool.append(payloadNamed('unlucky'), true)).toBe('stored')
    const again = new Promise((resolve) => {
      spool.endMessage(resolve)
    })
    expect(await again).toBeNull()
    const [batch] = await sealAll(spool)
    expect(await namesIn(spool, batch!)).toEqual(['safe', 'unlucky'])
    expect(eventsOf('store_reopened')).toHaveLength(1)
  })

  test('rejects the seals and settles that were under way, and the batch comes back', async () => {
    const { faults, openStore } = faultyStore()
    const { spool, clock, publish } = await openSpoolWorld({ openStore })
    await publish('one')
    const [batch] = await sealAll(spool)
    await spool.load(batch!)
    faults.write = 'ENOSPC'
    await expect(spool.settle(batch!, { payloads: 'all delivered', requestId: null })).rejects.toMatchObject({
      code: 'SPOOL_WRITE_FAILED',
    })
    await expect(spool.load(batch!)).rejects.toMatchObject({ code: 'SPOOL_CLOSED' })
    await passTimeUntil(clock, () => spool.holdReason === null)
    expect(spool.batches()).toMatchObject([
      { batchId: batch!.batchId, timestamp: batch!.timestamp, recovered: true },
    ])
  })

  test('tries again to open, and gives up after its attempts so that the process can end', async () => {
    const { faults, openStore } = faultyStore()
    const clock = createFakeClock()
    const { spool, publish, eventsOf } = await openSpoolWorld({ openStore, clock })
    let gaveUp = false
    spool.listen({ storeUnrecoverable: () => (gaveUp = true) })
    faults.write = 'EIO'
    faults.opens = 3
    await publish('unlucky')
    await passTimeUntil(clock, () => gaveUp)
    expect(eventsOf('store_reopen_failed').map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(spool.holdReason).toBe('store_lost')
  })
})
