import { describe, expect, test } from 'vitest'
import { table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { SealLimits } from '../../../src/spool/spool.ts'
import type { StoreOp } from '../../../src/storage/storage.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import { ended, namesIn, openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'
import { emptyDisk, payloadNamed } from '../../support/spool-world.ts'

/** A spool with twelve payloads in three chunks, and how many chunks each of its writes puts. */
async function twelvePayloads(changes: { padding?: number } = {}) {
  const boot = createMemoryDisk().boot()
  const chunksPut: number[] = []
  const isChunk = ({ type, key }: StoreOp) => type === 'put' && key[0] === table.chunks
  const world = await openSpoolWorld({
    disk: emptyDisk,
    openStore: async (path) => {
      const store = await boot(path)
      return {
        ...store,
        async write(ops, options) {
          chunksPut.push(ops.filter(isChunk).length)
          await store.write(ops, options)
        },
      }
    },
  })
  const names = 'a b c d e f g h i j k l'.split(' ')
  for (const name of names) world.spool.append(payloadNamed(name, changes))
  expect(await ended(world.spool)).toBeNull()
  chunksPut.length = 0
  return { world, names, chunksPut }
}

async function sealAll({ spool }: Awaited<ReturnType<typeof twelvePayloads>>['world'], limits: SealLimits) {
  const sealed: string[] = []
  for (;;) {
    const batch = await spool.seal(spool.lanes()[0]!.id, limits)
    if (batch === null) return sealed
    sealed.push(batch.operation === 'batch' ? (await namesIn(spool, batch)).join('') : '1')
  }
}

describe('sealing with lower limits than those of the chunks', () => {
  test('cuts each chunk once for all its batches', async () => {
    const { world, chunksPut } = await twelvePayloads()
    expect(await sealAll(world, { payloadsMax: 1, bodyBytesMax: 1e6, operation: 'single' })).toHaveLength(12)
    expect(chunksPut).toEqual([4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0])
    expect(world.spool.lanes()).toMatchObject([{ pending: 0, sealed: 12, pendingBytes: 0, open: 12 }])
  })

  test('cuts by bytes as well, and a larger payload gets a batch of its own', async () => {
    const { world } = await twelvePayloads({ padding: 300 })
    expect(await sealAll(world, { payloadsMax: 9, bodyBytesMax: 1000 })).toEqual([
      'ab',
      'cd',
      'ef',
      'gh',
      'ij',
      'kl',
    ])
    const { world: other, names } = await twelvePayloads({ padding: 300 })
    expect(await sealAll(other, { payloadsMax: 9, bodyBytesMax: 100 })).toEqual(names)
  })
})

describe('seals of one lane that run together', () => {
  const limits = { payloadsMax: 4, bodyBytesMax: 1e6 }
  const sealTogether = async ({ spool }: SpoolWorld, count: number, changes: Partial<SealLimits> = {}) => {
    const lane = spool.lanes()[0]!.id
    const seals = Array.from({ length: count }, () => spool.seal(lane, { ...limits, ...changes }))
    const found: string[] = []
    for (const batch of await Promise.all(seals))
      found.push(batch === null ? '' : (await namesIn(spool, batch)).join(''))
    return found
  }

  test('claim one after the other, and share a write', async () => {
    const { world, chunksPut } = await twelvePayloads()
    expect(await sealTogether(world, 4)).toEqual(['abcd', 'efgh', 'ijkl', ''])
    expect(chunksPut).toEqual([0])
  })

  test('wait for one that cuts a chunk', async () => {
    const { world, chunksPut } = await twelvePayloads()
    expect(await sealTogether(world, 4, { payloadsMax: 3 })).toEqual(['abc', 'def', 'ghi', 'jkl'])
    expect(chunksPut).toEqual([2, 2, 2, 0])
  })
})
