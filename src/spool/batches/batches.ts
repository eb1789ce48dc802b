// batches.ts: the life of a batch, as delivery calls for it. Entry file of this folder.
//
//   pending --seal--> sealed --settle--> delivered, in a retry lane, dead, or returned to its source
//      |              |    ^
//      |              '----' reseal: other batches over the same payloads; setOperation, setHeld
//      '--returnPending--> returned (returned-payloads.ts)
//
// A batch is a claim on a run of chunks (claim.ts): its batchId, its range and its timestamp. Sealing writes
// the claim, settling deletes the claim and its chunks; payloads are not moved. Each of these is one atomic
// write, durable when its promise resolves (seal.ts, settle.ts, reseal.ts). The request body follows from
// claim and chunks alone, so it has the same bytes at every submission, also after a crash (batch-body.ts).
//
// Where a chunk cannot be read, it is set aside and counted, and the claim is replaced by claims on what is
// left, with new batchIds (batch-load.ts, damage-quarantine.ts). Damage that is found after the batch was
// sent does not change what was answered: what was delivered is settled as delivered, and the rest of what
// cannot be read is counted as damaged.

import { assert } from '../../std/assert.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { HeldKeys } from '../chunk-log/dedup-window.ts'
import type { Claim, Lane } from '../chunk-log/lane.ts'
import { rotate } from '../chunk-log/lane-rotation.ts'
import type { ReturnCalls } from '../return-calls.ts'
import type { OpenSession, Session } from '../session-state.ts'
import type { Batch, BatchCalls } from '../types.ts'
import { chunksOf, load, readToSettle } from './batch-load.ts'
import { reseal, setClaimHeld, setClaimOperation, type ResealParts } from './reseal.ts'
import { readPending, returnPending } from './returned-payloads.ts'
import { seal } from './seal.ts'
import { settle } from './settle.ts'

export function createBatchCalls({ run }: OpenSession): BatchCalls {
  return {
    seal: (id, limits) =>
      run(async (session) => {
        const lane = session.lanes.get(id)
        // A drained lane may be deleted by now.
        return lane === undefined ? null : seal(session, lane, limits)
      }),
    load: (batch) => run(async (session) => load(session, claimedBy(session, batch))),
    rotate: (provider) => run((session) => rotate(session, provider)),
    reseal: (batch, counts, options = {}) =>
      run((session) => resealBatch(session, batch, { ...options, counts })),
    setOperation: (batch, operation) =>
      run(async (session) => setClaimOperation(session, claimedBy(session, batch), operation)),
    setHeld: (batch, held) => run(async (session) => setClaimHeld(session, claimedBy(session, batch), held)),
    settle: (batch, settlement, receipt = null) =>
      run(async (session) => {
        const claimed = claimedBy(session, batch)
        assert(!claimed.claim.settling, 'a batch is settled once')
        claimed.claim.settling = true
        const content = settlement.payloads === 'all delivered' ? null : await readToSettle(session, claimed)
        await settle(session, claimed, { settlement, content, receipt })
        session.compactor.afterSettle(claimed.lane)
      }),
  }
}

export function createReturnCalls({ run, peek }: OpenSession, heldKeys: HeldKeys): ReturnCalls {
  return {
    holdKeys: (from) => void (heldKeys.from = from),
    committedKeys: () => peek()?.committedWindowRecord ?? 0,
    readPending: (id, limits) =>
      run(async (session) => {
        const lane = session.lanes.get(id)
        return lane === undefined ? null : readPending(session, lane, limits)
      }),
    returnPending: (range, receipt) => run((session) => returnPending(session, range, receipt)),
  }
}

async function resealBatch(session: Session, batch: Batch, parts: ResealParts): Promise<readonly Batch[]> {
  const { counts } = parts
  const claimed = claimedBy(session, batch)
  assert(!claimed.claim.settling, 'a batch that is being settled is not resealed')
  assert(
    counts.every((count) => count > 0) && counts.reduce((sum, count) => sum + count, 0) === batch.payloads,
    'the parts of a batch add up to it',
  )
  claimed.claim.settling = true
  const loaded = await chunksOf(session, claimed)
  return loaded.kind === 'replaced' ? loaded.batches : reseal(session, claimed, loaded.chunks, parts)
}

function claimedBy(session: Session, batch: Batch): { lane: Lane; claim: Claim } {
  const lane = laneOf(session, batch.lane)
  const claim = lane.claims.get(batch.firstSeq)
  assert(claim?.batch.batchId === batch.batchId, 'the batch is sealed and not settled yet')
  return { lane, claim }
}

function laneOf(session: Session, id: LaneId): Lane {
  const lane = session.lanes.get(id)
  assert(lane !== undefined, `lane ${id} exists`)
  return lane
}
