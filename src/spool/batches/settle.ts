// settle.ts: carries out what became of a batch. Owner of invariant 5: each payload is in exactly one place.
//
// A settle is one atomic write: a delete for each chunk, the claim, the retries as new chunks in their retry
// lanes, the dead letters, the totals, the receipt. A crash before it leaves the sealed batch, which goes again under the
// same batchId; a crash after it leaves nothing to do.

import { assert, assertNever } from '../../std/assert.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { PayloadId, ProviderName } from '../../domain/ids.ts'
import type { PayloadSettlement, Settlement } from '../../domain/settlement.ts'
import type { StoreOp } from '../../storage/storage.ts'
import {
  addBytes,
  finishChunk,
  newChunkBuilder,
  type Chunk,
  type ChunkBuilder,
} from '../chunk-log/chunk-codec.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { laneKey, seqKey, table } from '../chunk-log/key-layout.ts'
import {
  noteCommitted,
  noteDeleted,
  number,
  putLane,
  tally,
  totalsOf,
  type Claim,
  type Lane,
} from '../chunk-log/lane.ts'
import { buryAll } from '../kept/dead-letter-table.ts'
import { putReceipt } from '../chunk-log/receipt-queue.ts'
import { letterRecord, totalsRecord } from '../chunk-log/record-codec.ts'
import type { Batch, BatchContent } from '../spool.ts'
import { findRetryLane, openLane, type SpoolState } from '../session-state.ts'

type Retry = { schedule: string; step: number; builder: ChunkBuilder }

type Plan = {
  delivered: Sum
  retried: Sum
  dead: Sum
  retries: Retry[]
  letters: Buffer[]
}

const fateKinds = ['delivered', 'retried', 'dead'] as const

type Sum = { payloads: number; bytes: number }

/** Resolves after the fsync. `content` is needed only where a payload was not delivered. */
export function settle(
  state: SpoolState,
  committer: Committer,
  lane: Lane,
  claim: Claim,
  what: { settlement: Settlement; content: BatchContent | null; receipt: Buffer | null },
  options: { receiptBytesMax: number },
): Promise<void> {
  const { batch, refs } = claim
  const { settlement, content, receipt } = what
  assert(refs !== null, 'a batch is loaded before it is settled')
  const plan = planFor(state, batch, settlement, content)
  const moved: { lane: Lane; firstSeq: number; chunk: Chunk }[] = []
  return committer.control({
    prepare(ops) {
      for (const ref of refs) {
        ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, ref.firstSeq) })
        noteDeleted(lane, ref.firstSeq, ref.count)
        state.recent.drop(lane.id, ref.firstSeq)
      }
      ops.push({ type: 'del', key: seqKey(table.batches, lane.id, batch.firstSeq) })
      lane.claims.delete(batch.firstSeq)
      for (const retry of plan.retries) moved.push(putRetry(state, batch.provider, retry, ops))
      buryAll(state, state.clock.now(), plan.letters, ops)
      book(state, lane, batch, plan)
      if (receipt !== null && !putReceipt(state.receipts, receipt, options, ops))
        state.counters.receiptsDropped += 1
      ops.push({
        type: 'put',
        key: laneKey(table.totals, lane.id),
        value: totalsRecord.encode(totalsOf(lane)),
      })
    },
    committed() {
      for (const kind of fateKinds) state.counters[kind] += plan[kind].payloads
      for (const { lane, firstSeq, chunk } of moved) {
        const { count, bytes, startBytes, committedAt } = chunk
        noteCommitted(lane, { firstSeq, count, bytes, startBytes, committedAt })
      }
    },
  })
}

function planFor(
  state: SpoolState,
  batch: Batch,
  settlement: Settlement,
  content: BatchContent | null,
): Plan {
  const plan: Plan = {
    delivered: { payloads: 0, bytes: 0 },
    retried: { payloads: 0, bytes: 0 },
    dead: { payloads: 0, bytes: 0 },
    retries: [],
    letters: [],
  }
  const { payloads: fates } = settlement
  if (fates === 'all delivered') {
    plan.delivered = { payloads: batch.payloads, bytes: batch.bytes }
    return plan
  }
  assert(content !== null && fates.length === batch.payloads, 'each payload of a batch has one fate')
  fates.forEach((fate, index) => {
    const json = content.payload(index)
    const sum = plan[fate.kind === 'retry' ? 'retried' : fate.kind]
    sum.payloads += 1
    sum.bytes += json.length
    switch (fate.kind) {
      case 'delivered':
        return
      case 'retry': {
        const { builder } = retryFor(plan, fate)
        addBytes(builder, json, (content.attempts[index] ?? 0) + 1)
        return
      }
      case 'dead': {
        const letter = letterOf(
          state,
          batch,
          fate,
          json,
          settlement.requestId,
          content.payloadIds[index] ?? null,
        )
        plan.letters.push(letterRecord.encode(letter))
        return
      }
      default:
        assertNever(fate)
    }
  })
  return plan
}

function retryFor(plan: Plan, fate: Extract<PayloadSettlement, { kind: 'retry' }>): Retry {
  const { schedule, step } = fate
  const known = plan.retries.find((retry) => retry.schedule === schedule && retry.step === step)
  if (known !== undefined) return known
  const retry = { schedule, step, builder: newChunkBuilder(4096) }
  plan.retries.push(retry)
  return retry
}

function putRetry(state: SpoolState, provider: ProviderName, retry: Retry, ops: StoreOp[]) {
  const { schedule, step, builder } = retry
  let lane = findRetryLane(state, provider, schedule, step)
  if (lane === null) {
    lane = openLane(state, provider, { kind: 'retry', schedule, step })
    putLane(lane, ops)
  }
  const { firstSeq, startBytes } = number(lane, builder.count, builder.bytes)
  const chunk = finishChunk(builder, state.clock.now(), startBytes)
  ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, firstSeq), value: chunk.value })
  state.openBytes += chunk.bytes
  return { lane, firstSeq, chunk }
}

function book(state: SpoolState, lane: Lane, batch: Batch, plan: Plan): void {
  for (const kind of fateKinds) {
    const { payloads, bytes } = plan[kind]
    tally(lane, kind, payloads, bytes)
  }
  state.openBytes -= batch.bytes
  lane.drainedBytes += batch.bytes
}

function letterOf(
  state: SpoolState,
  batch: Batch,
  fate: Extract<PayloadSettlement, { kind: 'dead' }>,
  json: Buffer,
  requestId: string | null,
  payloadId: PayloadId | null,
): DeadLetter {
  const payload: unknown = JSON.parse(json.toString('utf8'))
  return {
    stage: 'delivery',
    at: state.clock.now(),
    reason: fate.reason,
    detail: fate.detail,
    provider: batch.provider,
    device: deviceIn(payload),
    envelope: null,
    payload,
    payloadId,
    batchId: batch.batchId,
    requestId,
    failure: fate.failure,
  }
}

function deviceIn(payload: unknown): string | null {
  for (const name of ['deviceIdentifier', 'assetIdentifier']) {
    const identifier = memberOf(payload, name)
    const id = memberOf(identifier, 'id')
    if (typeof id === 'string') return id
  }
  return null
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}
