// batch-load.ts: reads what a batch claims: from the recent chunks, else from the disk. What cannot be read there is set aside, and
// the claim is replaced by claims on what is left (damage-quarantine.ts).

import { assert } from '../../std/assert.ts'
import type { PayloadId } from '../../domain/ids.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import { bodyBytesOf, writeBody, writePayload } from './batch-body.ts'
import { eachFrame, type Chunk } from '../chunk-log/chunk-codec.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { replaceClaim } from './damage-quarantine.ts'
import type { ChunkRef, Claim, Lane } from '../chunk-log/lane.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import type { Batch, BatchContent, LoadedBatch } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

export async function load(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  claim: Claim,
): Promise<LoadedBatch> {
  const found = await chunksOf(state, committer, lane, claim)
  return found.kind === 'replaced'
    ? found
    : { kind: 'content', content: contentOf(claim.batch, found.chunks) }
}

type Loaded = { kind: 'chunks'; chunks: readonly Chunk[] } | Extract<LoadedBatch, { kind: 'replaced' }>

/** The chunks that a claim covers; its refs are known afterwards. */
export async function chunksOf(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  claim: Claim,
): Promise<Loaded> {
  const { batch } = claim
  const known = knownChunks(state, lane, claim)
  if (known !== null) return { kind: 'chunks', chunks: known }
  const findings = await readRun(state.store, lane.id, {
    fromSeq: batch.firstSeq,
    untilSeq: batch.endSeq,
    bytesMax: Number.POSITIVE_INFINITY,
  })
  if (findings.some(({ kind }) => kind === 'damaged')) {
    const batches = await replaceClaim(state, committer, lane, claim, findings)
    return { kind: 'replaced', batches }
  }
  const refs: ChunkRef[] = []
  const chunks: Chunk[] = []
  for (const finding of findings) {
    if (finding.kind !== 'chunk') continue
    refs.push(finding.ref)
    chunks.push(finding.chunk)
  }
  claim.refs = refs
  return { kind: 'chunks', chunks }
}

function knownChunks(state: SpoolState, lane: Lane, claim: Claim): Chunk[] | null {
  if (claim.refs === null) return null
  const chunks: Chunk[] = []
  for (const ref of claim.refs) {
    const chunk = state.recent.get(lane.id, ref.firstSeq)
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
    get payloadIds() {
      return known().payloadIds
    },
    get attempts() {
      return known().attempts
    },
    payload(index) {
      const place = known().places[index]
      assert(place !== undefined, 'the payload is in the batch')
      return place.value.subarray(place.start, place.end)
    },
  }
}

type Frames = {
  payloadIds: PayloadId[]
  attempts: number[]
  places: { value: Buffer; start: number; end: number }[]
}

/** What is in the chunks, payload by payload: needed only where not all were delivered. */
function framesOf(batch: Batch, chunks: readonly Chunk[]): Frames {
  const frames: Frames = { payloadIds: [], attempts: [], places: [] }
  for (const chunk of chunks) {
    eachFrame(chunk, (count, start, end) => {
      frames.payloadIds.push(payloadIdIn(chunk.value, start))
      frames.attempts.push(count)
      frames.places.push({ value: chunk.value, start, end })
    })
  }
  assert(frames.places.length === batch.payloads, 'a claim covers whole chunks')
  return frames
}
