// stall-events.ts: the events of messages that map to nothing. Devices that are silent: silence-events.ts.

import { formatDuration, plural } from '../../../std/quantity.ts'
import type { EventName } from '../../../domain/event.ts'
import { noKey } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type StallEvent = Extract<EventName, 'nothing_mapped' | 'nothing_mapped_ended'>

export const stallEvents: EventTable<StallEvent> = {
  nothing_mapped: {
    level: 'warn',
    raises: {
      NOTHING_MAPPED: ({ messages, duplicates, spanMs, reasons }) => ({
        what:
          duplicates === messages
            ? `Devices send, and nothing new comes: each of the last ${plural(messages, 'message')} in ` +
              `${formatDuration(spanMs)} is a duplicate.`
            : `The last ${plural(messages, 'message')} in ${formatDuration(spanMs)} became no new payload.`,
        why: `${reasons}.`,
        present: messages,
      }),
    },
  },
  nothing_mapped_ended: {
    meaning: 'A message became a new payload again.',
    level: 'info',
    text: () => 'Messages become payloads again.',
    clears: { NOTHING_MAPPED: noKey },
  },
}
