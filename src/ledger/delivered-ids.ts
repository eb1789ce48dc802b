// delivered-ids.ts: visits every payload that was delivered, for an import that must not send it again. It
// reads each receipt whose device times meet the range, so its cost is that of the range, not of one search
// for each payload.

import type { EpochMs } from '../std/clock.ts'
import { outcomeBits } from '../receipts/receipts.ts'
import type { Records } from './ledger-records.ts'

export type TimeRange = { from: EpochMs; to: EpochMs }

/** Resolves with false if `signal` ended it. */
export async function visitDelivered(
  records: Records,
  { from, to }: TimeRange,
  visit: (payloadId: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const block of records.indexBlocks(Number.MAX_SAFE_INTEGER)) {
    for (const { number, outcomes, earliest, latest } of block.newestFirst()) {
      if (signal.aborted) return false
      if ((outcomes & outcomeBits.delivered) === 0) continue
      // A receipt without any device time may hold every payload.
      if (earliest !== null && latest !== null && (latest < from || earliest > to)) continue
      const receipt = await records.receipt(number)
      // Null where it was dropped meanwhile, or is damaged.
      if (receipt === null) continue
      const { entries, settlement } = receipt
      for (let index = 0; index < entries.count; index += 1)
        if (settlement(index).outcome === 'delivered') visit(entries.idAt(index))
    }
  }
  return true
}
