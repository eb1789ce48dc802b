// held-report.ts: the event that says how many batches are held for a reason, whenever that changes.

import type { Emit } from '../../domain/event.ts'
import type { HeldReason } from '../../domain/held.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { InFlightBatches } from '../policy/in-flight-batches.ts'
import type { InFlightBatch } from '../policy/types.ts'

type Change = {
  provider: ProviderName
  reason: HeldReason
  /** The batch that was held just now; null where one is held no longer. */
  latest: InFlightBatch | null
}

export function reportHeld(
  emit: Emit,
  { held }: InFlightBatches,
  { provider, reason, latest }: Change,
): void {
  const group = held.group(reason) ?? { batches: 0, payloads: 0, oldestAt: 0 }
  const { requestId = null, why = '' } = latest?.held ?? {}
  const batchId = latest?.batch.batchId ?? null
  emit({ kind: 'held_batches_changed', provider, reason, ...group, batchId, why, requestId })
}
