import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import {
  formatKey,
  numberOf,
  seqKey,
  setAsideKey,
  table,
  tableRange,
  windowRecordKey,
} from '../../../src/spool/chunk-log/key-layout.ts'
import { formatRecord, formatVersion } from '../../../src/spool/chunk-log/record-codec.ts'
import { openExistingStore, openLevelStore, type OpenStore } from '../../../src/storage/storage.ts'
import { flipLastByte, openSpoolWorld, reopenTampered, publishAll } from '../../support/open-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const lane1 = 1 as LaneId

/** Real LevelDB that counts the bytes of chunks that are read. */
function watchedStore() {
  const reads = { bytes: 0 }
  const openStore: OpenStore = async (path, options) => {
    const store = await openLevelStore(path, options)
    return {
      ...store,
      async *pages(range, how) {
        for await (const page of store.pages(range, how)) {
          for (const [key, value] of page) if (key[0] === table.chunks) reads.bytes += value.length
          yield page
        }
      },
    }
  }
  return { reads, openStore }
}

describe('a start', () => {
  test('reads the first chunks of a lane only, however many are pending', async () => {
    const MiB = 1024 ** 2
    const changes = {
      bytesMax: 100 * MiB,
      uncommittedBytesMax: 100 * MiB,
      groupBytesMax: MiB,
      group: { chunkPayloadsMax: 500, chunkBytesMax: MiB },
    }
    const before = await openSpoolWorld({ changes })
    const acks: Promise<unknown>[] = []
    for (let n = 0; n < 1200; n += 1) acks.push(before.publish(`${n}`, { padding: 10_000 }))
    await Promise.all(acks)
    await before.spool.close()
    const { reads, openStore } = watchedStore()
    const opening = openSpoolWorld({ path: before.path, clock: before.clock, openStore, changes })
    const { spool } = await opening
    // The bound of what is read ahead is 4 MiB, and the walk that counts everything has not started yet.
    expect(reads.bytes).toBeLessThan(6 * MiB)
    expect(spool.totals().openBytes).toBeGreaterThan(11 * MiB)
    expect(spool.lanes()).toMatchObject([{ pending: 1200, appended: 1200 }])
  })
})

describe('a start with a damaged record', () => {
  test('of the format writes it again with the id of the store, and sets the old one aside', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'ab')
    const world = await reopenTampered(before, formatKey, flipLastByte)
    expect(world.eventsOf('record_damaged')).toMatchObject([{ table: 'format' }])
    expect(world.eventsOf('high_water_mark_unknown')).toEqual([])
    expect(world.spool.lanes()).toMatchObject([{ pending: 2 }])
    await world.spool.close()
    const store = await openExistingStore(join(before.path, 'store'))
    expect(await store.get(setAsideKey(formatKey))).toBeDefined()
    await store.close()
    expect((await world.reopen()).eventsOf('record_damaged')).toEqual([])
  })

  test('of a newer format is refused with SPOOL_VERSION, and changes nothing', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'ab')
    const newer = formatRecord.encode({ version: formatVersion + 1, createdAt: 1, instance: 'i' })
    await expect(reopenTampered(before, formatKey, () => newer)).rejects.toMatchObject({
      code: 'SPOOL_VERSION',
    })
    const store = await openExistingStore(join(before.path, 'store'))
    expect(await store.get(seqKey(table.chunks, lane1, 0))).toBeDefined()
    await store.close()
  })

  test('of the dedup window forgets its keys only, and never uses its number again', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'ab')
    const world = await reopenTampered(before, windowRecordKey(1), flipLastByte)
    expect(world.eventsOf('record_damaged')).toMatchObject([{ table: 'dedup' }])
    expect(world.spool.append(payloadNamed('a'))).toBe('duplicate')
    expect(world.spool.append(payloadNamed('b'))).toBe('stored')
    await world.publish('c')
    await world.spool.close()
    const store = await openExistingStore(join(world.path, 'store'))
    const numbers: number[] = []
    for await (const page of store.pages(tableRange(table.windowKeys)))
      for (const [key] of page) numbers.push(numberOf(key))
    await store.close()
    expect(numbers).toEqual([0, 1, 2])
  })
})
