// batch-control.ts: acts on the sealed batches of one provider for an operator
// (../batch-operations/batch-operations.ts), and gives them back to their message source
// (../returns/returns.ts).
//
// A batch is taken as for a submission while an action on it runs, so that it is not sent meanwhile. A batch
// in a submission is refused with BATCH_BUSY. When the spool rejects a write, the session ends as after a
// rejected settle, and the batches are read from the spool again. A session begins only when no action runs
// (idle): else it could read a batch that is being settled.

import { pause, type Clock, type EpochMs } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { droppedByPerson } from '../../domain/dead-letter.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { PayloadSettlement } from '../../domain/settlement.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { Batch, BatchContent, Spool } from '../../spool/spool.ts'
import type { BatchControl, Hand, OperatorSettlement } from '../batch-operations/batch-operations.ts'
import type { CounterSet } from '../delivery-counters.ts'
import { deviceOf, parsedPayload } from '../payload-json.ts'
import type { InFlightBatch } from '../policy/types.ts'
import { entriesOfBody } from '../transport/body-entries.ts'
import type { BatchView } from '../types.ts'
import type { PipelineSession } from './batch-sender.ts'

export type PipelineBatchControl = BatchControl & {
  /** Resolves when no action runs. */
  idle(): Promise<void>
}

type Deps = {
  spool: Spool
  clock: Clock
  emit: Emit
  counters: CounterSet
  provider: ProviderName
  /** Settles write receipts. */
  ledger: boolean
  signingAt: () => EpochMs
  session: () => PipelineSession
  isCurrent: (session: PipelineSession) => boolean
  /** A batch is settled or replaced. */
  ended: (session: PipelineSession, inFlight: InFlightBatch) => void
  /** Batches are ready, or gone. */
  changed: () => void
  /** The spool rejected a write. */
  rejected: (error: unknown, session: PipelineSession) => void
}

/** More batches in hand than this delay fresh data: then `reissue` waits for some to be sent. */
const inHandMax = 256
const roomCheckMs = 250
const roomWaitMs = 60_000

export function createBatchControl(deps: Deps): PipelineBatchControl {
  const { spool, clock, emit, counters, provider, ledger, signingAt, isCurrent, ended, changed } = deps
  const actions = new Set<Promise<unknown>>()

  return {
    provider,
    *views() {
      const { batches } = deps.session()
      for (const inFlight of batches.all()) yield viewOf(inFlight)
      for (const inFlight of batches.allHeld()) yield viewOf(inFlight)
    },
    async show(batchId) {
      const inFlight = deps.session().batches.find(batchId as BatchId)
      if (inFlight === null) return null
      // What a submission sends is not read twice: damage that is found here would replace the batch.
      const contents = inFlight.running ? [] : await acting(inFlight.batch.batchId, contentsOf)
      return { ...viewOf(inFlight), contents, answers: inFlight.answers }
    },
    async retry(batchId) {
      const { batches } = deps.session()
      batches.releaseOne(found(batchId))
      changed()
    },
    reissue: (batchId, counts) =>
      acting(batchId, async (inFlight, own) => {
        await waitForRoom(own)
        const parts = await spool.reseal(inFlight.batch, counts, { timestamp: signingAt() })
        replaced(own, inFlight, parts)
        return parts.length
      }),
    settle: (batchId, as) => acting(batchId, (inFlight, own) => settle(inFlight, own, as)),
    async giveBack(batchId, hand) {
      const given = await acting(batchId, (inFlight, own) => giveBack(inFlight, own, hand))
      if (typeof given !== 'number') throw given.error
      return given
    },
    async idle() {
      await Promise.allSettled(actions)
    },
  }

  function found(batchId: BatchId): InFlightBatch {
    const inFlight = deps.session().batches.find(batchId)
    if (inFlight === null) throw fault('BATCH_GONE', 'It was settled or replaced.')
    if (inFlight.running) throw fault('BATCH_BUSY', 'It is in a submission now.')
    return inFlight
  }

  /** Runs `work` while the batch is taken. */
  function acting<Result>(
    batchId: BatchId,
    work: (inFlight: InFlightBatch, own: PipelineSession) => Promise<Result>,
  ): Promise<Result> {
    const own = deps.session()
    const inFlight = found(batchId)
    if (!isCurrent(own)) throw fault('BATCH_BUSY', 'The spool is being reopened.')
    own.batches.take(inFlight)
    const action = work(inFlight, own)
      .catch((error: unknown) => {
        if (!isRefusal(error)) deps.rejected(error, own)
        throw error
      })
      .finally(() => {
        actions.delete(action)
        own.batches.putBack(inFlight)
        changed()
      })
    actions.add(action)
    return action
  }

  async function waitForRoom({ batches, end }: PipelineSession): Promise<void> {
    const untilMs = clock.monotonic() + roomWaitMs
    while (batches.size() > inHandMax) {
      if (clock.monotonic() >= untilMs)
        throw fault('BATCH_BUSY', `${batches.size()} other batches are to be sent first.`)
      if (!(await pause(clock, roomCheckMs, end.signal))) throw fault('BATCH_BUSY', 'The session ended.')
    }
  }

  function replaced(own: PipelineSession, inFlight: InFlightBatch, parts: readonly Batch[]): void {
    own.batches.remove(inFlight)
    ended(own, inFlight)
    // Else the next session reads them from the spool.
    if (isCurrent(own)) for (const part of parts) own.batches.add(part, 'sealed')
  }

  /** Throws BATCH_GONE where damage is found: what is left of the batch has new batchIds. */
  async function load(inFlight: InFlightBatch, own: PipelineSession): Promise<BatchContent> {
    const loaded = await spool.load(inFlight.batch)
    if (loaded.kind === 'content') return loaded.content
    replaced(own, inFlight, loaded.batches)
    throw fault('BATCH_GONE', 'A part of it is damaged. What is left is sent under new batchIds.')
  }

  async function contentsOf(inFlight: InFlightBatch, own: PipelineSession) {
    const content = await load(inFlight, own)
    return content.payloadIds().map((payloadId, index) => ({
      payloadId,
      device: deviceOf(parsedPayload(content.payload(index).toString('utf8'))),
    }))
  }

  async function settle(
    inFlight: InFlightBatch,
    own: PipelineSession,
    { as, by }: OperatorSettlement,
  ): Promise<void> {
    if (as === 'dead' && spool.deadLettersFull())
      throw new GatewayError('DAEMON_REFUSED', {
        what: 'The batch was not dropped.',
        why: 'The dead letters have reached their limit.',
        act: 'Requeue or purge dead letters, or raise spool.dead_letters.max_bytes.',
      })
    const content = await load(inFlight, own)
    const { lane, batchId } = inFlight.batch
    const requestId = inFlight.held?.requestId ?? inFlight.answers.at(-1)?.requestId ?? null
    const each = settlementOf(as, by)
    // What an answer accepted stays delivered: as a dead letter it could be requeued and sent twice.
    const isAccepted = (id: string) => inFlight.earlierResults?.get(id.toLowerCase()) === 'accepted'
    const settlements = content
      .payloadIds()
      .map((id): PayloadSettlement => (isAccepted(id) ? { kind: 'delivered' } : each))
    const receipt = ledger ? receiptOf(inFlight.batch, content, { requestId, settlements }) : null
    const settled = as === 'delivered' ? 'all delivered' : settlements
    await spool.settle(inFlight.batch, { payloads: settled, requestId }, receipt)
    own.batches.remove(inFlight)
    ended(own, inFlight)
    const dead = settlements.filter(({ kind }) => kind === 'dead').length
    const counts = { delivered: settlements.length - dead, retried: 0, dead }
    counters.settled(counts)
    if (as === 'discarded') counters.discarded(dead)
    emit({ kind: 'batch_settled', provider, lane, batchId, requestId, ...counts })
  }

  /** Where `hand` rejects, that says nothing of the spool. */
  async function giveBack(
    inFlight: InFlightBatch,
    own: PipelineSession,
    hand: Hand,
  ): Promise<number | { error: unknown }> {
    const { batch, held, mayBeProcessed } = inFlight
    if (mayBeProcessed || held?.reason === 'repeated') return 0
    const content = await load(inFlight, own)
    const attempts = content.attempts()
    const committedAt = batch.timestamp
    const payloads = content.payloadIds().map((payloadId, index) => {
      const json = content.payload(index)
      return { provider, payloadId, json, attempts: attempts[index] ?? 0, committedAt }
    })
    try {
      await hand(payloads)
    } catch (error) {
      return { error }
    }
    if (!isCurrent(own)) throw fault('BATCH_BUSY', 'The session ended.')
    const requestId = held?.requestId ?? null
    const detail = held?.why ?? 'It was never submitted.'
    const settlements = payloads.map((): PayloadSettlement => ({
      kind: 'returned',
      reason: 'PARKED',
      detail,
    }))
    const receipt = ledger ? receiptOf(batch, content, { requestId, settlements }) : null
    await spool.settle(batch, { payloads: settlements, requestId }, receipt)
    own.batches.remove(inFlight)
    ended(own, inFlight)
    emit({ kind: 'payloads_returned', provider, payloads: payloads.length, reason: 'PARKED' })
    return payloads.length
  }

  function receiptOf(
    { lane, batchId }: Batch,
    content: BatchContent,
    { requestId, settlements }: { requestId: string | null; settlements: readonly PayloadSettlement[] },
  ): Buffer {
    const body = Buffer.allocUnsafe(content.bodyBytes)
    const entries = entriesOfBody(body, content.writeBody(body))
    return encodeReceipt({ provider, lane, batchId, requestId, at: signingAt(), entries, settlements })
  }

  function viewOf(inFlight: InFlightBatch): BatchView {
    const { batch, running, held, submissions, mayBeProcessed, answers, readyAtMs } = inFlight
    const { batchId, role, payloads, bytes, timestamp } = batch
    const waitMs = readyAtMs - clock.monotonic()
    return {
      batchId,
      provider,
      role: role.kind,
      payloads,
      bytes,
      // The timestamp is one of the service; people see it beside times of this machine.
      sealedAt: timestamp - (signingAt() - clock.now()),
      state: running ? 'in flight' : held === null ? 'waiting' : 'held',
      held,
      submissions,
      mayBeProcessed,
      lastRequestId: answers.at(-1)?.requestId ?? held?.requestId ?? null,
      nextTryAt: running || waitMs <= 0 ? null : clock.now() + waitMs,
    }
  }
}

function settlementOf(as: OperatorSettlement['as'], by: string): PayloadSettlement {
  if (as === 'delivered') {
    const detail = `Operator ${by} marked the batch as delivered.`
    return { kind: 'delivered', note: { reason: 'MARKED_BY_OPERATOR', detail } }
  }
  if (as === 'dead')
    return {
      kind: 'dead',
      reason: droppedByPerson,
      detail: `Operator ${by} dropped the batch.`,
      failure: null,
    }
  const detail = `Operator ${by} discarded the batch.`
  return { kind: 'dead', reason: 'DISCARDED_BY_OPERATOR', detail, failure: null, discard: true }
}

function fault(code: 'BATCH_BUSY' | 'BATCH_GONE', why: string): GatewayError {
  return new GatewayError(code, { what: 'The batch was not changed.', why, act: 'See `batches list`.' })
}

function isRefusal(error: unknown): boolean {
  return error instanceof GatewayError && ['BATCH_BUSY', 'BATCH_GONE', 'DAEMON_REFUSED'].includes(error.code)
}
