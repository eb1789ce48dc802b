// chunk-buffers.ts: the buffers of chunks, used again. At full load they are 30 MB a second. New
// memory each time is slow, and V8 collects the whole heap more often.
//
//   take -> builder (group.ts) -> write -> recent chunk -+-> read for a batch -> its settle is durable -+
//     ^                                                  '-> leaves the recent chunks, never read ------+
//     '-------------------------------------------- give back ------------------------------------------'
//
// A buffer is given back only when no code can still read it:
//
//   the builder        is not used after its chunk is finished (chunk-codec.ts)
//   the database       copies what it writes; and a chunk is recent only once its own write is durable
//   a seal that cuts   copies the pieces; the chunk is `read`, so its buffer is left to the garbage collector
//   a body             is copied into memory that goes to the sender thread
//   a batch            reads its chunks until it is settled (batch-load.ts): a chunk that one batch has read
//                      is given back when the settle of that batch is durable, and all of it was delivered
//   slices             payloads that are handed out mark their chunk as `shared`; it is never given back
//
// The chunk loses its bytes with its buffer, so a read that comes too late fails and finds no other payloads.
//
// Bound: `freeBytesMax` wait for their next use. At the bound a buffer is left to the garbage collector.

import { assert } from '../../../std/assert.ts'

export type ChunkBuffers = {
  /** At least so large; small ones are not from here. */
  take(bytes: number): Buffer
  /** `buffer` must be from `take`, and is not read or written afterwards. A small one is ignored. */
  giveBack(buffer: Buffer): void
  /** Bytes that wait for their next use. */
  freeBytes(): number
}

export type ChunkBufferOptions = {
  /** Sizes are multiples of it, and up to it of a quarter of it. Node has smaller ones from its own slab. */
  stepBytes: number
  freeBytesMax: number
}

/** Larger ones are rare: a payload above the limit of a batch. */
const stepsMax = 128
/** Steps up to `stepBytes`, for the chunks of a few messages. */
const smallSteps = 4
/** From there on four steps are one, so that the next chunk, which is of about the same size, fits too. */
const fineSteps = 4

export function createChunkBuffers({ stepBytes, freeBytesMax }: ChunkBufferOptions): ChunkBuffers {
  /** By their size. */
  const free = new Map<number, Buffer[]>()
  let freeBytes = 0

  return {
    take(bytes) {
      if (bytes * smallSteps < stepBytes || bytes > stepsMax * stepBytes) return Buffer.allocUnsafe(bytes)
      const size = sizeFor(bytes)
      const found = free.get(size)?.pop()
      if (found === undefined) return Buffer.allocUnsafeSlow(size)
      freeBytes -= size
      return found
    },
    giveBack(buffer) {
      const size = buffer.length
      if (size * smallSteps < stepBytes || size > stepsMax * stepBytes) return
      assert(size === sizeFor(size) && buffer.buffer.byteLength === size, 'the buffer is from take()')
      if (freeBytes + size > freeBytesMax) dropOthers(size)
      if (freeBytes + size > freeBytesMax) return
      let list = free.get(size)
      if (list === undefined) {
        list = []
        free.set(size, list)
      }
      list.push(buffer)
      freeBytes += size
    },
    freeBytes: () => freeBytes,
  }

  /** The load has changed: buffers of other sizes may never be used again. */
  function dropOthers(size: number): void {
    const list = free.get(size) ?? []
    free.clear()
    free.set(size, list)
    freeBytes = list.length * size
  }

  function sizeFor(bytes: number): number {
    return Math.ceil(bytes / stepFor(bytes)) * stepFor(bytes)
  }

  function stepFor(bytes: number): number {
    if (bytes <= stepBytes) return stepBytes / smallSteps
    return bytes <= fineSteps * stepBytes ? stepBytes : fineSteps * stepBytes
  }
}
