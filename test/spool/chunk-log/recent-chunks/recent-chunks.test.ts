import { describe, expect, test } from 'vitest'
import { addText, finishChunk, newChunkBuilder } from '../../../../src/spool/chunk-log/chunk-codec.ts'
import type { Chunk } from '../../../../src/spool/chunk-log/chunk-codec.ts'
import {
  createChunkBuffers,
  createRecentChunks,
} from '../../../../src/spool/chunk-log/recent-chunks/recent-chunks.ts'
import type { LaneId } from '../../../../src/domain/ids.ts'
import { collectGarbage } from '../../../support/garbage.ts'

const lane = 1 as LaneId
const noBuffers = createChunkBuffers({ stepBytes: 1024, freeBytesMax: 0 })

/** As one that was read from the disk: with memory of its own. */
function readChunk(bytes: number): Chunk {
  const builder = newChunkBuilder(bytes, null)
  addText(builder, 'x'.repeat(bytes), 0)
  return finishChunk(builder, 1, 0)
}

describe('recent chunks', () => {
  test('that were taken are not kept in memory, however many there are below the bound', async () => {
    const recent = createRecentChunks({ bytesMax: 1024 ** 2 }, noBuffers)
    const taken: WeakRef<Chunk>[] = []
    for (let seq = 0; seq < 5000; seq += 1) {
      const chunk = readChunk(1000)
      taken.push(new WeakRef(chunk))
      recent.put(lane, seq, chunk)
      recent.get(lane, seq)
      if (seq >= 100) recent.take(lane, seq - 100)
    }
    // What a WeakRef was made for is kept until the next turn.
    await new Promise(setImmediate)
    collectGarbage()
    expect(taken.filter((chunk) => chunk.deref() !== undefined)).toHaveLength(100)
    expect(recent.take(lane, 4999)).toBeDefined()
  })
})
