// receipt-recovery.ts: reads the sizes and the numbers of the receipts.

import type { StoreOp } from '../../storage/storage.ts'
import { readOne } from '../chunk-log/damage-scan.ts'
import {
  isNumberKey,
  laneKey,
  numberOf,
  receiptKey,
  receiptTotalsLane,
  table,
} from '../chunk-log/key-layout.ts'
import { putReceiptTotals } from '../chunk-log/receipt-queue.ts'
import { receiptTotalsRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'
import { readTable, reportRecord, setRecordAside } from './table-records.ts'

/** Reads all of them: seldom more than a few, and at most `receiptBytesMax`. */
export async function recoverReceipts(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { receipts, store } = state
  const totalsKey = laneKey(table.totals, receiptTotalsLane)
  const { value: totalsValue, isUnreadable } = await readOne(store, totalsKey)
  const totals = receiptTotalsRecord.decode(totalsValue)
  const isLost = isUnreadable || (totalsValue !== undefined && totals === null)
  receipts.firstN = totals?.firstN ?? 0
  receipts.nextN = totals?.nextN ?? 0
  let isComplete = true
  const read = {
    range: { gte: receiptKey(receipts.firstN), lt: receiptKey(Number.MAX_SAFE_INTEGER) },
    table: 'receipts' as const,
    isKey: isNumberKey,
    repairs,
    skipped: () => void (isComplete = false),
  }
  for await (const [key, value] of readTable(state, read)) {
    receipts.sizes.set(numberOf(key), value.length)
    receipts.bytes += value.length
    receipts.nextN = Math.max(receipts.nextN, numberOf(key) + 1)
  }
  // The newest receipt has the last number, unless all are forgotten.
  if (!isComplete || (isLost && receipts.sizes.size === 0)) receipts.nextN += numbersSkipped
  receipts.durableN = receipts.nextN
  if (!isLost) return
  reportRecord(state, 'receipts', 'their totals are damaged')
  if (totalsValue !== undefined) setRecordAside(totalsKey, totalsValue, repairs)
  putReceiptTotals(receipts, repairs)
}

/** More than the queue can hold: the newest numbers may be among what cannot be read. */
const numbersSkipped = 10_000_000
