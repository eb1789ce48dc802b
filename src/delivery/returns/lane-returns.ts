// lane-returns.ts: what is returned of the lanes of one provider.

import { randomUUID } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchId, LaneId, ProviderName } from '../../domain/ids.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { Batch, LaneView, PendingRun, SealLimits, Spool } from '../../spool/spool.ts'
import type { Scheduler } from '../policy/scheduler.ts'
import { entriesOfBody } from '../transport/body-entries.ts'
import type { ReturnReason } from './types.ts'

export type LaneReturns = {
  readonly provider: ProviderName
  /** Nothing of its lanes among these is sealed until the result is called; null: one is being sealed now. */
  exclude(lanes: readonly LaneId[]): (() => void) | null
  /**
   * Seals what is before the number, then reads what is pending from there on. Ends before what cannot be
   * read, or came by an exchange. The lane must be excluded.
   */
  runsFrom(lane: LaneView, fromSeq: number): AsyncIterable<PendingRun>
  /** Empty without a ledger. A receipt has the id of the removal in the place of a batchId. */
  receiptsOf(runs: readonly PendingRun[], reason: ReturnReason): Buffer[]
}

type Deps = {
  spool: Pick<Spool, 'lanes' | 'seal' | 'readPending'>
  scheduler: Pick<Scheduler, 'limits' | 'isSealing' | 'beginSeal' | 'sealEnded'>
  provider: ProviderName
  /** Settles write receipts. */
  ledger: boolean
  signingAt: () => EpochMs
  emit: Emit
  /** Puts a batch in hand. */
  sealed: (batch: Batch) => void
  changed: () => void
}

const runLimits = { payloadsMax: 500, bytesMax: 4 * 1024 * 1024 }

const details: Record<ReturnReason, string> = {
  PARKED: 'It is stored in the queue of the message source, and comes back.',
  WITHDRAWN: 'The message source has its message, and delivers it again.',
}

export function createLaneReturns(deps: Deps): LaneReturns {
  const { spool, scheduler, provider, ledger, signingAt } = deps

  return { provider, exclude, runsFrom, receiptsOf }

  function exclude(lanes: readonly LaneId[]): (() => void) | null {
    const wanted = new Set(lanes)
    const own = spool.lanes().filter((lane) => lane.provider === provider && wanted.has(lane.id))
    if (own.some(({ id }) => scheduler.isSealing(id))) return null
    const held = own.map(({ id }) => scheduler.beginSeal(id))
    return () => {
      for (const seal of held) scheduler.sealEnded(seal, 'nothing')
      deps.changed()
    }
  }

  async function* runsFrom(lane: LaneView, fromSeq: number): AsyncGenerator<PendingRun> {
    if (fromSeq < lane.sealSeq) throw sealedBehind(lane.provider)
    const limits: SealLimits = { ...scheduler.limits(), untilSeq: fromSeq, timestamp: signingAt() }
    for (;;) {
      const batch = await spool.seal(lane.id, limits)
      if (batch === null) break
      const { batchId, payloads, bytes } = batch
      deps.emit({ kind: 'batch_sealed', provider, lane: lane.id, batchId, payloads, bytes })
      deps.sealed(batch)
    }
    for (let next = fromSeq; ;) {
      const run = await spool.readPending(lane.id, { ...runLimits, fromSeq: next, messagesOnly: true })
      if (run === null) return
      yield run
      next = run.endSeq
    }
  }

  function receiptsOf(runs: readonly PendingRun[], reason: ReturnReason): Buffer[] {
    return ledger ? runs.map((run) => receiptOf(run, reason)) : []
  }

  function receiptOf({ lane, contents }: PendingRun, reason: ReturnReason): Buffer {
    const starts = new Uint32Array(contents.length)
    let bytes = 0
    for (const [index, { json }] of contents.entries()) {
      starts[index] = bytes
      // A comma follows, as in a body.
      bytes += json.length + 1
    }
    const body = Buffer.alloc(bytes - 1, ',')
    for (const [index, { json }] of contents.entries()) json.copy(body, starts[index])
    return encodeReceipt({
      provider,
      lane,
      batchId: randomUUID() as BatchId,
      requestId: null,
      at: signingAt(),
      entries: entriesOfBody(body, starts),
      settlements: contents.map(() => ({ kind: 'returned', reason, detail: details[reason] })),
    })
  }
}

function sealedBehind(provider: ProviderName): GatewayError {
  return new GatewayError('BATCH_BUSY', {
    what: 'What was never submitted was not given back.',
    why: `A batch of provider ${provider} has payloads that are to be given back.`,
    act: 'Nothing to do: it is tried again with other numbers.',
  })
}
