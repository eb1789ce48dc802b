// custody-events.ts: the events of custody `delivered`: messages that are acknowledged to an engine when they
// are delivered.

import { formatDuration, plural } from '../../../std/quantity.ts'
import { bounded, quote } from '../../../std/quote.ts'
import type { EventName } from '../../../domain/event.ts'
import { sentence } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type CustodyEvent = Extract<EventName, `custody_${string}`>

export const custodyEvents: EventTable<CustodyEvent> = {
  custody_waits: {
    meaning: 'The oldest message that is not acknowledged to the engine waits for longer than park_after.',
    level: 'warn',
    text: ({ messages, waitedMs, waitsFor }) =>
      `${areNotAcked(messages)}. The oldest waits for ${formatDuration(waitedMs)}: ` +
      sentence(bounded(waitsFor, 300)),
    repeats: () => '',
    raises: {
      CUSTODY_WAITING: ({ messages, waitedMs, waitsFor }) => ({
        key: '',
        what: `${areNotAcked(messages)}; the oldest waits for ${formatDuration(waitedMs)}.`,
        why: `It waits for ${sentence(bounded(waitsFor, 300))}`,
      }),
    },
  },
  custody_moves: {
    meaning: 'Messages are acknowledged to the engine in time again.',
    level: 'info',
    text: () => 'Messages are acknowledged to the engine in time again.',
    clears: { CUSTODY_WAITING: () => '' },
  },
  custody_outage_began: {
    meaning: 'The ingestion API accepts nothing for longer than park_after. No more messages are taken.',
    level: 'warn',
    text: () => 'The ingestion API accepts nothing. The gateway takes no more messages from the engine.',
    raises: {
      CUSTODY_OUTAGE: ({ waitedMs }) => ({
        key: '',
        what: 'The gateway takes no more messages from the engine.',
        why: `The ingestion API accepted nothing for ${formatDuration(waitedMs)}. New messages wait in the engine.`,
      }),
    },
  },
  custody_outage_ended: {
    meaning: 'The gateway takes messages from the engine again.',
    level: 'info',
    text: ({ heldMs }) =>
      `The gateway takes messages from the engine again, after ${formatDuration(heldMs)}.`,
    clears: { CUSTODY_OUTAGE: () => '' },
  },
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
  custody_store_failed: {
    meaning:
      'The engine did not confirm entries for a queue of the gateway. Nothing of them is removed or acknowledged.',
    level: 'warn',
    text: ({ messageSource, queue, why }) =>
      `Bridge ${quote(messageSource, 64)} did not store entries in the queue ${queue}: ${sentence(bounded(why, 300))}`,
    repeats: ({ messageSource, queue }) => `${messageSource} ${queue}`,
    raises: {
      CUSTODY_STORE_FAILED: ({ messageSource, queue, why, retryInMs }) => ({
        key: messageSource,
        what: `The engine of bridge ${quote(messageSource, 64)} does not confirm entries for its queue ${queue}.`,
        why: `${sentence(bounded(why, 300))} The next try is in ${formatDuration(retryInMs)}.`,
      }),
    },
  },
  custody_store_works: {
    meaning: 'The engine confirms entries for the queues of the gateway again.',
    level: 'info',
    text: ({ messageSource }) => `Bridge ${quote(messageSource, 64)} stores entries in the engine again.`,
    clears: { CUSTODY_STORE_FAILED: ({ messageSource }) => messageSource },
  },
}

function areNotAcked(messages: number): string {
  return `${plural(messages, 'message')} ${messages === 1 ? 'is' : 'are'} not acknowledged to the engine`
}
