// seal.ts: makes a batch: a durable claim on a run of pending payloads at the head of a lane. Owner of
// invariant 4: the claim, with its batchId, range and timestamp, is durable before anybody learns of it, and
// it never changes.
//
// Nothing moves when sealing. Where the run ends inside a chunk, the chunk is cut in the same write, so that
// batches are full and a lowered limit hurts nothing. A crash before the write leaves the payloads pending;
// a crash after it leaves the claim, which recovery hands to delivery first.

import { assert } from '../../std/assert.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { bodyBytes } from './batch-body.ts'
import { newBatch, putClaim } from './claim.ts'
import { eachFrame, splitChunk, type Chunk } from '../chunk-log/chunk-codec.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { setAside } from './damage-quarantine.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import { forgetRefs, learn, type ChunkRef, type Lane } from '../chunk-log/lane.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import type { Batch, SealLimits, BatchOperation } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

/** Read ahead when sealing from the disk: several batches at once, within the bound of the recent chunks. */
const readAheadBytes = 4 * 1024 * 1024

/** Whole chunks, and the one behind them that fits in part. */
type Run = { refs: ChunkRef[]; cut: ChunkRef | null }

/** Seals of one lane go one after the other; those of different lanes share a write. */
export function seal(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  limits: SealLimits,
): Promise<Batch | null> {
  const sealed = lane.sealing.then(() => sealNow(state, committer, lane, limits))
  // The next seal waits for this one, whatever became of it; its caller hears of the failure.
  lane.sealing = sealed.catch(() => undefined)
  return sealed
}

async function sealNow(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  limits: SealLimits,
): Promise<Batch | null> {
  assert(limits.payloadsMax >= 1, 'a batch holds at least one payload')
  assert(limits.operation !== 'single' || limits.payloadsMax === 1, 'the single operation takes one payload')
  let run = chooseRun(lane, limits)
  // More may be had from the disk than the refs in memory show.
  while (run.cut === null && run.refs.length === lane.refs.length && lane.refsEnd < lane.committedSeq) {
    if (!(await refill(state, committer, lane))) break
    run = chooseRun(lane, limits)
  }
  const parts = run.cut === null ? null : await cutRef(state, lane, run.cut, limits, run)
  const refs = parts?.[0] === undefined ? run.refs : [...run.refs, parts[0].ref]
  if (refs.length === 0 && run.cut !== null) {
    // The chunk at the head should be cut and cannot be read. Read again as the head of the lane, it is set aside.
    forgetRefs(lane)
    return sealNow(state, committer, lane, limits)
  }
  if (refs.length === 0) return null
  return claim(state, committer, lane, refs, parts ?? [], limits.operation ?? 'batch')
}

/** From the head of the lane, while they fit. */
function chooseRun(lane: Lane, limits: SealLimits): Run {
  const refs: ChunkRef[] = []
  let payloads = 0
  let bytes = 0
  for (const ref of lane.refs) {
    if (limits.committedUntil !== undefined && ref.committedAt > limits.committedUntil) break
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

/** A chunk in pieces; the first of them belongs to the batch that is being sealed. */
type Cut = { ref: ChunkRef; chunk: Chunk }[]

/**
 * Cuts the chunk behind the run where the batch is full, and what follows where batches of the same limits will be, so that no
 * chunk is written again for each of its batches. Null where not one payload of it fits.
 */
async function cutRef(
  state: SpoolState,
  lane: Lane,
  ref: ChunkRef,
  limits: SealLimits,
  run: Run,
): Promise<Cut | null> {
  const chunk = await chunkOf(state, lane, ref)
  // Damage is dealt with when the chunk stands at the head of the lane and is read again.
  if (chunk === null) return null
  let payloads = run.refs.reduce((sum, { count }) => sum + count, 0)
  let bytes = run.refs.reduce((sum, { bytes }) => sum + bytes, 0)
  let count = 0
  const counts: number[] = []
  eachFrame(chunk, (_attempts, start, end) => {
    const length = end - start
    const full =
      payloads === limits.payloadsMax || bodyBytes(payloads + 1, bytes + length) > limits.bodyBytesMax
    // A payload beyond the limit gets a batch of its own rather than none.
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
    const { count, bytes, startBytes, committedAt } = piece
    const place = { firstSeq, count, bytes, startBytes, committedAt }
    firstSeq += count
    return { ref: place, chunk: piece }
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

async function claim(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  refs: readonly ChunkRef[],
  cut: Cut,
  operation: BatchOperation,
): Promise<Batch> {
  const last = refs[refs.length - 1]!
  const batch = newBatch(state, lane, refs, operation)
  const left = cut.slice(1).map(({ ref }) => ref)
  lane.refs.splice(0, refs.length, ...left)
  lane.sealSeq = batch.endSeq
  lane.sealBytes = last.startBytes + last.bytes
  lane.claims.set(batch.firstSeq, { batch, refs, settling: false })
  await committer.control({
    prepare(ops) {
      putCut(state, lane, cut, ops)
      ops.push(putClaim(batch))
    },
    committed() {},
  })
  return batch
}

function putCut(state: SpoolState, lane: Lane, cut: Cut, ops: StoreOp[]): void {
  for (const { ref, chunk } of cut) {
    ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, ref.firstSeq), value: chunk.value })
    state.recent.put(lane.id, ref.firstSeq, chunk)
  }
}

/** Learns further chunks of a lane from the disk; false when none could be learned. */
export async function refill(state: SpoolState, committer: Committer, lane: Lane): Promise<boolean> {
  const findings = await readRun(state.store, lane.id, {
    fromSeq: lane.refsEnd,
    untilSeq: lane.committedSeq,
    bytesMax: readAheadBytes,
  })
  let learned = false
  for (const finding of findings) {
    if (finding.kind === 'chunk') {
      if (!learn(lane, finding.ref)) break
      state.recent.put(lane.id, finding.ref.firstSeq, finding.chunk)
    } else {
      // A claim must not span what cannot be read: the batch ends here, the damage is set aside once it
      // stands at the head of the lane.
      if (lane.refs.length > 0) break
      await setAside(state, committer, lane, finding)
    }
    learned = true
  }
  return learned
}
