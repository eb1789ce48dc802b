// dead-letter-conditions.ts: the conditions of dead letters that are worked with. See condition-rules.ts.

import { assertNever } from '../../std/assert.ts'
import { formatSize } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { Conditions } from './conditions.ts'

export type LetterEvent = Extract<
  GatewayEvent,
  {
    kind:
      `dead_letters_${string}` | 'letters_requeued' | 'letter_edited' | 'letters_filled' | 'letters_purged'
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
    case 'letters_purged':
      conditions.raise({
        code: 'DEAD_LETTERS_PURGED',
        severity: 'error',
        times: event.letters,
        quietMs: dayMs,
        what: `${event.letters} dead letters were deleted: their data is lost.`,
        why: `${event.by === 'hand' ? 'Somebody asked for it' : 'They were older than dead_letters.retention'}: ${bounded(event.reasons, 300)}.`,
        act: 'Nothing, if it was meant. Else raise or remove spool.dead_letters.retention.',
      })
      return
    // It is on the road; how many are left the counters know.
    case 'letters_requeued':
    case 'letter_edited':
    case 'letters_filled':
      return
    default:
      assertNever(event)
  }
}
