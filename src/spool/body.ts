// body.ts: the request body of a batch (ingestion-api.md 2.6): stored payloads joined by commas between a
// head and a tail that depend on the claim alone. Nothing is parsed or serialised again, so the body is the
// same, byte for byte, at every submission, before and after a crash.

import type { BatchId } from '../domain/ids.ts'
import type { EpochMs } from '../std/clock.ts'
import { eachFrame, type Chunk } from './chunk.ts'

const tail = ']}'

function headOf(batchId: BatchId, timestamp: EpochMs): string {
  return `{"batchId":"${batchId}","timestamp":${timestamp},"data":[`
}

/** A batchId has 36 characters, and an epoch in milliseconds 13 until the year 2286. */
const frameBytes = '{"batchId":"","timestamp":,"data":['.length + 36 + 13 + tail.length

/** Length of a body in bytes. */
export function bodyBytes(payloads: number, payloadBytes: number): number {
  return frameBytes + payloadBytes + Math.max(0, payloads - 1)
}

export function buildBody(batchId: BatchId, timestamp: EpochMs, chunks: readonly Chunk[]): Buffer {
  const head = headOf(batchId, timestamp)
  let size = head.length + tail.length
  for (const chunk of chunks) size += chunk.bytes + chunk.count
  const body = Buffer.allocUnsafe(size)
  let offset = body.write(head, 0, 'latin1')
  for (const chunk of chunks) {
    eachFrame(chunk, (_attempts, start, end) => {
      offset += chunk.value.copy(body, offset, start, end)
      body[offset] = 0x2c
      offset += 1
    })
  }
  // The tail takes the place of the last comma.
  offset += body.write(tail, offset - 1, 'latin1') - 1
  return body.subarray(0, offset)
}
