// damage-quarantine.ts: what cannot be read is set aside as it is, its range is reported and counted `damaged`, and the
// lane goes on. The cure is never deleting the spool.

import { assert } from '../../std/assert.ts'
import { newBatch, putClaim } from './claim.ts'
import type { Committer } from '../chunk-log/committer.ts'
import type { Finding } from '../chunk-log/chunk-log.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { laneKey, seqKey, table } from '../chunk-log/key-layout.ts'
import { noteDeleted, tally, totalsOf, type ChunkRef, type Claim, type Lane } from '../chunk-log/lane.ts'
import { totalsRecord } from '../chunk-log/record-codec.ts'
import type { Batch } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

type Damage = Extract<Finding, { kind: 'damaged' }>

/** Sets a damaged range at the head of the pending payloads aside. */
export async function setAside(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  damage: Damage,
): Promise<void> {
  assert(damage.firstSeq === lane.sealSeq, 'only the head of a lane is set aside')
  // How many bytes are gone shows in the chunk behind them; it is read next.
  const endBytes = await startBytesAt(state, lane, damage.endSeq)
  const bytes = Math.max(0, endBytes - lane.sealBytes)
  lane.sealSeq = damage.endSeq
  lane.sealBytes = endBytes
  lane.refsEnd = damage.endSeq
  await committer.control({
    prepare: (ops) => bookDamage(state, lane, damage, bytes, ops),
    committed: () => report(state, lane, damage),
  })
}

async function startBytesAt(state: SpoolState, lane: Lane, seq: number): Promise<number> {
  if (seq >= lane.committedSeq) return lane.committedBytes
  const value = await state.store.get(seqKey(table.chunks, lane.id, seq))
  return value === undefined || value.length < 25 ? lane.sealBytes : value.readDoubleBE(17)
}

/**
 * Replaces a claim in which damage was found by claims on what is left of it. Their content is another, so
 * they get new batchIds (DESIGN: a new batchId only where the content changes).
 */
export async function replaceClaim(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  claim: Claim,
  findings: readonly Finding[],
): Promise<Batch[]> {
  const { batch } = claim
  const claims = intactRuns(findings).map((refs): Claim => ({
    batch: newBatch(state, lane, refs),
    refs,
    settling: false,
  }))
  const damages = findings.filter((finding) => finding.kind === 'damaged')
  const left = claims.reduce((sum, { batch }) => sum + batch.bytes, 0)
  lane.claims.delete(batch.firstSeq)
  for (const claim of claims) lane.claims.set(claim.batch.firstSeq, claim)
  await committer.control({
    prepare(ops) {
      ops.push({ type: 'del', key: seqKey(table.batches, lane.id, batch.firstSeq) })
      for (const claim of claims) ops.push(putClaim(claim.batch))
      let lostBytes = batch.bytes - left
      for (const damage of damages) {
        bookDamage(state, lane, damage, lostBytes, ops)
        lostBytes = 0
      }
    },
    committed: () => damages.forEach((damage) => report(state, lane, damage)),
  })
  return claims.map(({ batch }) => batch)
}

function intactRuns(findings: readonly Finding[]): ChunkRef[][] {
  const runs: ChunkRef[][] = []
  let open: ChunkRef[] | null = null
  for (const finding of findings) {
    if (finding.kind === 'damaged') {
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

function bookDamage(state: SpoolState, lane: Lane, damage: Damage, bytes: number, ops: StoreOp[]): void {
  const payloads = damage.endSeq - damage.firstSeq
  if (damage.raw !== null) {
    ops.push({ type: 'put', key: seqKey(table.damaged, lane.id, damage.firstSeq), value: damage.raw })
    ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, damage.firstSeq) })
  }
  tally(lane, 'damaged', payloads, bytes)
  noteDeleted(lane, damage.firstSeq, payloads)
  state.openBytes -= bytes
  ops.push({ type: 'put', key: laneKey(table.totals, lane.id), value: totalsRecord.encode(totalsOf(lane)) })
}

function report(state: SpoolState, lane: Lane, damage: Damage): void {
  state.counters.damaged += damage.endSeq - damage.firstSeq
  state.emit({
    kind: 'chunk_damaged',
    lane: lane.id,
    firstSeq: damage.firstSeq,
    payloads: damage.endSeq - damage.firstSeq,
    what: damage.what,
  })
}
