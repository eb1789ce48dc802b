import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { formatKey, seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { formatRecord, formatVersion } from '../../../src/spool/chunk-log/record-codec.ts'
import { openExistingStore, openLevelStore, type OpenStore } from '../../../src/storage/storage.ts'
import { openSpoolWorld, reopenTampered, publishAll } from '../../support/open-spool.ts'

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

describe('a start with a record of the format', () => {
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
})
