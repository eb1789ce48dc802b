// recovered-batches.ts: the batches that were sealed before this session, in hand or held as they were.

import type { Emit } from '../../domain/event.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Batch, Spool } from '../../spool/spool.ts'
import type { InFlightBatches } from '../policy/in-flight-batches.ts'
import { reportHeld } from './held-report.ts'

type Deps = { spool: Pick<Spool, 'batches'>; emit: Emit }

export function recoverBatches(
  { spool, emit }: Deps,
  batches: InFlightBatches,
  provider: ProviderName,
): void {
  const own = spool.batches().filter((batch) => batch.provider === provider)
  for (const batch of own.toSorted(heldLongestFirst)) batches.add(batch, 'recovered')
  for (const reason of Object.keys(heldReasons) as HeldReason[])
    reportHeld(emit, batches, { provider, reason })
}

/** Batches in hand keep their order, which is that of sealing. */
function heldLongestFirst({ held: one }: Batch, { held: other }: Batch): number {
  return (one?.since ?? 0) - (other?.since ?? 0)
}
