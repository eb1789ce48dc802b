// backfill-rule.ts: whether a payload is still live when it comes. A device that was out of reach for hours sends what it kept:
// that is told by the device time and goes behind what is fresh (`delivery.backfill.after`).
//
// Asked once a payload, so: no allocation, and the wall clock corrected by what is known of it. Where our clock is wrong and
// nobody has told us so, the worst that comes of it is another order.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { DeliveryOptions } from '../delivery/delivery.ts'
import type { IsLate } from '../spool/spool.ts'

export function createBackfillRule(
  { clock, offsetMs }: { clock: Clock; offsetMs: () => number | null },
  { providers }: DeliveryOptions,
): IsLate {
  const afterMs = new Map(providers.map(({ name, backfill }) => [name, backfill.afterMs]))
  let lastName: ProviderName | null = null
  let lastAfterMs = Number.POSITIVE_INFINITY

  return (provider: ProviderName, deviceTime: EpochMs) => {
    if (provider !== lastName) {
      lastName = provider
      lastAfterMs = afterMs.get(provider) ?? Number.POSITIVE_INFINITY
    }
    return clock.now() + (offsetMs() ?? 0) - deviceTime > lastAfterMs
  }
}
