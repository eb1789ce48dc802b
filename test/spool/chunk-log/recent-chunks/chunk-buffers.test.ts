import { describe, expect, test } from 'vitest'
import { addText, finishChunk, newChunkBuilder } from '../../../../src/spool/chunk-log/chunk-codec.ts'
import {
  createChunkBuffers,
  createRecentChunks,
} from '../../../../src/spool/chunk-log/recent-chunks/recent-chunks.ts'
import type { LaneId } from '../../../../src/domain/ids.ts'
import type { Batch, Spool } from '../../../../src/spool/spool.ts'
import { bodyOf } from '../../../support/batch-body.ts'
import { createHeldStore } from '../../../support/held-store.ts'
import { openSpoolWorld, sealAll, type WorldOptions } from '../../../support/open-spool.ts'
import { payloadNamed } from '../../../support/spool-world.ts'

const lane = 1 as LaneId

function newBuffers({ freeBytesMax = 1000 } = {}) {
  return createChunkBuffers({ stepBytes: 100, freeBytesMax })
}

describe('the buffer of a recent chunk', () => {
  function newChunk(buffers: ReturnType<typeof newBuffers>, text: string) {
    const builder = newChunkBuilder(150, buffers)
    addText(builder, text.padEnd(100, '.'), 0)
    return finishChunk(builder, 1, 0)
  }

  test('is given back when the chunk leaves unread, and not when somebody has read it', () => {
    const buffers = newBuffers()
    const recent = createRecentChunks({ bytesMax: 400 }, buffers)
    const chunks = ['a', 'b', 'c', 'd'].map((text) => newChunk(buffers, text))
    const before = buffers.freeBytes()
    for (const [seq, chunk] of chunks.slice(0, 2).entries()) recent.put(lane, seq, chunk)
    expect(recent.bytes()).toBe(400)
    const read = recent.get(lane, 0)
    for (const [seq, chunk] of chunks.slice(2).entries()) recent.put(lane, seq + 2, chunk)
    expect(recent.get(lane, 0)).toBeUndefined()
    // That of b alone.
    expect(buffers.freeBytes()).toBe(before + 200)
    expect(read?.value.toString()).toContain('a...')
    expect(chunks[1]?.value).toHaveLength(0)
  })

  test('stays where the same chunk is put again, and is given back with one that replaces it', () => {
    const buffers = newBuffers()
    const recent = createRecentChunks({ bytesMax: 1000 }, buffers)
    const [chunk, other] = [newChunk(buffers, 'a'), newChunk(buffers, 'b')]
    const before = buffers.freeBytes()
    recent.put(lane, 0, chunk)
    recent.put(lane, 0, chunk)
    expect(recent.bytes()).toBe(200)
    expect(chunk.value.toString()).toContain('a...')
    recent.put(lane, 0, other)
    expect(buffers.freeBytes()).toBe(before + 200)
    expect(recent.bytes()).toBe(200)
  })
})

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

  test('keeps its buffers until its settle is durable', async () => {
    const held = createHeldStore()
    const { spool, sealed, clock } = await openWorld({ openStore: held.openStore })
    const batch = await sealed('a')
    const content = await contentOf(spool, batch)
    const body = bodyOf(content)
    held.hold()
    const settled = spool.settle(batch, { payloads: 'all delivered', requestId: null })
    while (held.waiting() === 0) await clock.advance(0)
    expect(bodyOf(content)).toEqual(body)
    held.release()
    await settled
    expect(() => bodyOf(content)).toThrow()
  })

  test('keeps what was handed out of it, also when it was delivered', async () => {
    const { spool, sealed, overwriteFree } = await openWorld()
    const batch = await sealed('a')
    const payload = (await contentOf(spool, batch)).payload(0)
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
    await overwriteFree()
    expect(payload.toString()).toBe(payloadNamed('a', { padding }).json)
  })

  test('can still be read after a settle that did not deliver all of it', async () => {
    const { spool, publish, sealed, overwriteFree } = await openWorld()
    await publish('a', { padding })
    const batch = await sealed('b')
    expect(batch.payloads).toBe(2)
    const content = await contentOf(spool, batch)
    const failure = { payloadId: 'p', errorType: 'Timeout', errorMessage: 'busy', validationErrorDetails: [] }
    await spool.settle(batch, {
      payloads: [{ kind: 'delivered' }, { kind: 'retry', schedule: 'Timeout', step: 0, failure }],
      requestId: null,
    })
    await overwriteFree()
    const jsonOf = (name: string) => payloadNamed(name, { padding }).json
    expect([0, 1].map((index) => content.payload(index).toString())).toEqual(['a', 'b'].map(jsonOf))
    const retried = (await sealAll(spool)).find(({ role }) => role.kind === 'retry')!
    expect(bodyOf(await contentOf(spool, retried)).toString()).toContain(jsonOf('b'))
  })
})
