// lane.ts: a durable FIFO of the payloads of one provider. Owner of invariant 3: numbers are assigned once,
// ascending, and never again, in whatever order batches settle.
//
//   settled and deleted | claimed by sealed batches | pending, refs known | pending, on disk | numbered
//                       ^ (holes where a later      ^ sealSeq             ^ refsEnd          ^ committedSeq
//                          batch settled first)                                                ... nextSeq
//
// Only the chunks just behind sealSeq are known in memory (`refsMax`), so a backlog of millions costs no
// memory. Sealing reads further ones from the disk when it gets there, starting at the known position: a
// search from the start of the range would cross every tombstone of what was delivered.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { laneKey, seqKey, table } from './key-layout.ts'
import { chunkRecord, finishChunk, type Chunk, type ChunkBuilder } from './chunk-codec.ts'
import {
  laneRecord,
  settledKinds,
  totalsRecord,
  type PayloadSum,
  type SettledKind,
  type TotalsRecord,
} from './record-codec.ts'
import type { Batch } from '../types.ts'
import type { LaneRole, LaneView } from '../views.ts'

export type ChunkRef = {
  firstSeq: number
  count: number
  bytes: number
  startBytes: number
  committedAt: EpochMs
}

export function refOf(firstSeq: number, { count, bytes, startBytes, committedAt }: Chunk): ChunkRef {
  return { firstSeq, count, bytes, startBytes, committedAt }
}

/** A sealed batch in memory; `refs` is null until the range was read after a restart. */
export type Claim = {
  batch: Batch
  refs: readonly ChunkRef[] | null
  /** Its settle or reseal waits to be written. A second one would put payloads in two places. */
  settling: boolean
}

/** What the claims of a lane hold in all; the held ones are part of it. */
export type ClaimSums = {
  payloads: number
  bytes: number
  heldBatches: number
  heldPayloads: number
  heldBytes: number
}

export type Lane = {
  readonly id: LaneId
  /** Changes only where the record of the lane was lost (lane-assignment.ts). */
  provider: ProviderName
  role: LaneRole
  readonly openedAt: EpochMs
  /** Its record is on the disk, or in a write that precedes every later one. */
  recorded: boolean
  /** The next number to assign; nextBytes counts the payload bytes before it. */
  nextSeq: number
  nextBytes: number
  committedSeq: number
  committedBytes: number
  /** First number that no batch claims, and the payload bytes before it. Changed by setHead only. */
  sealSeq: number
  sealBytes: number
  settled: Record<SettledKind, PayloadSum>
  /** Settled numbers from sealSeq on: gaps (chunk-codec.ts), which are settled as damaged. */
  gapPayloads: number
  /** By first number. Changed by lane-claims.ts only, which keeps the sums of `claimed`. */
  claims: Map<number, Claim>
  claimed: ClaimSums
  /** First numbers of what the running write settles: until it is durable, that is not settled. */
  leaving: Set<number>
  refs: ChunkRef[]
  refsEnd: number
  /** Payloads in existing chunks, counted from the chunks themselves: the other side of conservation. */
  openPayloads: number
  /** The walk that recounts this lane, while it runs (open-count.ts). */
  walk: Walk | null
  /** Seals of one lane claim one after the other. */
  sealing: Promise<unknown>
  /** Size of the last chunk: the next one is seldom larger. */
  lastChunkBytes: number
  /** Payloads appended in all, including those of groups without numbers yet. */
  appendedSeq: number
  /** Payload bytes settled since the last compaction, and up to where it went. */
  drainedBytes: number
  compactedSeq: number
}

/** The position of a walk over a lane or shelf, and what it has counted that still exists. */
export type Walk = {
  cursorSeq: number
  payloads: number
  /** Of a shelf only, as all bytes here. */
  bytes: number
  /** Bytes of what was added since the last slice started. */
  addedBytes: number
  /** Deletions ahead of the walk by first number: a slice being read may still show them. */
  deleted: Map<number, { count: number; bytes: number }>
}

/** Bound of the refs in memory, about 1 MiB a lane. */
const refsMax = 16_384

export function newLane(id: LaneId, provider: ProviderName, role: LaneRole, openedAt: EpochMs): Lane {
  return {
    id,
    provider,
    role,
    openedAt,
    recorded: false,
    nextSeq: 0,
    nextBytes: 0,
    committedSeq: 0,
    committedBytes: 0,
    sealSeq: 0,
    sealBytes: 0,
    settled: emptySettled(),
    gapPayloads: 0,
    claims: new Map(),
    claimed: { payloads: 0, bytes: 0, heldBatches: 0, heldPayloads: 0, heldBytes: 0 },
    leaving: new Set(),
    refs: [],
    refsEnd: 0,
    openPayloads: 0,
    walk: null,
    sealing: Promise.resolve(),
    lastChunkBytes: 2048,
    appendedSeq: 0,
    drainedBytes: 0,
    compactedSeq: 0,
  }
}

/** Stands for the provider of a lane whose record is lost. */
export function unknownProvider(id: LaneId): ProviderName {
  return `unknown-lane-${id}` as ProviderName
}

/** Whether the provider of a lane is lost. */
export function isUnknown({ id, provider }: Pick<LaneView, 'id' | 'provider'>): boolean {
  return provider === unknownProvider(id)
}

export function emptySettled(): Record<SettledKind, PayloadSum> {
  const none = () => ({ payloads: 0, bytes: 0 })
  return {
    delivered: none(),
    retried: none(),
    dead: none(),
    requeued: none(),
    damaged: none(),
    unexplained: none(),
  }
}

/** Writes the record of a lane. Only while a write is put together (committer.ts). */
export function putLane(lane: Lane, ops: StoreOp[]): void {
  const { id, provider, role, openedAt } = lane
  lane.recorded = true
  ops.push({
    type: 'put',
    key: laneKey(table.lanes, id),
    value: laneRecord.encode({ provider, role, openedAt }),
  })
}

export type WrittenChunk = { lane: Lane; firstSeq: number; chunk: Chunk }

/** Numbers a new chunk and writes it. Only while a write is put together (committer.ts). */
export function putNewChunk(
  lane: Lane,
  builder: ChunkBuilder,
  committedAt: EpochMs,
  ops: StoreOp[],
): WrittenChunk {
  const firstSeq = lane.nextSeq
  const chunk = finishChunk(builder, committedAt, lane.nextBytes)
  lane.nextSeq += chunk.count
  lane.nextBytes += chunk.bytes
  // Not when it is durable: a retry leaves its old lane at the same time, so the sum never dips.
  lane.openPayloads += chunk.count
  putChunk(lane, firstSeq, chunk, ops)
  return { lane, firstSeq, chunk }
}

export function putChunk(lane: Lane, firstSeq: number, chunk: Chunk, ops: StoreOp[]): void {
  const key = seqKey(table.chunks, lane.id, firstSeq)
  ops.push({ type: 'put', key, value: chunkRecord(key, chunk) })
}

/** A numbered chunk became durable. */
export function chunkCommitted({ lane, firstSeq, chunk }: WrittenChunk): void {
  const ref = refOf(firstSeq, chunk)
  assert(ref.firstSeq === lane.committedSeq, 'chunks of a lane become durable in the order of their numbers')
  lane.committedSeq += ref.count
  lane.committedBytes += ref.bytes
  addRef(lane, ref)
}

/** Appends a ref where it follows the known ones and there is room; returns whether it did. */
export function addRef(lane: Lane, ref: ChunkRef): boolean {
  if (ref.firstSeq !== lane.refsEnd || lane.refs.length >= refsMax) return false
  lane.refs.push(ref)
  lane.refsEnd += ref.count
  return true
}

/** What is pending is read again from the disk. */
export function dropRefs(lane: Lane): void {
  lane.refs = []
  lane.refsEnd = lane.sealSeq
}

/** The write that is being put together deletes a chunk. */
export function chunkDeleted(lane: Lane, firstSeq: number, count: number): void {
  lane.openPayloads -= count
  adjustWalk(lane.walk, firstSeq, count)
}

/** Tells a walk over a lane or shelf of a record that is deleted meanwhile. */
export function adjustWalk(walk: Walk | null, firstSeq: number, count: number, bytes = 0): void {
  if (walk === null) return
  if (firstSeq >= walk.cursorSeq) {
    walk.deleted.set(firstSeq, { count, bytes })
    return
  }
  walk.payloads -= count
  walk.bytes -= bytes
}

/** Counts payloads as settled. `bytes` are those of payloads that can be read: setHead adds the others. */
export function addSettled(lane: Lane, kind: SettledKind, payloads: number, bytes = 0): void {
  lane.settled[kind].payloads += payloads
  lane.settled[kind].bytes += bytes
}

/**
 * Moves the head of a lane to a number, before which the lane has had so many payload bytes. Those that are
 * neither claimed nor settled went with payloads that are damaged or missing.
 */
export function setHead(state: { openBytes: number }, lane: Lane, seq: number, bytes: number): void {
  lane.sealSeq = seq
  lane.sealBytes = bytes
  const lostBytes = bytes - lane.claimed.bytes - settledBytes(lane.settled)
  addSettled(lane, 'damaged', 0, lostBytes)
  state.openBytes -= lostBytes
}

export function settledPayloads(settled: Record<SettledKind, PayloadSum>): number {
  return settledKinds.reduce((sum, kind) => sum + settled[kind].payloads, 0)
}

export function settledBytes(settled: Record<SettledKind, PayloadSum>): number {
  return settledKinds.reduce((sum, kind) => sum + settled[kind].bytes, 0)
}

/** Writes the totals of a lane. Only while a write is put together (committer.ts). */
export function putTotals(lane: Lane, ops: StoreOp[]): void {
  const { id, nextSeq, nextBytes, sealSeq, settled, gapPayloads, provider, role } = lane
  const record: TotalsRecord = { nextSeq, nextBytes, sealSeq, settled, provider, role }
  if (gapPayloads > 0) record.gapPayloads = gapPayloads
  const value = totalsRecord.encode(record)
  ops.push({ type: 'put', key: laneKey(table.totals, id), value })
}

/** Durable payloads that no batch claims. */
export function pendingIn({ committedSeq, sealSeq }: Lane): number {
  return committedSeq - sealSeq
}

/** The first number that the database may still hold. */
export function firstOpenSeq(lane: Lane): number {
  let first = lane.sealSeq
  for (const firstSeq of lane.claims.keys()) if (firstSeq < first) first = firstSeq
  return first
}
