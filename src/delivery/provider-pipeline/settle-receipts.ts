// settle-receipts.ts: what a settle reports about its payloads: the receipt for the ledger, in the write of
// the settle, and after the write the same facts for the device records.

import { encodeReceipt } from '../../receipts/receipts.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Settlement } from '../../domain/settlement.ts'
import type { InFlightBatch } from '../policy/types.ts'
import type { ServiceClock } from '../transport/service-clock.ts'
import type { PipelineDeps } from './types.ts'

type Deps = Pick<PipelineDeps, 'ledger' | 'settled'> & {
  serviceClock: Pick<ServiceClock, 'signingAt'>
  provider: ProviderName
}

export function createSettleReceipts({ ledger, settled, serviceClock, provider }: Deps) {
  return { begin }

  /** `bytes`: null without a ledger. `end` is called when the settle is durable. */
  function begin({ batch, entries }: InFlightBatch, { payloads, requestId }: Settlement) {
    const at = serviceClock.signingAt()
    const { lane, batchId } = batch
    const bytes =
      entries === null || !ledger
        ? null
        : encodeReceipt({ provider, lane, batchId, requestId, at, entries, settlements: payloads })
    return { bytes, end }

    function end(): void {
      if (entries !== null) settled?.({ provider, requestId, at, entries, settlements: payloads })
    }
  }
}
