// backfill-rule.ts: whether a payload is late when it arrives. A device that was offline for hours sends what
// it kept: payloads whose device time is older than `delivery.backfill.after` go behind fresh ones.
//
// Called once a payload, so it allocates nothing. It uses the wall clock, corrected by the known offset.
// While our time is unknown it gives null: the spool then sends what arrives with the fresh payloads.

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
    const offset = offsetMs()
    return offset === null ? null : clock.now() + offset - deviceTime > lastAfterMs
  }
}
