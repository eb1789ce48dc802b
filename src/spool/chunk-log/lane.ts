// lane.ts: a durable FIFO of the payloads of one provider. Owner of invariant 3: numbers are given once,
// ascending, and never again, whatever settled first.
//
//   settled and deleted | claimed by sealed batches | pending, refs known | pending, on disk | numbered
//                       ^ (holes where a later      ^ sealSeq             ^ refsEnd          ^ committedSeq
//                          batch settled first)                                                ... nextSeq
//
// Only the chunks just behind sealSeq are known in memory (`refsMax`), so a backlog of millions costs no
// memory; further ones are read from the disk when sealing gets there, from the known place on: a search
// from the start of the range would cross every tombstone of what was delivered.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { laneKey, table } from './key-layout.ts'
import { laneRecord, settledKinds, type SettledKind, type Tally, type TotalsRecord } from './record-codec.ts'
import type { Batch, LaneView, LaneRole } from '../spool.ts'

export type ChunkRef = {
  firstSeq: number
  count: number
  bytes: number
  startBytes: number
  committedAt: EpochMs
}

/** A sealed batch in memory; `refs` is null until the range was read after a restart. */
export type Claim = {
  batch: Batch
  refs: readonly ChunkRef[] | null
  /** Its settle or reseal waits to be written: a second one would put payloads in two places. */
  settling: boolean
}

export type Lane = {
  readonly id: LaneId
  readonly provider: ProviderName
  role: LaneRole
  readonly openedAt: EpochMs
  /** Its record is on the disk, or in a write that stands before every later one. */
  recorded: boolean
  /** The next number to give; nextBytes counts the payload bytes before it. */
  nextSeq: number
  nextBytes: number
  committedSeq: number
  committedBytes: number
  /** First number that no batch claims. */
  sealSeq: number
  sealBytes: number
  settled: Record<SettledKind, Tally>
  claims: Map<number, Claim>
  refs: ChunkRef[]
  refsEnd: number
  /** Payloads in chunks that exist, counted by the chunks themselves: the other side of conservation. */
  openPayloads: number
  /** The walk that counts this lane anew, while it goes on (open-count.ts). */
  walk: Walk | null
  /** Seals of one lane go one after the other. */
  sealing: Promise<unknown>
  /** Size of the last chunk that was built: the next one will hardly be larger. */
  lastChunkBytes: number
  /** Payloads appended in all, those of groups that have no numbers yet included. */
  appendedSeq: number
  /** Payload bytes settled since the disk was last given back, and up to where it was. */
  drainedBytes: number
  compactedSeq: number
}

/** How far a walk over a lane or shelf has come, and what it has counted that still stands there. */
export type Walk = {
  cursorSeq: number
  payloads: number
  /** What was deleted ahead of the walk, payloads by first number: a slice that is being read may still show it. */
  deleted: Map<number, number>
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
    claims: new Map(),
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

export function emptySettled(): Record<SettledKind, Tally> {
  const tally = () => ({ payloads: 0, bytes: 0 })
  return {
    delivered: tally(),
    retried: tally(),
    dead: tally(),
    requeued: tally(),
    damaged: tally(),
    unexplained: tally(),
  }
}

/** Writes who owns the lane and what it is for. Only while a write is put together (committer.ts). */
export function putLane(lane: Lane, ops: StoreOp[]): void {
  const { id, provider, role, openedAt } = lane
  lane.recorded = true
  ops.push({
    type: 'put',
    key: laneKey(table.lanes, id),
    value: laneRecord.encode({ provider, role, openedAt }),
  })
}

/** Gives numbers to a chunk. Only while a write is put together (committer.ts). */
export function number(lane: Lane, count: number, bytes: number): { firstSeq: number; startBytes: number } {
  const place = { firstSeq: lane.nextSeq, startBytes: lane.nextBytes }
  lane.nextSeq += count
  lane.nextBytes += bytes
  // Here and not when it is durable: a retry leaves its old lane in the same moment, so the sum never dips.
  lane.openPayloads += count
  return place
}

/** A numbered chunk became durable. */
export function noteCommitted(lane: Lane, ref: ChunkRef): void {
  assert(ref.firstSeq === lane.committedSeq, 'chunks of a lane become durable in the order of their numbers')
  lane.committedSeq += ref.count
  lane.committedBytes += ref.bytes
  learn(lane, ref)
}

/** Appends a ref where it follows the known ones and there is room; returns whether it did. */
export function learn(lane: Lane, ref: ChunkRef): boolean {
  if (ref.firstSeq !== lane.refsEnd || lane.refs.length >= refsMax) return false
  lane.refs.push(ref)
  lane.refsEnd += ref.count
  return true
}

/** What is pending is learned anew from the disk. */
export function forgetRefs(lane: Lane): void {
  lane.refs = []
  lane.refsEnd = lane.sealSeq
}

/** A chunk leaves the lane with the write that is being put together. */
export function noteDeleted(lane: Lane, firstSeq: number, count: number): void {
  lane.openPayloads -= count
  noteGone(lane.walk, firstSeq, count)
}

/** A record leaves the lane or shelf that is being walked over. */
export function noteGone(walk: Walk | null, firstSeq: number, count: number): void {
  if (walk === null) return
  if (firstSeq < walk.cursorSeq) walk.payloads -= count
  else walk.deleted.set(firstSeq, count)
}

/** Counts payloads as settled. `bytes` are payload bytes. */
export function tally(lane: Lane, kind: SettledKind, payloads: number, bytes: number): void {
  lane.settled[kind].payloads += payloads
  lane.settled[kind].bytes += bytes
}

export function settledPayloads(settled: Record<SettledKind, Tally>): number {
  return settledKinds.reduce((sum, kind) => sum + settled[kind].payloads, 0)
}

export function settledBytes(settled: Record<SettledKind, Tally>): number {
  return settledKinds.reduce((sum, kind) => sum + settled[kind].bytes, 0)
}

export function totalsOf(lane: Lane): TotalsRecord {
  const { nextSeq, nextBytes, sealSeq, settled } = lane
  return { nextSeq, nextBytes, sealSeq, settled }
}

/** The first number that may still stand in the database. */
export function firstOpenSeq(lane: Lane): number {
  let first = lane.sealSeq
  for (const firstSeq of lane.claims.keys()) if (firstSeq < first) first = firstSeq
  return first
}

export function viewOf(lane: Lane): LaneView {
  let sealed = 0
  let sealedBytes = 0
  for (const { batch } of lane.claims.values()) {
    sealed += batch.payloads
    sealedBytes += batch.bytes
  }
  return {
    id: lane.id,
    provider: lane.provider,
    role: lane.role,
    openedAt: lane.openedAt,
    pending: lane.committedSeq - lane.sealSeq,
    pendingBytes: lane.committedBytes - lane.sealBytes,
    sealed,
    sealedBytes,
    oldestAt: lane.refs[0]?.committedAt ?? null,
    appended: lane.nextSeq,
    settled: settledPayloads(lane.settled),
    open: lane.openPayloads,
  }
}
