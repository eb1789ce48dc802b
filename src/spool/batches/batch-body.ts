// batch-body.ts: the request body of a batch (ingestion-api.md 2.6): stored payloads joined by commas,
// between a head and a tail that depend on the claim alone. Nothing is parsed or serialised again, so the
// body is the same, byte for byte, at every submission, before and after a crash.

import { assert } from '../../std/assert.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { EpochMs } from '../../std/clock.ts'
import { firstFrame, frameHeadBytes, type Chunk } from '../chunk-log/chunk-codec.ts'

const tail = ']}'

function headOf(batchId: BatchId, timestamp: EpochMs): string {
  return `{"batchId":"${batchId}","timestamp":${timestamp},"data":[`
}

/** A batchId has 36 characters, and an epoch in milliseconds 13 until the year 2286. */
const frameBytes = '{"batchId":"","timestamp":,"data":['.length + 36 + 13 + tail.length

/** Length of a future body in bytes. */
export function bodyBytes(payloads: number, payloadBytes: number): number {
  return frameBytes + payloadBytes + Math.max(0, payloads - 1)
}

type Claimed = { batchId: BatchId; timestamp: EpochMs; payloads: number; bytes: number }

/** Length of the body of a batch that holds at least one payload. */
export function bodyBytesOf({ batchId, timestamp, payloads, bytes }: Claimed): number {
  return headOf(batchId, timestamp).length + bytes + payloads - 1 + tail.length
}

/** Writes the body to the start of `target`; returns where each payload starts in it. */
export function writeBody(
  target: Buffer,
  { batchId, timestamp, payloads }: Claimed,
  chunks: readonly Chunk[],
): Uint32Array {
  const starts = new Uint32Array(payloads)
  let offset = target.write(headOf(batchId, timestamp), 0, 'latin1')
  let index = 0
  for (const { value, count } of chunks) {
    let frame = firstFrame
    for (let left = count; left > 0; left -= 1) {
      const start = frame + frameHeadBytes
      frame = start + value.readUInt32BE(frame + 1)
      starts[index] = offset
      index += 1
      offset += value.copy(target, offset, start, frame)
      target[offset] = 0x2c
      offset += 1
    }
  }
  assert(index === payloads, 'a claim covers whole chunks')
  // The tail overwrites the last comma.
  target.write(tail, offset - 1, 'latin1')
  return starts
}

/** The body of POST /v2/telemetry (ingestion-api.md 4.1): the one payload as it is stored. */
export function writePayload(target: Buffer, chunks: readonly Chunk[]): Uint32Array {
  const [chunk] = chunks
  assert(chunk?.count === 1 && chunks.length === 1, 'the single operation takes one payload')
  chunk.value.copy(target, 0, firstFrame + frameHeadBytes)
  return Uint32Array.of(0)
}
