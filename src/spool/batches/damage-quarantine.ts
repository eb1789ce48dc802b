// damage-quarantine.ts: sets chunks aside that cannot be read: unchanged, under another key. Their range is
// reported and counted as `damaged`, and the lane continues. Deleting the spool is never the cure.

import { assert } from '../../std/assert.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { gapPayloadsMax, gapRecord, readChunk } from '../chunk-log/chunk-codec.ts'
import { readRun, startBytesAt, type Finding } from '../chunk-log/chunk-log.ts'
import { seqKey, seqRange, table } from '../chunk-log/key-layout.ts'
import type { SeqRange } from '../chunk-log/lane-book.ts'
import { addSettled, chunkDeleted, putTotals, setHead, type ChunkRef, type Lane } from '../chunk-log/lane.ts'
import { deleteClaim, setClaim } from '../chunk-log/lane-claims.ts'
import type { Session, SpoolState } from '../session-state.ts'
import type { Batch } from '../types.ts'
import { newClaim, putClaim, type Claimed } from './claim.ts'

/** Of a record that can be read and is damaged. What is missing cannot be set aside. */
export const keptAside = 'the record is set aside in the spool, not deleted'

type Damage = Extract<Finding, { kind: 'damaged' }>

/**
 * Steps over what cannot be read at the head of the pending payloads. Damage is set aside; a gap was counted
 * when it was found.
 */
export async function stepOver(
  session: Session,
  lane: Lane,
  found: Exclude<Finding, { kind: 'chunk' }>,
): Promise<void> {
  const { firstSeq, endSeq } = found
  assert(firstSeq === lane.sealSeq, 'only the head of a lane is stepped over')
  const damages = found.kind === 'damaged' ? [found] : []
  report(session, lane, damages)
  // The chunk behind it shows how many bytes are gone. It is read next.
  const endBytes = await endBytesOf(session, lane, endSeq)
  await session.committer.commit({
    prepare(ops) {
      // Not before: a count between two writes sees the numbers and the totals of the same moment.
      for (const damage of damages) moveToDamaged(lane, damage, ops)
      if (found.kind === 'gap') {
        lane.gapPayloads -= endSeq - firstSeq
        ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, firstSeq) })
      }
      lane.refsEnd = endSeq
      setHead(session, lane, endSeq, endBytes)
      putTotals(lane, ops)
    },
    committed: () => count(session, damages),
  })
}

/**
 * Counts what cannot be read among the pending payloads behind the known ones, and leaves a gap there; at the
 * head of the lane none, since nothing may be left that is sealed, and steps over it. Of a hole that the head
 * has reached, only the rest.
 */
export async function setAsideAhead(session: Session, lane: Lane, hole: SeqRange): Promise<void> {
  const { store, committer } = session
  const setting = lane.sealing.then(async () => {
    // No seal runs, and none begins before this ends.
    const range = { fromSeq: Math.max(hole.firstSeq, lane.refsEnd), untilSeq: hole.endSeq }
    if (range.fromSeq >= range.untilSeq) return
    const found = await readRun(store, lane.id, { ...range, bytesMax: Infinity })
    for (;;) {
      const [first] = found
      const isHead = lane.refs.length === 0 && lane.refsEnd === lane.sealSeq
      if (first === undefined || first.kind === 'chunk' || !isHead || first.firstSeq !== lane.sealSeq) break
      await stepOver(session, lane, first)
      found.shift()
    }
    // The key of a chunk of 0.1.0 is not covered by its checksum: it can be any number away.
    const damages = found
      .filter((finding) => finding.kind === 'damaged')
      .filter(({ firstSeq, endSeq }) => endSeq - firstSeq <= gapPayloadsMax)
    if (damages.length === 0) return
    const startBytes = await endBytesBefore(session, lane, range.fromSeq)
    report(session, lane, damages)
    await committer.commit({
      prepare(ops) {
        for (const damage of damages) {
          const { firstSeq, endSeq } = damage
          const key = seqKey(table.chunks, lane.id, firstSeq)
          moveToDamaged(lane, damage, ops)
          lane.gapPayloads += endSeq - firstSeq
          ops.push({ type: 'put', key, value: gapRecord(key, endSeq - firstSeq, startBytes) })
        }
        putTotals(lane, ops)
      },
      committed: () => count(session, damages),
    })
  })
  lane.sealing = setting.catch(() => undefined)
  await setting
}

/** Payload bytes of the lane up to the end of what precedes a number. */
async function endBytesBefore({ store }: SpoolState, lane: Lane, seq: number): Promise<number> {
  const before = seqRange(table.chunks, lane.id, 0, seq)
  for await (const page of store.pages(before, { reverse: true, limit: 1 }))
    for (const [key, value] of page) {
      const chunk = readChunk(key, value)
      if (chunk !== null) return chunk.startBytes + chunk.bytes
    }
  return lane.sealBytes
}

async function endBytesOf({ store }: SpoolState, lane: Lane, seq: number): Promise<number> {
  if (seq >= lane.committedSeq) return lane.committedBytes
  return (await startBytesAt(store, lane.id, seq)) ?? lane.sealBytes
}

/**
 * Replaces a claim in which damage was found by claims on what is left of it. Their content differs, so they
 * get new batchIds: a batchId never changes its content.
 */
export async function replaceClaim(
  session: Session,
  { lane, claim }: Claimed,
  findings: readonly Finding[],
): Promise<Batch[]> {
  const { batch } = claim
  const claims = intactRuns(findings).map((refs) => newClaim(session, lane, refs))
  const damages = findings.filter((finding) => finding.kind === 'damaged')
  report(session, lane, damages)
  await session.committer.commit({
    prepare(ops) {
      deleteClaim(lane, batch.firstSeq)
      for (const added of claims) setClaim(lane, added)
      ops.push({ type: 'del', key: seqKey(table.batches, lane.id, batch.firstSeq) })
      for (const added of claims) ops.push(putClaim(added.batch))
      for (const damage of damages) moveToDamaged(lane, damage, ops)
      setHead(session, lane, lane.sealSeq, lane.sealBytes)
      putTotals(lane, ops)
    },
    committed: () => count(session, damages),
  })
  return claims.map((added) => added.batch)
}

function intactRuns(findings: readonly Finding[]): ChunkRef[][] {
  const runs: ChunkRef[][] = []
  let open: ChunkRef[] | null = null
  for (const finding of findings) {
    if (finding.kind !== 'chunk') {
      open = null
      continue
    }
    if (open === null) {
      open = []
      runs.push(open)
    }
    open.push(finding.ref)
  }
  return runs
}

function moveToDamaged(lane: Lane, damage: Damage, ops: StoreOp[]): void {
  const { firstSeq, endSeq, raw } = damage
  if (raw !== null) {
    ops.push({ type: 'put', key: seqKey(table.damaged, lane.id, firstSeq), value: raw })
    ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, firstSeq) })
  }
  addSettled(lane, 'damaged', endSeq - firstSeq)
  chunkDeleted(lane, firstSeq, endSeq - firstSeq)
}

/** Before the write: a process that ends behind it would never say what it lost. */
function report({ emit }: SpoolState, lane: Lane, damages: readonly Damage[]): void {
  for (const { firstSeq, endSeq, raw, what } of damages)
    emit({
      kind: 'chunk_damaged',
      lane: lane.id,
      firstSeq,
      payloads: endSeq - firstSeq,
      what: raw === null ? what : `${what}; ${keptAside}`,
    })
}

/** Behind the write: after one that failed they are found again. */
function count({ counters }: SpoolState, damages: readonly Damage[]): void {
  for (const { firstSeq, endSeq } of damages) counters.damaged += endSeq - firstSeq
}
