// orphaned-providers.ts: providers that have payloads in the spool and are not in the config (any more). Nothing of theirs is
// touched or lost; somebody has to know of it.

import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { Spool } from '../spool/spool.ts'

export type OrphanedProviders = {
  /** Looks, and tells who is new, who is gone, and now and then how many wait. */
  look(this: void): void
}

/** Their number may grow with each message. */
const tellAgainMs = 60_000

export function createOrphanedProviders(
  { spool, clock, emit }: { spool: Pick<Spool, 'lanes'>; clock: Clock; emit: Emit },
  { known }: { known: readonly ProviderName[] },
): OrphanedProviders {
  const told = new Map<ProviderName, { payloads: number; atMs: number }>()
  return { look }

  function look(): void {
    const waiting = new Map<ProviderName, number>()
    for (const { provider, open } of spool.lanes())
      if (open > 0 && !known.includes(provider)) waiting.set(provider, (waiting.get(provider) ?? 0) + open)
    for (const provider of told.keys()) if (!waiting.has(provider)) tell(provider, 0)
    for (const [provider, payloads] of waiting) {
      const before = told.get(provider)
      const again = before?.payloads !== payloads && clock.monotonic() - (before?.atMs ?? 0) >= tellAgainMs
      if (before === undefined || again) tell(provider, payloads)
    }
  }

  function tell(provider: ProviderName, payloads: number): void {
    if (payloads === 0) told.delete(provider)
    else told.set(provider, { payloads, atMs: clock.monotonic() })
    emit({ kind: 'provider_unknown', provider, payloads })
  }
}
