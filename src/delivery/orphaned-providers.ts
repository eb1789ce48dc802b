// orphaned-providers.ts: providers that have payloads in the spool and are not in the config (any more).
// Their payloads stay in the spool. A lane whose provider is lost is a state of the spool.

import type { ProviderName } from '../domain/ids.ts'
import type { State } from '../domain/condition-state.ts'
import { isUnknown, type Spool } from '../spool/spool.ts'

export function orphanedProviders(spool: Pick<Spool, 'lanes'>, known: readonly ProviderName[]): State[] {
  const waiting = new Map<ProviderName, number>()
  for (const { id, provider, open } of spool.lanes())
    if (open > 0 && !known.includes(provider) && !isUnknown({ id, provider }))
      waiting.set(provider, (waiting.get(provider) ?? 0) + open)
  return [...waiting].map(([provider, payloads]) => ({ code: 'PROVIDER_UNKNOWN', provider, payloads }))
}
