// unmappable-counter.ts: counts messages that became dead letters by source and reason, and reports the first
// of a pair at once, then at most one in `eventEveryMs`.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Sender } from '../../domain/message.ts'
import { createReasonCounter, type ReasonCount } from './reason-counter.ts'

/** As its message source has it; a client of the broker has an id. */
type From = Pick<Sender, 'clientId' | 'userName' | 'address'>

type Unmappable = { source: string | null; reason: string; detail: string }

export type UnmappableCounter = {
  add(unmappable: Unmappable, topic: string, from: From): void
  counts(): readonly ReasonCount[]
}

export function createUnmappableCounter(
  { clock, emit }: { clock: Clock; emit: Emit },
  options: { eventEveryMs: number },
): UnmappableCounter {
  const reasons = createReasonCounter(clock, options)
  return {
    add({ source, reason, detail }, topic, from) {
      if (reasons.add(source, reason))
        emit({ kind: 'message_unmappable', source, topic, reason, detail, ...fromOf(from) })
    },
    counts: reasons.counts,
  }
}

/** For events. */
export function fromOf({ clientId, userName, address = null }: From) {
  return { clientId: clientId === '' ? null : clientId, userName, address }
}
