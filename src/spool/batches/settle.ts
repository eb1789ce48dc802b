// settle.ts: carries out a settlement. Owner of invariant 5: each payload is in exactly one place.
// returned-payloads.ts does the same for payloads in no batch.
//
// A settle is one atomic write. It deletes the claim and its chunks, and adds the retries as new chunks of
// their retry lanes, the dead letters, the totals and the receipt. A crash before the write leaves the sealed
// batch, which is sent again under the same batchId. A crash after it leaves nothing to do.

import { assert, assertNever } from '../../std/assert.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { PayloadId, ProviderName } from '../../domain/ids.ts'
import {
  attemptsIn,
  type LaneRole,
  type PayloadSettlement,
  type Settlement,
} from '../../domain/settlement.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { addBytes, newChunkBuilder, type Chunk, type ChunkBuilder } from '../chunk-log/chunk-codec.ts'
import type { WritePart } from '../chunk-log/committer.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import {
  addSettled,
  chunkCommitted,
  chunkDeleted,
  pendingIn,
  putLane,
  putNewChunk,
  putTotals,
  type WrittenChunk,
} from '../chunk-log/lane.ts'
import { deleteClaim } from '../chunk-log/lane-claims.ts'
import { putReceipt, receiptsCommitted } from '../chunk-log/receipt-queue.ts'
import type { PayloadSum } from '../chunk-log/record-codec.ts'
import { newDeadLetter, putDeadLetters, type NewDeadLetter } from '../kept/dead-letter-table.ts'
import { retryKey, retryLane, type RetryRole, type Session, type SpoolState } from '../session-state.ts'
import type { Batch } from '../types.ts'
import type { LostRange, SentPayloads } from './batch-load.ts'
import type { Claimed } from './claim.ts'

type Retry = { role: RetryRole; builder: ChunkBuilder }

/** The effect of a settlement. */
type Plan = {
  delivered: PayloadSum
  retried: PayloadSum
  dead: PayloadSum
  returned: PayloadSum
  /** Payloads that are only here and cannot be read any more. */
  damaged: PayloadSum
  retries: Retry[]
  deadLetters: NewDeadLetter[]
}

/** How each is counted in the totals of the lane. */
const plannedKinds = [
  ['delivered', 'delivered'],
  ['retried', 'retried'],
  ['dead', 'dead'],
  ['returned', 'requeued'],
  ['damaged', 'damaged'],
] as const

/** Resolves after the fsync. `content` is needed only if a payload was not delivered. */
export function settle(
  session: Session,
  { lane, claim: { batch, refs } }: Claimed,
  what: { settlement: Settlement; content: SentPayloads | null; receipt: Buffer | null },
): Promise<void> {
  const { committer, counters, recent, receipts, options } = session
  const { settlement, content, receipt } = what
  assert(refs !== null, 'a batch is loaded before it is settled')
  const plan = planFor(session, batch, settlement, content)
  const lost = plan.damaged.payloads > 0 ? (content?.lost ?? []) : []
  const moved: WrittenChunk[] = []
  const movesBack = plan.retries.some((retry) => isBack(batch.role, retry.role))
  /** What was read of them is not needed any more once this is durable. */
  const delivered: Chunk[] = []
  // Before the write: a process that ends behind it would never say what it lost.
  reportLost(session, batch, plan, lost)
  const part: WritePart = {
    prepare(ops) {
      if (movesBack) counters.movedBack += 1
      for (const ref of refs) {
        ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, ref.firstSeq) })
        chunkDeleted(lane, ref.firstSeq, ref.count)
        const chunk = recent.take(lane.id, ref.firstSeq)
        if (chunk !== undefined && content === null) delivered.push(chunk)
      }
      ops.push({ type: 'del', key: seqKey(table.batches, lane.id, batch.firstSeq) })
      deleteClaim(lane, batch.firstSeq)
      lane.leaving.add(batch.firstSeq)
      for (const retry of plan.retries) moved.push(putRetry(session, batch.provider, retry, ops))
      putDeadLetters(session, plan.deadLetters, ops)
      for (const { firstSeq, raw } of lost)
        if (raw !== null) ops.push({ type: 'put', key: seqKey(table.damaged, lane.id, firstSeq), value: raw })
      for (const [kind, settledKind] of plannedKinds)
        addSettled(lane, settledKind, plan[kind].payloads, plan[kind].bytes)
      session.openBytes -= batch.bytes
      lane.drainedBytes += batch.bytes
      if (receipt !== null && !putReceipt(receipts, receipt, options, ops)) counters.receiptsDropped += 1
      putTotals(lane, ops)
    },
    committed() {
      for (const [kind] of plannedKinds) counters[kind] += plan[kind].payloads
      for (const chunk of moved) chunkCommitted(chunk)
      for (const chunk of delivered) recent.giveBack(chunk)
      lane.leaving.delete(batch.firstSeq)
      receiptsCommitted(receipts)
    },
  }
  // Nobody waits for it, unless another batch is full behind it.
  const isPart =
    content === null && Math.max(batch.payloads, pendingIn(lane)) < options.group.chunkPayloadsMax
  return committer.commit(part, isPart ? Infinity : 0)
}

function reportLost(
  { emit }: SpoolState,
  { lane, firstSeq }: Batch,
  { damaged: { payloads } }: Plan,
  lost: readonly LostRange[],
): void {
  if (payloads === 0) return
  const what = `${lost[0]?.what ?? 'it cannot be read'}; these payloads of a sent batch were not accepted`
  emit({ kind: 'chunk_damaged', lane, firstSeq: lost[0]?.firstSeq ?? firstSeq, payloads, what })
}

function planFor(
  state: SpoolState,
  batch: Batch,
  settlement: Settlement,
  content: SentPayloads | null,
): Plan {
  const plan: Plan = {
    delivered: { payloads: 0, bytes: 0 },
    retried: { payloads: 0, bytes: 0 },
    dead: { payloads: 0, bytes: 0 },
    returned: { payloads: 0, bytes: 0 },
    damaged: { payloads: 0, bytes: 0 },
    retries: [],
    deadLetters: [],
  }
  const { payloads, requestId } = settlement
  if (payloads === 'all delivered') {
    plan.delivered = { payloads: batch.payloads, bytes: batch.bytes }
    return plan
  }
  assert(content !== null && payloads.length === batch.payloads, 'each payload of a batch is settled')
  let knownBytes = 0
  payloads.forEach((payload, index) => {
    const sent = content.payload(index)
    if (sent === null) {
      const isElsewhere = payload.kind === 'delivered' || payload.kind === 'returned'
      plan[isElsewhere ? payload.kind : 'damaged'].payloads += 1
      return
    }
    const { json, attempts, payloadId } = sent
    const sum = plan[payload.kind === 'retry' ? 'retried' : payload.kind]
    sum.payloads += 1
    sum.bytes += json.length
    knownBytes += json.length
    switch (payload.kind) {
      case 'delivered':
      case 'returned':
        return
      case 'retry':
        addBytes(retryFor(plan, batch, payload).builder, json, attempts + (payload.uncounted ? 0 : 1))
        return
      case 'dead': {
        if (payload.discard === true) return
        const origin = { batch, requestId, payloadId }
        plan.deadLetters.push(newDeadLetter(state, deadLetterOf(state, payload, json, origin)))
        return
      }
      default:
        assertNever(payload)
    }
  })
  // The bytes of what cannot be read are known in all only.
  plan[plan.damaged.payloads > 0 ? 'damaged' : 'delivered'].bytes += batch.bytes - knownBytes
  return plan
}

function retryFor(
  plan: Plan,
  batch: Batch,
  { schedule, step, uncounted }: Extract<PayloadSettlement, { kind: 'retry' }>,
): Retry {
  const before = attemptsIn(batch.role)
  const counted = Object.fromEntries(uncounted ? before : before.set(schedule, step + 1))
  const role: RetryRole = { kind: 'retry', schedule, step, counted }
  if (uncounted === 'no_room') role.waitsForRoom = true
  const known = plan.retries.find((retry) => retryKey(retry.role) === retryKey(role))
  if (known !== undefined) return known
  const retry = { role, builder: newChunkBuilder(4096) }
  plan.retries.push(retry)
  return retry
}

/**
 * A failure of another rule begins at the first step of that rule, and one that is not counted goes back to
 * the first step. Who follows payloads from step to step looks at all of them again (kept/exchange.ts).
 */
function isBack(from: LaneRole, to: RetryRole): boolean {
  return from.kind === 'retry' && to.step <= from.step
}

function putRetry(state: SpoolState, provider: ProviderName, retry: Retry, ops: StoreOp[]): WrittenChunk {
  const { role, builder } = retry
  const lane = retryLane(state, provider, role)
  if (!lane.recorded) putLane(lane, ops)
  const isNew = lane.nextSeq === 0
  const written = putNewChunk(lane, builder, state.clock.now(), ops)
  if (isNew) putTotals(lane, ops)
  state.openBytes += written.chunk.bytes
  return written
}

function deadLetterOf(
  state: SpoolState,
  { reason, detail, failure }: Extract<PayloadSettlement, { kind: 'dead' }>,
  json: Buffer,
  { batch, requestId, payloadId }: { batch: Batch; requestId: string | null; payloadId: PayloadId | null },
): DeadLetter {
  const payload: unknown = JSON.parse(json.toString('utf8'))
  return {
    stage: 'delivery',
    at: state.ourNow(),
    reason,
    detail,
    provider: batch.provider,
    device: deviceIn(payload),
    envelope: null,
    payload,
    payloadId,
    batchId: batch.batchId,
    requestId,
    failure,
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
