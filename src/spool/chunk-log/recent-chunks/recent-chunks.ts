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

/** In the order in which they were put. */
type Entry = { name: string; chunk: Chunk; older: Entry | null; newer: Entry | null }

export function createRecentChunks(options: { bytesMax: number }, buffers: ChunkBuffers): RecentChunks {
  // A Map has an order too, but its iterator, kept from one removal to the next, keeps all that was ever in
  // the Map; and a new one each time passes all that was removed.
  const entries = new Map<string, Entry>()
  let oldest: Entry | null = null
  let newest: Entry | null = null
  let bytes = 0

  function add(name: string, chunk: Chunk): void {
    const entry: Entry = { name, chunk, older: newest, newer: null }
    if (newest === null) oldest = entry
    else newest.newer = entry
    newest = entry
    entries.set(name, entry)
    bytes += bytesOf(chunk)
  }

  function remove(name: string): Chunk | undefined {
    const entry = entries.get(name)
    if (entry === undefined) return undefined
    const { chunk, older, newer } = entry
    if (older === null) oldest = newer
    else older.newer = newer
    if (newer === null) newest = older
    else newer.older = older
    // An old object that is garbage keeps young ones until all of the heap is collected.
    entry.older = entry.newer = null
    entries.delete(name)
    bytes -= bytesOf(chunk)
    return chunk
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
      add(name, chunk)
      while (bytes > options.bytesMax && oldest !== null) leave(remove(oldest.name))
    },
    get(lane, firstSeq) {
      const chunk = entries.get(nameOf(lane, firstSeq))?.chunk
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
