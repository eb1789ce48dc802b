// receipt-edit.ts: a receipt without some of its payloads, for a device that is to be forgotten.

import { assertNever } from '../std/assert.ts'
import type { PayloadSettlement } from '../domain/settlement.ts'
import { createEntriesBuilder } from './entries-builder.ts'
import { idTextBytes } from './receipt-entries.ts'
import { encodeReceipt, receiptKeys, type Receipt, type ReceiptSettlement } from './receipts.ts'

/** Null where nothing is left of it. */
export function withoutPayloads(receipt: Receipt, removed: ReadonlySet<number>): Buffer | null {
  const { provider, lane, batchId, requestId, at, entries } = receipt
  const kept = Array.from({ length: entries.count }, (_, index) => index).filter(
    (index) => !removed.has(index),
  )
  if (kept.length === 0) return null
  const ids = Buffer.alloc(kept.length * idTextBytes)
  const builder = createEntriesBuilder(ids, kept.length)
  for (const [place, index] of kept.entries()) {
    const { payloadId, deviceTime, device } = entries.at(index)
    const name = Buffer.from(device ?? '')
    ids.write(payloadId, place * idTextBytes, 'latin1')
    const number = device === null ? 0 : builder.device(name, 0, name.length)
    builder.add(place * idTextBytes, deviceTime ?? Number.NaN, number)
  }
  const settlements = kept.map((index) => settlementOf(entries.idAt(index), receipt.settlement(index)))
  const areDelivered = settlements.every((one) => one.kind === 'delivered' && one.note === undefined)
  return encodeReceipt({
    provider,
    lane,
    batchId,
    requestId,
    at,
    entries: builder.finish(receiptKeys),
    settlements: areDelivered ? 'all delivered' : settlements,
  })
}

function settlementOf(payloadId: string, settlement: ReceiptSettlement): PayloadSettlement {
  const { outcome, schedule, step, reason, detail } = settlement
  switch (outcome) {
    case 'delivered':
      return reason === null ? { kind: 'delivered' } : { kind: 'delivered', note: noteOf(settlement) }
    case 'retried': {
      const failure = {
        payloadId,
        errorType: reason ?? '',
        errorMessage: detail ?? '',
        validationErrorDetails: [],
      }
      return { kind: 'retry', schedule: schedule ?? '', step: step ?? 0, failure }
    }
    case 'dead':
      return { kind: 'dead', ...noteOf(settlement), failure: null }
    case 'returned':
      return { kind: 'returned', ...noteOf(settlement) }
    default:
      return assertNever(outcome)
  }
}

function noteOf({ reason, detail }: ReceiptSettlement): { reason: string; detail: string } {
  return { reason: reason ?? '', detail: detail ?? '' }
}
