// held-report.ts: which batches are held: as states, and as an event whenever their number changes.

import type { Emit } from '../../domain/event.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { State } from '../../domain/condition-state.ts'
import type { InFlightBatches } from '../policy/in-flight-batches.ts'

type Change = { provider: ProviderName; reason: HeldReason }

export function reportHeld(emit: Emit, { held }: InFlightBatches, { provider, reason }: Change): void {
  const { batches = 0, payloads = 0 } = held.group(reason) ?? {}
  emit({ kind: 'held_batches_changed', provider, reason, batches, payloads })
}

export function* heldStates({ held }: InFlightBatches, provider: ProviderName): Generator<State> {
  if (held.size() === 0) return
  for (const reason of Object.keys(heldReasons) as HeldReason[]) {
    const group = held.group(reason)
    if (group === null) continue
    const { latest, ...counts } = group
    const { requestId = null, why = '' } = latest.held ?? {}
    const { batchId } = latest.batch
    const code = reason === 'stuck' ? 'BATCH_STUCK' : 'BATCHES_HELD'
    yield { code, provider, reason, ...counts, batchId, why, requestId }
  }
}
