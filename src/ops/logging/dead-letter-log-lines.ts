// dead-letter-log-lines.ts: the log lines of dead letters that are worked with. See event-log-lines.ts.

import { assertNever } from '../../std/assert.ts'
import { formatSize } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { LetterEvent } from '../conditions/dead-letter-conditions.ts'
import { line, type Line } from './log-line.ts'

export function letterLine(event: LetterEvent): Line {
  switch (event.kind) {
    case 'dead_letters_full':
      return line(
        'error',
        event,
        `The dead letters have reached their ${formatSize(event.bytesMax)}: what would become one more waits without an ack.`,
        'letters_full',
      )
    case 'dead_letters_resumed':
      return line('info', event, 'There is room for dead letters again.', 'letters_full')
    case 'dead_letters_requeued':
      return line('info', event, `${event.payloads} payloads of dead letters go to the ingestion API again.`)
    case 'dead_letters_remapped':
      return line(
        'info',
        event,
        `${event.deadLetters} dead letters were mapped again to ${event.payloads} payloads; ${event.refused} stay.`,
      )
    case 'dead_letter_edited':
      return line('info', event, `The payload of dead letter ${event.id} goes again as it was mended.`)
    case 'dead_letters_imported':
      return line(
        'info',
        event,
        `${event.payloads} payloads and ${event.messages} messages were taken from a file; ${event.duplicates} were here already.`,
      )
    case 'dead_letters_purged': {
      const why =
        event.by === 'operator' ? 'somebody asked for it' : 'they are older than dead_letters.retention'
      return line(
        'error',
        { ...event, reasons: bounded(event.reasons, 500) },
        `${event.deadLetters} dead letters were deleted, since ${why}: ${bounded(event.reasons)}`,
      )
    }
    default:
      return assertNever(event)
  }
}
