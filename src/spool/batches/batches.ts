// batches.ts: what delivery asks for about batches: their claims are looked up, what is needed of them is loaded, and the
// compactor hears of what has drained.

import { assert } from '../../std/assert.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { Settlement } from '../../domain/settlement.ts'
import type { Committer } from '../chunk-log/committer.ts'
import type { Compactor } from '../chunk-log/compactor.ts'
import type { Claim, Lane } from '../chunk-log/lane.ts'
import { chunksOf, load } from './batch-load.ts'
import { reseal, setClaimOperation } from './reseal.ts'
import { seal } from './seal.ts'
import { settle } from './settle.ts'
import type { Batch, LoadedBatch, Spool } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

export type BatchWork = Pick<Spool, 'seal' | 'load' | 'reseal' | 'setOperation'> & {
  settle(batch: Batch, settlement: Settlement, receipt: Buffer | null): Promise<void>
}

type Deps = { state: SpoolState; committer: Committer; compactor: Compactor }

export function createBatchWork(
  { state, committer, compactor }: Deps,
  options: { receiptBytesMax: number },
): BatchWork {
  return {
    async seal(id, limits) {
      const lane = state.lanes.get(id)
      // A lane that is drained for good may be gone by now.
      return lane === undefined ? null : seal(state, committer, lane, limits)
    },
    load: loadBatch,
    reseal: resealBatch,
    setOperation: async (batch, operation) => setClaimOperation(committer, claimOf(batch), operation),
    settle: settleBatch,
  }

  function laneOf(id: LaneId): Lane {
    const lane = state.lanes.get(id)
    assert(lane !== undefined, `lane ${id} exists`)
    return lane
  }

  function claimOf(batch: Batch): Claim {
    const claim = laneOf(batch.lane).claims.get(batch.firstSeq)
    assert(claim?.batch.batchId === batch.batchId, 'the batch is sealed and not settled yet')
    return claim
  }

  async function loadBatch(batch: Batch): Promise<LoadedBatch> {
    return load(state, committer, laneOf(batch.lane), claimOf(batch))
  }

  async function resealBatch(batch: Batch, counts: readonly number[]): Promise<readonly Batch[]> {
    const lane = laneOf(batch.lane)
    const claim = claimOf(batch)
    assert(!claim.settling, 'a batch that is being settled is not cut')
    assert(
      counts.every((count) => count > 0) && counts.reduce((sum, count) => sum + count, 0) === batch.payloads,
      'the parts of a batch are all of it',
    )
    claim.settling = true
    const loaded = await chunksOf(state, committer, lane, claim)
    if (loaded.kind === 'replaced') return loaded.batches
    return reseal(state, committer, lane, claim, loaded.chunks, counts)
  }

  async function settleBatch(batch: Batch, settlement: Settlement, receipt: Buffer | null): Promise<void> {
    const claim = claimOf(batch)
    assert(!claim.settling, 'a batch is settled once')
    claim.settling = true
    const lane = laneOf(batch.lane)
    let content = null
    if (settlement.payloads !== 'all delivered') {
      const loaded = await loadBatch(batch)
      assert(loaded.kind === 'content', 'a batch that was sent can be read')
      content = loaded.content
    }
    await settle(state, committer, lane, claim, { settlement, content, receipt }, options)
    compactor.consider(lane)
  }
}
