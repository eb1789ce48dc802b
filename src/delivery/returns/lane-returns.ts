// lane-returns.ts: what is returned of the lanes of one provider.

import { randomUUID } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import type { BatchId, LaneId, ProviderName } from '../../domain/ids.ts'
import { encodeReceipt } from '../../receipts/receipts.ts'
import type { PendingRun } from '../../spool/spool.ts'
import type { Scheduler } from '../policy/scheduler.ts'
import { entriesOfBody } from '../transport/body-entries.ts'

export type LaneReturns = {
  readonly provider: ProviderName
  /** Nothing of the lane is sealed until the result is called; null: it is being sealed now. */
  exclude(lane: LaneId): (() => void) | null
  /** Null without a ledger. It has the id of the removal in the place of a batchId. */
  receiptOf(run: PendingRun): Buffer | null
}

type Deps = {
  scheduler: Pick<Scheduler, 'isSealing' | 'beginSeal' | 'sealEnded'>
  provider: ProviderName
  /** Settles write receipts. */
  ledger: boolean
  signingAt: () => EpochMs
  changed: () => void
}

const detail = 'It is stored in the queue of the message source, and comes back.'

export function createLaneReturns(deps: Deps): LaneReturns {
  const { scheduler, provider, ledger, signingAt } = deps

  return { provider, exclude, receiptOf }

  function exclude(lane: LaneId): (() => void) | null {
    if (scheduler.isSealing(lane)) return null
    const seal = scheduler.beginSeal(lane)
    return () => {
      scheduler.sealEnded(seal, 'nothing')
      deps.changed()
    }
  }

  function receiptOf({ lane, contents }: PendingRun): Buffer | null {
    if (!ledger) return null
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
      settlements: contents.map(() => ({ kind: 'returned', reason: 'PARKED', detail })),
    })
  }
}
