import { describe, expect, test } from 'vitest'
import type { Batch, Spool } from '../../../../src/spool/spool.ts'
import { bodyOf } from '../../../support/batch-body.ts'
import { openSpoolWorld, sealAll, type WorldOptions } from '../../../support/open-spool.ts'
import { payloadNamed } from '../../../support/spool-world.ts'

/** Chunks of one payload of 1,000 bytes; all of them are recent. */
const changes = {
  bytesMax: 1024 ** 2,
  recentBytesMax: 64 * 1024,
  uncommittedBytesMax: 1024 ** 2,
  group: { chunkPayloadsMax: 1, chunkBytesMax: 10_000 },
  buffers: { stepBytes: 256, freeBytesMax: 64 * 1024 },
}
const padding = 1000

async function openWorld(options: WorldOptions = {}) {
  const world = await openSpoolWorld({ changes, ...options })
  let published = 0
  return {
    ...world,
    /** One sealed batch of a payload. */
    async sealed(name: string): Promise<Batch> {
      await world.publish(name, { padding })
      return (await sealAll(world.spool)).at(-1)!
    },
    /** Enough for every buffer that was given back to get other bytes. */
    async overwriteFree(): Promise<void> {
      for (let count = 0; count < 100; count += 1)
        await world.publish(`other ${(published += 1)}`, { padding })
    },
  }
}

async function contentOf(spool: Spool, batch: Batch) {
  const loaded = await spool.load(batch)
  if (loaded.kind !== 'content') throw new Error('the batch is damaged')
  return loaded.content
}

describe('a batch', () => {
  test('has the same bytes at every submission until it is settled, whatever is written meanwhile', async () => {
    const { spool, sealed, overwriteFree } = await openWorld()
    const [first, other] = [await sealed('first'), await sealed('other')]
    const content = await contentOf(spool, first)
    const body = bodyOf(content)
    expect(body.toString()).toContain(payloadNamed('first', { padding }).json)
    await contentOf(spool, other)
    await spool.settle(other, { payloads: 'all delivered', requestId: null })
    await overwriteFree()
    expect(bodyOf(content)).toEqual(body)
    expect(bodyOf(await contentOf(spool, first))).toEqual(body)
  })

  test('cannot be read after its settle: there are no bytes of others in its place', async () => {
    const { spool, sealed, overwriteFree } = await openWorld()
    const batch = await sealed('a')
    const content = await contentOf(spool, batch)
    expect(content.payloadIds()).toHaveLength(1)
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
    await overwriteFree()
    expect(() => bodyOf(content)).toThrow()
    expect(() => content.payload(0)).toThrow('after its settle')
  })
})
