// seal.ts: makes a batch: a durable claim on a run of pending payloads at the head of a lane. Owner of
// invariant 4: the claim, with its batchId, range and timestamp, is durable before delivery gets the batch,
// and it never changes.
//
// Sealing moves nothing. Where the run ends inside a chunk, the same write cuts the chunk, so that batches
// are full and a lowered limit does no harm. A crash before the write leaves the payloads pending. A crash
// after it leaves the claim, and recovery gives the batch to delivery first.

import { assert } from '../../std/assert.ts'
import { eachFrame, splitChunk, type Chunk } from '../chunk-log/chunk-codec.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import type { WritePart } from '../chunk-log/committer.ts'
import {
  addRef,
  dropRefs,
  pendingIn,
  putChunk,
  refOf,
  setHead,
  type ChunkRef,
  type Lane,
} from '../chunk-log/lane.ts'
import { setClaim } from '../chunk-log/lane-claims.ts'
import type { Session, SpoolState } from '../session-state.ts'
import type { Batch, SealLimits } from '../types.ts'
import { bodyBytes } from './batch-body.ts'
import { newClaim, putClaim } from './claim.ts'
import { stepOver } from './damage-quarantine.ts'

/** Read ahead when sealing from the disk: several batches at once, within the bound of the recent chunks. */
const readAheadBytes = 4 * 1024 * 1024

/** Whole chunks, and the one behind them that fits in part. */
type Run = { refs: ChunkRef[]; cut: ChunkRef | null }

/** `durable` resolves when its claim is on disk. */
type Claimed = { batch: Batch; durable: Promise<void> }

/**
 * Seals of one lane claim one after the other, and share a write: the next one begins when this one has
 * claimed, and its claim is in the same write or a later one. Only after a cut it waits for the write, since
 * the pieces of the chunk are nowhere before.
 */
export async function seal(session: Session, lane: Lane, limits: SealLimits): Promise<Batch | null> {
  const claiming = lane.sealing.then(() => claimNow(session, lane, limits))
  // The next seal waits for this one, also if it fails; its caller gets the failure.
  lane.sealing = claiming.catch(() => undefined)
  const claimed = await claiming
  if (claimed === null) return null
  await claimed.durable
  return claimed.batch
}

async function claimNow(session: Session, lane: Lane, limits: SealLimits): Promise<Claimed | null> {
  assert(limits.payloadsMax >= 1, 'a batch holds at least one payload')
  assert(limits.operation !== 'single' || limits.payloadsMax === 1, 'the single operation takes one payload')
  let run = chooseRun(lane, limits)
  // The disk may hold more than the refs in memory show.
  while (run.cut === null && run.refs.length === lane.refs.length && lane.refsEnd < lane.committedSeq) {
    if (!(await loadRefs(session, lane))) break
    run = chooseRun(lane, limits)
  }
  const pieces = run.cut === null ? null : await cutChunk(session, lane, run.cut, limits, run)
  const refs = pieces?.[0] === undefined ? run.refs : [...run.refs, pieces[0].ref]
  if (refs.length === 0 && run.cut !== null) {
    // The chunk at the head must be cut and cannot be read. Read again as the head of the lane, it is set
    // aside.
    dropRefs(lane)
    return claimNow(session, lane, limits)
  }
  if (refs.length === 0) return null
  const claimed = claim(session, lane, { refs, pieces: pieces ?? [] }, limits)
  if (pieces !== null) await claimed.durable
  await stepOverGaps(session, lane)
  return claimed
}

/** From the head of the lane, while they fit. */
function chooseRun(lane: Lane, limits: SealLimits): Run {
  const refs: ChunkRef[] = []
  let payloads = 0
  let bytes = 0
  for (const ref of lane.refs) {
    if (limits.committedUntil !== undefined && ref.committedAt > limits.committedUntil) break
    if (limits.untilSeq !== undefined && ref.firstSeq >= limits.untilSeq) break
    const fits =
      payloads + ref.count <= limits.payloadsMax &&
      bodyBytes(payloads + ref.count, bytes + ref.bytes) <= limits.bodyBytesMax
    const loneGiant = payloads === 0 && ref.count === 1
    if (!fits && !loneGiant) return { refs, cut: ref }
    refs.push(ref)
    payloads += ref.count
    bytes += ref.bytes
    if (!fits || payloads === limits.payloadsMax) break
  }
  return { refs, cut: null }
}

/** A piece of a chunk. The first piece of a chunk belongs to the batch that is being sealed. */
type Piece = { ref: ChunkRef; chunk: Chunk }

/**
 * Cuts the chunk behind the run where the batch is full, and the rest of it where batches of the same limits
 * will end, so that no chunk is written again for each of its batches. Null if none of its payloads fits.
 */
async function cutChunk(
  state: SpoolState,
  lane: Lane,
  ref: ChunkRef,
  limits: SealLimits,
  run: Run,
): Promise<Piece[] | null> {
  const chunk = await chunkOf(state, lane, ref)
  // Damage is handled when the chunk is at the head of the lane and is read again.
  if (chunk === null) return null
  let payloads = run.refs.reduce((sum, { count }) => sum + count, 0)
  let bytes = run.refs.reduce((sum, { bytes }) => sum + bytes, 0)
  let count = 0
  const counts: number[] = []
  eachFrame(chunk, (_attempts, start, end) => {
    const length = end - start
    const full =
      payloads === limits.payloadsMax || bodyBytes(payloads + 1, bytes + length) > limits.bodyBytesMax
    // A payload above the limit gets a batch of its own.
    if (full && payloads > 0) {
      counts.push(count)
      payloads = 0
      bytes = 0
      count = 0
    }
    payloads += 1
    bytes += length
    count += 1
  })
  if (counts[0] === 0) return null
  assert(counts.length > 0, 'a chunk that fits whole is not cut')
  let { firstSeq } = ref
  return splitChunk(chunk, [...counts, count]).map((piece) => {
    const pieceRef = refOf(firstSeq, piece)
    firstSeq += piece.count
    return { ref: pieceRef, chunk: piece }
  })
}

async function chunkOf(state: SpoolState, lane: Lane, ref: ChunkRef): Promise<Chunk | null> {
  const known = state.recent.get(lane.id, ref.firstSeq)
  if (known !== undefined) return known
  const [found] = await readRun(state.store, lane.id, {
    fromSeq: ref.firstSeq,
    untilSeq: ref.firstSeq + ref.count,
    bytesMax: 1,
  })
  return found?.kind === 'chunk' ? found.chunk : null
}

function claim(
  session: Session,
  lane: Lane,
  { refs, pieces }: { refs: readonly ChunkRef[]; pieces: readonly Piece[] },
  limits: SealLimits,
): Claimed {
  const last = refs[refs.length - 1]!
  const added = newClaim(session, lane, refs, limits)
  const { batch } = added
  const left = pieces.slice(1).map(({ ref }) => ref)
  lane.refs.splice(0, refs.length, ...left)
  setClaim(lane, added)
  setHead(session, lane, batch.endSeq, last.startBytes + last.bytes)
  const part: WritePart = {
    prepare(ops) {
      for (const { ref, chunk } of pieces) {
        putChunk(lane, ref.firstSeq, chunk, ops)
        session.recent.put(lane.id, ref.firstSeq, chunk)
      }
      ops.push(putClaim(batch))
    },
  }
  const isPart = pieces.length === 0 && batch.payloads < limits.payloadsMax && pendingIn(lane) === 0
  return { batch, durable: session.committer.commit(part, isPart ? Infinity : 0) }
}

/** Where only a gap is pending, no seal comes that would step over it. */
export async function stepOverGaps(session: Session, lane: Lane): Promise<void> {
  if (lane.gapPayloads > 0 && lane.refs.length === 0) await loadRefs(session, lane)
}

/**
 * Reads refs of further chunks of a lane from the disk, until they have `bytesMax`, at least one; false if
 * there was nothing to read.
 */
export async function loadRefs(session: Session, lane: Lane, bytesMax = readAheadBytes): Promise<boolean> {
  const range = { fromSeq: lane.refsEnd, untilSeq: lane.committedSeq, bytesMax }
  let loaded = false
  for (const finding of await readRun(session.store, lane.id, range)) {
    if (finding.kind === 'chunk') {
      if (!addRef(lane, finding.ref)) break
      session.recent.put(lane.id, finding.ref.firstSeq, finding.chunk)
    } else {
      // A claim must not span what cannot be read: the batch ends here. The damage is set aside once it is at
      // the head of the lane.
      if (lane.refs.length > 0) break
      await stepOver(session, lane, finding)
    }
    loaded = true
  }
  return loaded
}
