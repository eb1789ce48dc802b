// custody-events.ts: the events of custody `delivered`: messages that are acknowledged to an engine when they
// are delivered.

import { bounded } from '../../../std/quote.ts'
import { count, event, field } from '../events.ts'
import { sentence } from '../event-text.ts'

export const custodyEvents = {
  custody_entries_refused: event({
    fields: {
      entries: count('entries that became dead letters'),
      reason: field<'BAD_PARKED_ENTRY' | 'PROVIDER_NOT_IN_CONFIG'>('reason of these dead letters'),
      why: field<string>('what is wrong with the last one, in words'),
    },
    meaning: 'Entries that were parked in the engine came back and became dead letters.',
    level: 'warn',
    text: ({ entries, reason, why }) =>
      `${entries} parked entries became dead letters (${reason}): ${sentence(bounded(why, 300))}`,
    repeats: ({ reason }) => reason,
  }),
  custody_copies_cut: event({
    fields: { copies: count('copies without the bytes of their message') },
    meaning:
      'Copies of large dead letters are in the engine without the bytes of their messages, because it did not take ' +
      'them. The dead letters have them.',
    level: 'warn',
    text: ({ copies }) =>
      `${copies} copies of dead letters are stored in the engine without the bytes of their messages: it did not take them.`,
    repeats: () => '',
  }),
}
