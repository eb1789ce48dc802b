// recent-chunks.ts: chunks that were written or read lately, so that sealing live payloads reads nothing from
// the disk. Entry file of this folder; chunk-buffers.ts says when the buffer of a chunk is used again.
//
// Bound: `bytesMax`. At the bound the oldest chunks leave, and are read from the disk when they are needed
// again.

import type { LaneId } from '../../../domain/ids.ts'
import type { Chunk } from '../chunk-codec.ts'
import type { ChunkBuffers } from './chunk-buffers.ts'

export { createChunkBuffers, type ChunkBufferOptions, type ChunkBuffers } from './chunk-buffers.ts'

export type RecentChunks = {
  /** The chunk is durable, or its bytes are no buffer of chunk-buffers.ts. */
  put(lane: LaneId, firstSeq: number, chunk: Chunk): void
  /** The chunk counts as read from now on. */
  get(lane: LaneId, firstSeq: number): Chunk | undefined
  drop(lane: LaneId, firstSeq: number): void
  /** Removes a chunk whose batch is being settled. */
  take(lane: LaneId, firstSeq: number): Chunk | undefined
  /**
   * The settle of the chunk is durable, and its batch was delivered: nothing reads it any more. A chunk that
   * is `shared` keeps its bytes.
   */
  giveBack(chunk: Chunk): void
  bytes(): number
}

const noBytes = Buffer.alloc(0)

export function createRecentChunks(options: { bytesMax: number }, buffers: ChunkBuffers): RecentChunks {
  // A Map keeps the order of insertion; chunks leave in this order.
  const chunks = new Map<string, Chunk>()
  let bytes = 0
  /** The next chunk to leave. A new iterator would first pass all that were deleted. */
  let hand = chunks.keys()

  function remove(name: string): Chunk | undefined {
    const chunk = chunks.get(name)
    if (chunk === undefined) return undefined
    chunks.delete(name)
    bytes -= bytesOf(chunk)
    return chunk
  }

  function removeOldest(): void {
    const { value: oldest } = hand.next()
    if (oldest === undefined) hand = chunks.keys()
    else leave(remove(oldest))
  }

  /** A batch that has read it may read it again. */
  function leave(chunk: Chunk | undefined): void {
    if (chunk?.use === 'unread') giveBack(chunk)
  }

  function giveBack(chunk: Chunk): void {
    const { buffer } = chunk
    if (buffer === null || chunk.use === 'shared') return
    chunk.buffer = null
    chunk.value = noBytes
    buffers.giveBack(buffer)
  }

  return {
    put(lane, firstSeq, chunk) {
      const name = nameOf(lane, firstSeq)
      const before = remove(name)
      if (before !== chunk) leave(before)
      chunks.set(name, chunk)
      bytes += bytesOf(chunk)
      while (bytes > options.bytesMax && chunks.size > 0) removeOldest()
    },
    get(lane, firstSeq) {
      const chunk = chunks.get(nameOf(lane, firstSeq))
      if (chunk?.use === 'unread') chunk.use = 'read'
      return chunk
    },
    drop: (lane, firstSeq) => leave(remove(nameOf(lane, firstSeq))),
    take: (lane, firstSeq) => remove(nameOf(lane, firstSeq)),
    giveBack,
    bytes: () => bytes,
  }
}

function nameOf(lane: LaneId, firstSeq: number): string {
  return `${lane}:${firstSeq}`
}

/** What it takes in memory. */
function bytesOf({ buffer, value }: Chunk): number {
  return buffer?.length ?? value.length
}
