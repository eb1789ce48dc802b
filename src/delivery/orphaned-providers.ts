// orphaned-providers.ts: reports providers that have payloads in the spool and are not in the config (any
// more). Their payloads stay in the spool. A lane whose provider is lost is reported by the spool.

import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { ProviderName } from '../domain/ids.ts'
import { isUnknown, type Spool } from '../spool/spool.ts'

export type OrphanedProviders = {
  /** Reports each new orphan, each that is gone and, at intervals, the number of payloads that wait. */
  report(this: void): void
}

/** The number may grow with each message, so it is not reported each time. */
const reportEveryMs = 60_000

export function createOrphanedProviders(
  { spool, clock, emit }: { spool: Pick<Spool, 'lanes'>; clock: Clock; emit: Emit },
  { known }: { known: readonly ProviderName[] },
): OrphanedProviders {
  const reported = new Map<ProviderName, { payloads: number; atMs: number }>()
  return { report }

  function report(): void {
    const waiting = new Map<ProviderName, number>()
    for (const { id, provider, open } of spool.lanes())
      if (open > 0 && !known.includes(provider) && !isUnknown({ id, provider }))
        waiting.set(provider, (waiting.get(provider) ?? 0) + open)
    for (const provider of reported.keys()) if (!waiting.has(provider)) emitCount(provider, 0)
    for (const [provider, payloads] of waiting) {
      const last = reported.get(provider)
      const changed = last?.payloads !== payloads && clock.monotonic() - (last?.atMs ?? 0) >= reportEveryMs
      if (last === undefined || changed) emitCount(provider, payloads)
    }
  }

  function emitCount(provider: ProviderName, payloads: number): void {
    if (payloads === 0) reported.delete(provider)
    else reported.set(provider, { payloads, atMs: clock.monotonic() })
    emit({ kind: 'provider_unknown', provider, payloads })
  }
}
