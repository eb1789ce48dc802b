// forget-device.ts: deletes the entries of one device. Each receipt that has some is written again without
// them. Its index entry stays as it is: it says where a payload may be, and its counts are those of the time
// of the copy until the block is dropped.

import { withoutPayloads } from '../receipts/receipt-edit.ts'
import { hashOfDevice } from '../receipts/receipt-entries.ts'
import type { Records } from './ledger-records.ts'

/** Resolves with the number of entries, and whether `signal` ended it. */
export async function forgetDevice(
  records: Records,
  device: string,
  signal: AbortSignal,
): Promise<{ entries: number; isDone: boolean }> {
  const hash = hashOfDevice(device)
  let removed = 0
  for await (const block of records.indexBlocks(Number.MAX_SAFE_INTEGER)) {
    for (const { number, mayHold } of block.newestFirst()) {
      if (signal.aborted) return { entries: removed, isDone: false }
      if (!mayHold(hash)) continue
      const receipt = await records.receipt(number)
      // Null where it was dropped meanwhile, or is damaged.
      const indexes = receipt?.entries.ofDevice(device) ?? []
      if (receipt === null || indexes.length === 0) continue
      await records.replace(number, withoutPayloads(receipt, new Set(indexes)))
      removed += indexes.length
    }
  }
  return { entries: removed, isDone: true }
}
