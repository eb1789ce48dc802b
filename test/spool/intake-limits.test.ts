import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { realDisk, type Disk } from '../../src/storage/storage.ts'
import { collect, ended, openSpoolWorld, passTimeUntil, sealAll } from '../support/open-spool.ts'
import { deadLetterNamed, payloadNamed } from '../support/spool-world.ts'

describe('a spool that is full', () => {
  test('counts what waits to be written as well, so that a burst cannot exceed the limit', async () => {
    const { spool } = await openSpoolWorld({ changes: { bytesMax: 4000 } })
    let appended = 0
    while (spool.holdReason() === null && appended < 1000) {
      spool.append(payloadNamed(`m${appended}`, { padding: 300 }))
      spool.endMessage(null)
      appended += 1
    }
    expect(spool.holdReason()).toBe('spool_full')
    expect(appended).toBeLessThan(15)
  })

  test('frees the disk of what it has deleted, where that alone is at its limit', async () => {
    const bytesMax = 1024 ** 2
    const window = { windowMs: 86_400_000, keysMax: 100_000 }
    const { spool, clock, publish, eventsOf } = await openSpoolWorld({ changes: { bytesMax, window } })
    // Payloads that compression makes no smaller.
    const publishNoise = (name: string) => {
      const payload = payloadNamed(name)
      const noise = randomBytes(7500).toString('base64')
      spool.append({ ...payload, json: payload.json.replace(/}$/, `,"noise":"${noise}"}`) })
      return ended(spool)
    }
    const deliverAll = async () => {
      for (const batch of await sealAll(spool)) {
        await spool.load(batch)
        await spool.settle(batch, { payloads: 'all delivered', requestId: null })
      }
    }
    // What was delivered stays on the disk as well.
    for (let n = 0; spool.holdReason() === null || spool.totals().openBytes > 0; n += 1) {
      if (spool.holdReason() === null) await publishNoise(`m${n}`)
      if (n % 20 === 0) await deliverAll()
      if (n % 50 === 0) await clock.advance(5000)
      expect(n).toBeLessThan(2000)
    }
    expect(spool.holdReason()).toBe('spool_full')
    expect(eventsOf('spool_held').at(-1)?.detail).toMatch(
      /^its files take .* of 1\.0 MiB, most of it deleted/,
    )
    await passTimeUntil(clock, () => spool.holdReason() === null)
    expect(await publish('afterwards')).toBeNull()
  })

  test('lets settles use the reserve: a failed payload can be retried while intake is held', async () => {
    const { spool, publish } = await openSpoolWorld({ changes: { bytesMax: 6000, reserveBytes: 2000 } })
    for (let n = 0; spool.holdReason() === null; n += 1) await publish(`m${n}`, { padding: 300 })
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

  test('holds intake while the free space on the disk is below its minimum, and then resumes', async () => {
    let freeBytes = 10_000
    let ballasts = 0
    const disk: Disk = {
      ...realDisk,
      free: async () => ({ bytes: freeBytes, files: Infinity }),
      loadBallast: async () => void (ballasts += 1),
    }
    const changes = { freeBytesMin: 5000, ballastBytes: 6000 }
    const { spool, clock, eventsOf } = await openSpoolWorld({ disk, changes })
    expect([spool.holdReason(), ballasts]).toEqual([null, 0])
    freeBytes = 4999
    await passTimeUntil(clock, () => spool.holdReason() !== null)
    expect(spool.holdReason()).toBe('disk_low')
    freeBytes = 20_000
    await passTimeUntil(clock, () => spool.holdReason() === null)
    expect(eventsOf('spool_resumed')).toHaveLength(1)
    // For the next time, now that there is room for it.
    await passTimeUntil(clock, () => ballasts > 0)
  })

  test('reports when the dead letters reach and leave their bound, and does not hold intake', async () => {
    const { spool } = await openSpoolWorld({ changes: { deadLetterBytesMax: 1000 } })
    for (let n = 0; n < 10; n += 1) {
      const { deadLetter } = deadLetterNamed(`${n}`)
      if (spool.deadLettersFull()) break
      spool.addDeadLetter(deadLetter)
      await new Promise((resolve) => {
        spool.endMessage(resolve)
      })
    }
    expect([spool.deadLettersFull(), spool.holdReason()]).toEqual([true, null])
    const full = { code: 'DEAD_LETTERS_FULL', store: 'dead_letters', bytesMax: 1000 }
    expect([...spool.states()]).toContainEqual(full)
    const take = (await collect(spool.deadLetters({ limit: 2 }))).map(({ id }) => id)
    await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
    expect(spool.deadLettersFull()).toBe(false)
    expect([...spool.states()]).not.toContainEqual(full)
  })
})
