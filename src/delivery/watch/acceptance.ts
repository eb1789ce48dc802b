// acceptance.ts: how many live or backfill batches in a row the service answered 200 and accepted nothing of,
// and the events about it.

import type { Emit } from '../../domain/event.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Verdict } from '../policy/policy.ts'

export type Acceptance = {
  /** Batches in a row with nothing accepted. */
  emptyAnswers(): number
  judged(verdict: Verdict, requestId: string | null): void
}

export function createAcceptance(
  { emit }: { emit: Emit },
  { provider }: { provider: ProviderName },
): Acceptance {
  let emptyAnswers = 0
  let reported = false

  return {
    emptyAnswers() {
      return emptyAnswers
    },
    judged({ emptyAnswers: change, nothingAccepted: why }, requestId) {
      if (change === 'increment') emptyAnswers += 1
      if (change === 'reset') {
        emptyAnswers = 0
        if (reported) emit({ kind: 'acceptance_resumed', provider })
        reported = false
      }
      if (why === null) return
      emit({ kind: 'nothing_accepted', provider, batches: emptyAnswers, why, requestId, first: !reported })
      reported = true
    },
  }
}
