// dead-letter-conditions.ts: the conditions of dead letters that are worked with. See condition-rules.ts.

import { assertNever } from '../../std/assert.ts'
import { formatSize } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { Conditions } from './conditions.ts'

export type LetterEvent = Extract<
  GatewayEvent,
  {
    kind: `dead_letters_${string}` | 'dead_letter_edited'
  }
>

const dayMs = 86_400_000

export function applyLetters(conditions: Conditions, event: LetterEvent): void {
  switch (event.kind) {
    case 'dead_letters_full':
      conditions.raise({
        code: 'DEAD_LETTERS_FULL',
        severity: 'critical',
        what: 'The dead letters reached their limit; acks of messages that cannot be mapped are held.',
        why: `They use ${formatSize(event.bytesMax)}. What can be mapped and delivered goes on.`,
        act: 'See what is wrong (`dead-letters list`), mend it and requeue them; or export and purge them.',
      })
      return
    case 'dead_letters_resumed':
      conditions.clear('DEAD_LETTERS_FULL')
      return
    case 'dead_letters_purged':
      conditions.raise({
        code: 'DEAD_LETTERS_PURGED',
        severity: 'error',
        times: event.deadLetters,
        quietMs: dayMs,
        what: `${event.deadLetters} dead letters were deleted: their data is lost.`,
        why: `${event.by === 'operator' ? 'Somebody asked for it' : 'They were older than dead_letters.retention'}: ${bounded(event.reasons, 300)}.`,
        act: 'Nothing, if it was meant. Else raise or remove spool.dead_letters.retention.',
      })
      return
    // It is on the road; how many are left the counters know.
    case 'dead_letters_requeued':
    case 'dead_letter_edited':
    case 'dead_letters_imported':
    case 'dead_letters_remapped':
      return
    default:
      assertNever(event)
  }
}
