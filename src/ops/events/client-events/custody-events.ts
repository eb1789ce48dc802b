// custody-events.ts: the events of custody `delivered`: messages that are acknowledged to an engine when they
// are delivered.

import { bounded } from '../../../std/quote.ts'
import type { EventName } from '../../../domain/event.ts'
import { sentence } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type CustodyEvent = Extract<EventName, `custody_${string}`>

export const custodyEvents: EventTable<CustodyEvent> = {
  custody_entries_refused: {
    meaning: 'Entries that were parked in the engine came back and became dead letters.',
    level: 'warn',
    text: ({ entries, reason, why }) =>
      `${entries} parked entries became dead letters (${reason}): ${sentence(bounded(why, 300))}`,
    repeats: ({ reason }) => reason,
  },
  custody_copies_cut: {
    meaning:
      'Copies of large dead letters are in the engine without the bytes of their messages, because it did not take ' +
      'them. The dead letters have them.',
    level: 'warn',
    text: ({ copies }) =>
      `${copies} copies of dead letters are stored in the engine without the bytes of their messages: it did not take them.`,
    repeats: () => '',
  },
}
