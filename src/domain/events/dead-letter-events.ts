// dead-letter-events.ts: the events of dead letters that exist; ingest and delivery report new ones.

import { plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { count, deadLetters, event, field, messages, payloadId, payloads } from './events.ts'

export const deadLetterEvents = {
  dead_letters_requeued: event({
    fields: { deadLetters, payloads },
    meaning: 'A command sends payloads of dead letters again.',
    level: 'info',
    text: ({ deadLetters, payloads }) =>
      `Requeued ${plural(deadLetters, 'dead letter')}: ${plural(payloads, 'payload')}.`,
  }),
  dead_letters_remapped: event({
    fields: { deadLetters, payloads, refused: count('those that could not be mapped') },
    meaning: 'A command mapped dead letters again.',
    act: 'If some could not be mapped, see `dead-letters list`.',
    level: 'info',
    text: ({ deadLetters, payloads, refused }) =>
      `Mapped ${plural(deadLetters, 'dead letter')} again to ${plural(payloads, 'payload')}; ` +
      `${refused} could not be mapped.`,
  }),
  dead_letters_imported: event({
    fields: { payloads, messages, duplicates: count('entries left out') },
    meaning: 'A command imported payloads and messages from a file.',
    level: 'info',
    text: ({ payloads, messages, duplicates }) =>
      `Imported ${plural(payloads, 'payload')} and ${plural(messages, 'message')} from a file; ` +
      `left out ${plural(duplicates, 'duplicate')}.`,
  }),
  dead_letters_purged: event({
    fields: {
      deadLetters,
      by: field<'operator' | 'age'>('command, or spool.dead_letters.retention'),
      reasons: field<string>('number by stage and reason'),
    },
    level: 'error',
    raises: {
      DEAD_LETTERS_PURGED: ({ deadLetters, by, reasons }) => ({
        times: deadLetters,
        what: `Deleted ${plural(deadLetters, 'dead letter')} ${purgedBy[by]}. The data is lost.`,
        why: `${bounded(reasons, 400)}.`,
        act: purgedActs[by],
      }),
    },
  }),
  dead_letter_edited: event({
    fields: {
      id: field<string>('id of the dead letter'),
      payloadId,
      previousPayloadId: field<string>('payloadId before the edit'),
    },
    meaning: 'A command sends an edited payload of a dead letter.',
    level: 'info',
    text: ({ id }) => `Requeued dead letter ${id} with an edited payload.`,
  }),
}

const purgedBy = {
  operator: 'by a command',
  age: 'that were older than spool.dead_letters.retention',
}

const purgedActs = {
  operator: 'Nothing if this was intended. `audit` shows who did it, and when.',
  age: 'Nothing if this was intended. If not, raise or remove spool.dead_letters.retention.',
}
