// batch-load.ts: reads what a batch claims, from the recent chunks or from the disk. What cannot be read
// there is set aside, and the claim is replaced by claims on what is left (damage-quarantine.ts).

import { assert } from '../../std/assert.ts'
import type { PayloadId } from '../../domain/ids.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import { eachFrame, type Chunk } from '../chunk-log/chunk-codec.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import type { Session } from '../session-state.ts'
import type { Batch, BatchContent, LoadedBatch } from '../types.ts'
import { bodyBytesOf, writeBody, writePayload } from './batch-body.ts'
import type { Claimed } from './claim.ts'
import { replaceClaim } from './damage-quarantine.ts'

export async function load(session: Session, claimed: Claimed): Promise<LoadedBatch> {
  const loaded = await chunksOf(session, claimed)
  if (loaded.kind === 'replaced') return loaded
  return { kind: 'content', content: contentOf(claimed.claim.batch, loaded.chunks) }
}

type LoadedChunks = { kind: 'chunks'; chunks: readonly Chunk[] } | Extract<LoadedBatch, { kind: 'replaced' }>

/** The chunks of a claim; afterwards its refs are known. */
export async function chunksOf(session: Session, claimed: Claimed): Promise<LoadedChunks> {
  const { lane, claim } = claimed
  const { firstSeq, endSeq } = claim.batch
  const recent = recentChunks(session, claimed)
  if (recent !== null) return { kind: 'chunks', chunks: recent }
  const range = { fromSeq: firstSeq, untilSeq: endSeq, bytesMax: Number.POSITIVE_INFINITY }
  const findings = await readRun(session.store, lane.id, range)
  const intact = findings.filter((finding) => finding.kind === 'chunk')
  if (intact.length < findings.length)
    return { kind: 'replaced', batches: await replaceClaim(session, claimed, findings) }
  claim.refs = intact.map(({ ref }) => ref)
  return { kind: 'chunks', chunks: intact.map(({ chunk }) => chunk) }
}

/** Null if not all of them are in memory. */
function recentChunks({ recent }: Session, { lane, claim }: Claimed): Chunk[] | null {
  if (claim.refs === null) return null
  const chunks: Chunk[] = []
  for (const ref of claim.refs) {
    const chunk = recent.get(lane.id, ref.firstSeq)
    if (chunk === undefined) return null
    chunks.push(chunk)
  }
  return chunks
}

function contentOf(batch: Batch, chunks: readonly Chunk[]): BatchContent {
  let frames: Frames | null = null
  const known = () => (frames ??= framesOf(batch, chunks))
  return {
    bodyBytes: batch.operation === 'single' ? batch.bytes : bodyBytesOf(batch),
    writeBody: (target) =>
      batch.operation === 'single' ? writePayload(target, chunks) : writeBody(target, batch, chunks),
    payloadIds() {
      return known().payloadIds
    },
    attempts() {
      return known().attempts
    },
    payload(index) {
      const place = known().places[index]
      assert(place !== undefined, 'the payload is in the batch')
      return bytesAt(place)
    },
  }
}

/** A part of a sent batch that cannot be read any more. */
export type LostRange = { firstSeq: number; endSeq: number; raw: Buffer | null; what: string }

/** The payloads of a sent batch, as far as they can be read. */
export type SentPayloads = {
  /** Null if it cannot be read. */
  payload(index: number): { json: Buffer; attempts: number; payloadId: PayloadId } | null
  readonly lost: readonly LostRange[]
}

/** Reads a batch that was sent. It was loaded before, but its chunks may be damaged since. */
export async function readToSettle(session: Session, claimed: Claimed): Promise<SentPayloads> {
  const { lane, claim } = claimed
  const { firstSeq, endSeq } = claim.batch
  const recent = recentChunks(session, claimed)
  const range = { fromSeq: firstSeq, untilSeq: endSeq, bytesMax: Number.POSITIVE_INFINITY }
  const findings = recent === null ? await readRun(session.store, lane.id, range) : null
  const lost = findings?.filter((finding) => finding.kind === 'damaged') ?? []
  const chunks = recent ?? findings?.filter((finding) => finding.kind === 'chunk').map(({ chunk }) => chunk)
  const { places, attempts, payloadIds } = framesIn(chunks ?? [])
  return {
    lost,
    payload(index) {
      const seq = firstSeq + index
      let position = index
      for (const range of lost) {
        if (seq >= range.endSeq) position -= range.endSeq - range.firstSeq
        else if (seq >= range.firstSeq) return null
      }
      const place = places[position]
      const payloadId = payloadIds[position]
      assert(place !== undefined && payloadId !== undefined, 'a claim covers whole chunks')
      const json = bytesAt(place)
      return { json, attempts: attempts[position] ?? 0, payloadId }
    },
  }
}

type Frames = {
  payloadIds: PayloadId[]
  attempts: number[]
  places: Place[]
}

type Place = { chunk: Chunk; start: number; end: number }

/** The bytes of a payload themselves and no copy, so the buffer of the chunk is not used again. */
function bytesAt({ chunk, start, end }: Place): Buffer {
  assert(chunk.value.length >= end, 'a batch is not read after its settle')
  chunk.use = 'shared'
  return chunk.value.subarray(start, end)
}

/** The payloads in the chunks; needed only if not all were delivered. */
function framesOf(batch: Batch, chunks: readonly Chunk[]): Frames {
  const frames = framesIn(chunks)
  assert(frames.places.length === batch.payloads, 'a claim covers whole chunks')
  return frames
}

function framesIn(chunks: readonly Chunk[]): Frames {
  const frames: Frames = { payloadIds: [], attempts: [], places: [] }
  for (const chunk of chunks) {
    eachFrame(chunk, (count, start, end) => {
      frames.payloadIds.push(payloadIdIn(chunk.value, start))
      frames.attempts.push(count)
      frames.places.push({ chunk, start, end })
    })
  }
  return frames
}
