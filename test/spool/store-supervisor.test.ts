import { mkdir, readdir, rename } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { OpenStore } from '../../src/storage/storage.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { openSpoolWorld, passTimeUntil } from '../support/open-spool.ts'
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

describe('a spool whose write fails', () => {
  test('is not busy any more when the store is open again', async () => {
    const { faults, openStore } = faultyStore()
    const { spool, clock } = await openSpoolWorld({ openStore, changes: { busyMessages: 3 } })
    faults.write = 'EIO'
    const faulty = Array.from({ length: 10 }, (_, n) => {
      spool.append(payloadNamed(`unlucky-${n}`))
      return new Promise((resolve) => {
        spool.endMessage(resolve)
      })
    })
    expect(spool.busy()).toBe(true)
    await Promise.all(faulty)
    // Ingest reads little while it is busy: no message of a device would come and end it.
    await passTimeUntil(clock, () => spool.holdReason() === null)
    expect(spool.busy()).toBe(false)
  })

  test('retries to open the store, and gives up after its attempts so that the process can end', async () => {
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
    expect(spool.holdReason()).toBe('store_lost')
  })
})

test('a spool that is closed while its disk is measured reports no loss of the store', async () => {
  const measured = Promise.withResolvers<number>()
  let isSlow = false
  const usedBytes = (path: string) => (isSlow ? measured.promise : realDisk.usedBytes(path))
  const { spool, clock, publish, eventsOf } = await openSpoolWorld({ disk: { ...realDisk, usedBytes } })
  expect(await publish('one')).toBeNull()
  isSlow = true
  await clock.advance(1000)
  const closing = spool.close()
  measured.resolve(0)
  await closing
  await new Promise(setImmediate)
  expect(eventsOf('spool_held')).toEqual([])
})

test('a spool that the gateway has made is reported for a day', async () => {
  const { clock, spool } = await openSpoolWorld({ checks: true, changes: { forgetMs: 3_600_000 } })
  const codes = () => [...spool.states()].map(({ code }) => code)
  expect(codes()).toEqual(['SPOOL_NEW'])
  for (let hour = 0; hour < 23; hour += 1) await clock.advance(3_600_000)
  expect(codes()).toEqual(['SPOOL_NEW'])
  await clock.advance(3_600_001)
  expect(codes()).toEqual([])
})

test('no store is created where one was seen before its opening: its mount has gone', async () => {
  const { spool, path } = await openSpoolWorld({ checks: true })
  await spool.close()
  const openStore: OpenStore = async (storePath, options) => {
    await rename(path, `${path}.unmounted`)
    await mkdir(path)
    return openLevelStore(storePath, options)
  }
  await expect(openSpoolWorld({ path, checks: true, openStore })).rejects.toMatchObject({
    code: 'SPOOL_MISSING',
  })
  expect(await readdir(path)).toEqual([])
})
