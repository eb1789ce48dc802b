// unmappable-counter.ts: counts messages that became dead letters by source and reason, and reports the first
// of a pair at once, then at most one in `eventEveryMs`.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { createReasonCounter, type ReasonCount } from './reason-counter.ts'

type Unmappable = { source: string | null; reason: string; detail: string }

export type UnmappableCounter = {
  add(unmappable: Unmappable, topic: string): void
  counts(): readonly ReasonCount[]
}

export function createUnmappableCounter(
  { clock, emit }: { clock: Clock; emit: Emit },
  options: { eventEveryMs: number },
): UnmappableCounter {
  const reasons = createReasonCounter(clock, options)
  return {
    add({ source, reason, detail }, topic) {
      if (reasons.add(source, reason)) emit({ kind: 'message_unmappable', source, topic, reason, detail })
    },
    counts: reasons.counts,
  }
}
