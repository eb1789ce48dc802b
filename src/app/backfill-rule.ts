// backfill-rule.ts: whether a payload is late when it arrives. A device that was offline for hours sends what
// it kept: payloads whose device time is older than `delivery.backfill.after` go behind fresh ones.
//
// Called once a payload, so it allocates nothing. It uses the wall clock, corrected by the known offset.
// While our time is unknown it gives null: the spool then sends what arrives with the fresh payloads.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { DeliveryOptions } from '../delivery/delivery.ts'
import type { IsLate } from '../spool/spool.ts'

export type BackfillRule = {
  isLate: IsLate
  /** Of the same providers. Payloads that have arrived stay where they are. */
  use(this: void, options: DeliveryOptions): void
}

export function createBackfillRule(
  { clock, offsetMs }: { clock: Clock; offsetMs: () => number | null },
  options: DeliveryOptions,
): BackfillRule {
  let afterMs = afterMsOf(options)
  let lastName: ProviderName | null = null
  let lastAfterMs = Number.POSITIVE_INFINITY

  return { isLate, use }

  function isLate(provider: ProviderName, deviceTime: EpochMs): boolean | null {
    if (provider !== lastName) {
      lastName = provider
      lastAfterMs = afterMs.get(provider) ?? Number.POSITIVE_INFINITY
    }
    const offset = offsetMs()
    return offset === null ? null : clock.now() + offset - deviceTime > lastAfterMs
  }

  function use(next: DeliveryOptions): void {
    afterMs = afterMsOf(next)
    lastName = null
  }
}

function afterMsOf({ providers }: DeliveryOptions): ReadonlyMap<ProviderName, number> {
  return new Map(providers.map(({ name, backfill }) => [name, backfill.afterMs]))
}
