// recent-chunks.ts: chunks that were written or read lately, so that sealing live payloads reads nothing from
// the disk.
//
// Bound: `bytesMax`. At the bound the oldest chunks leave, and are read from the disk when they are needed
// again.

import type { LaneId } from '../../domain/ids.ts'
import type { Chunk } from './chunk-codec.ts'

export type RecentChunks = {
  put(lane: LaneId, firstSeq: number, chunk: Chunk): void
  get(lane: LaneId, firstSeq: number): Chunk | undefined
  drop(lane: LaneId, firstSeq: number): void
  bytes(): number
}

export function createRecentChunks(options: { bytesMax: number }): RecentChunks {
  // A Map keeps the order of insertion; chunks leave in this order.
  const chunks = new Map<string, Chunk>()
  let bytes = 0

  function drop(lane: LaneId, firstSeq: number): void {
    const name = nameOf(lane, firstSeq)
    const chunk = chunks.get(name)
    if (chunk === undefined) return
    chunks.delete(name)
    bytes -= chunk.value.length
  }

  return {
    put(lane, firstSeq, chunk) {
      drop(lane, firstSeq)
      chunks.set(nameOf(lane, firstSeq), chunk)
      bytes += chunk.value.length
      for (const [name, oldest] of chunks) {
        if (bytes <= options.bytesMax) break
        chunks.delete(name)
        bytes -= oldest.value.length
      }
    },
    get: (lane, firstSeq) => chunks.get(nameOf(lane, firstSeq)),
    drop,
    bytes: () => bytes,
  }
}

function nameOf(lane: LaneId, firstSeq: number): string {
  return `${lane}:${firstSeq}`
}
