// acceptance.ts: how many live or backfill batches in a row the service answered 200 and accepted nothing of,
// and whether that is an outage.

import type { Clock } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Facts, Verdict } from '../policy/policy.ts'

export type Acceptance = {
  facts(): Pick<Facts, 'emptyAnswers' | 'acceptedLately' | 'outage'>
  judged(verdict: Verdict, requestId: string | null): void
  states(): readonly State[]
}

/** Through a night without traffic nothing shows that the service works. */
const latelyMs = 600_000

export function createAcceptance(
  { clock }: { clock: Clock },
  { provider }: { provider: ProviderName },
): Acceptance {
  let emptyAnswers = 0
  let acceptedAtMs = Number.NEGATIVE_INFINITY
  let outage = false
  let nothing: State<'NOTHING_ACCEPTED'> | null = null

  return {
    facts() {
      const acceptedLately = emptyAnswers === 0 && clock.monotonic() - acceptedAtMs < latelyMs
      return { emptyAnswers, acceptedLately, outage }
    },
    judged({ emptyAnswers: change, nothingAccepted: why, endpoint }, requestId) {
      // An outage of the endpoint lasts until a request succeeds, here as in endpoint.ts.
      if (endpoint === 'outage' || endpoint === 'success') outage = endpoint === 'outage'
      if (change === 'increment') emptyAnswers += 1
      if (change === 'reset') {
        emptyAnswers = 0
        acceptedAtMs = clock.monotonic()
        nothing = null
      }
      if (why !== null)
        nothing = { code: 'NOTHING_ACCEPTED', provider, batches: emptyAnswers, why, requestId }
    },
    states: () => (nothing === null ? [] : [nothing]),
  }
}
