// outage.ts: what happens while the ingestion API accepts nothing from any provider.
//
//   delivering -> (every endpoint is down, nothing was accepted for park_after, something waits as long)
//              -> holding: nothing more is taken. Millions wait in the engine; what was taken stays here
//              -> (an endpoint is available, something was accepted, or nothing is left here) -> delivering
//
// One provider that is down while others deliver is no outage: its payloads are parked. Nor are payloads that
// the service refuses: its endpoint is available.

import type { Clock } from '../../std/clock.ts'
import type { LaneView } from '../../spool/spool.ts'
import type { CustodyDelivery } from './types.ts'

export type Outage = {
  isHolding(): boolean
  /** Time without anything accepted while there is an outage; else null. */
  waitedMs(): number | null
  /** Decides whether there is an outage. `oldestMs`: age of the oldest unit. */
  update(situation: { oldestMs: number; lanes: readonly LaneView[] }): void
}

type Deps = {
  delivery: Pick<CustodyDelivery, 'providers' | 'delivered'>
  clock: Clock
  changed: () => void
}

export function createOutage(
  { delivery, clock, changed }: Deps,
  { parkAfterMs }: { parkAfterMs: number },
): Outage {
  let delivered = delivery.delivered()
  let acceptedAtMs = clock.monotonic()
  let isHolding = false

  function update({ oldestMs, lanes }: { oldestMs: number; lanes: readonly LaneView[] }): void {
    const now = clock.monotonic()
    const sum = delivery.delivered()
    const wasAccepted = sum !== delivered
    delivered = sum
    if (wasAccepted) acceptedAtMs = now
    const providers = delivery.providers()
    const isDown = providers.length > 0 && providers.every(({ endpoint }) => endpoint !== 'available')
    if (!isHolding) {
      if (!isDown || oldestMs < parkAfterMs || now - acceptedAtMs < parkAfterMs) return
      isHolding = true
      changed()
    } else if (wasAccepted || !isDown || lanes.every(({ open }) => open === 0)) {
      isHolding = false
      changed()
    }
  }

  return {
    isHolding() {
      return isHolding
    },
    waitedMs: () => (isHolding ? clock.monotonic() - acceptedAtMs : null),
    update,
  }
}
