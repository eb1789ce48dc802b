// spool-events.ts: the events of the spool and its store.

import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf, HoldReason } from '../../domain/event.ts'
import { heldMessages } from '../conditions/condition-catalogue.ts'
import type { Cause } from '../conditions/conditions.ts'
import { noKey, ofFault, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

type SpoolEvent = Extract<
  EventName,
  `${'spool' | 'store' | 'chunk' | 'conservation' | 'record' | 'records'}_${string}`
>

/** A lost store is open again with an event of its own. */
const holdsEnded = {
  SPOOL_FULL: noKey,
  DISK_LOW: noKey,
  QUARANTINE_FULL: noKey,
  DEFERRED_FULL: noKey,
  STATE_FULL: noKey,
}

const eitherLost = 'Either stored data was lost or this is a fault of the gateway.'

export const spoolEvents: EventTable<SpoolEvent> = {
  spool_recovered: {
    meaning: 'The spool is open, with what it held before.',
    level: 'info',
    text: ({ payloads, lanes, batches }) =>
      `The spool is open: ${plural(payloads, 'payload')} in ${plural(lanes, 'lane')}, ` +
      `${plural(batches, 'sealed batch', 'sealed batches')}.`,
  },
  spool_held: {
    meaning: 'The spool takes no messages. Devices get no acknowledgement, and QoS 0 messages are dropped.',
    level: { oneOf: ['warn', 'error'], of: ({ reason }) => (reason === 'store_lost' ? 'error' : 'warn') },
    text: ({ detail }) => `${bounded(sentence(detail))} ${heldMessages}`,
    repeats: ({ reason }) => reason,
    clears: holdsEnded,
    raises: {
      SPOOL_FULL: heldFor('spool_full'),
      DISK_LOW: heldFor('disk_low'),
      QUARANTINE_FULL: heldFor('quarantine_full'),
      DEFERRED_FULL: heldFor('deferred_full'),
      STATE_FULL: heldFor('state_full'),
      STORE_LOST: heldFor('store_lost'),
    },
  },
  spool_resumed: {
    meaning: 'The spool takes messages again. Held acknowledgements are given.',
    level: 'info',
    text: ({ heldMs }) => `The spool takes messages again after ${formatDuration(heldMs)}.`,
    repeats: () => '',
    clears: holdsEnded,
  },
  spool_compacted: {
    meaning: 'A drained lane was compacted and its disk space released.',
    level: 'debug',
    text: ({ lane }) => `Lane ${lane} is drained. Its disk space is released.`,
  },
  store_lost: {
    meaning: 'A write to the spool failed. The gateway closes the store and opens it again.',
    level: 'error',
    text: ({ fault }) => `${fault.what} The gateway acknowledges nothing until the store is open again.`,
    repeats: ({ fault }) => fault.code,
    raises: { STORE_LOST: ofFault },
  },
  store_reopened: {
    meaning: 'The store is open again after a failed write.',
    level: 'info',
    text: ({ lostMs }) => `The store is open again after ${formatDuration(lostMs)}.`,
    clears: { STORE_LOST: noKey },
  },
  store_reopen_failed: {
    meaning: 'An attempt to open the store again failed. The gateway tries again.',
    level: 'error',
    text: ({ attempt }) => `Attempt ${attempt} to open the store again failed.`,
    repeats: ({ fault }) => fault.code,
    raises: { STORE_LOST: ofFault },
  },
  chunk_damaged: {
    meaning: 'Stored payloads cannot be read. They are set aside, and the lane continues without them.',
    level: 'error',
    text: (event) => `${unreadable(event)} The data is set aside.`,
    repeats: ({ lane }) => String(lane),
    raises: {
      CHUNK_DAMAGED: (event) => ({
        key: `lane ${event.lane}`,
        times: event.payloads,
        what: unreadable(event),
        why: `${sentence(event.what)} The data is set aside in the spool, not deleted. The lane continues.`,
      }),
    },
  },
  conservation_broken: {
    meaning: 'The payloads of a lane do not add up: appended is not settled plus open.',
    level: 'error',
    text: unbalanced,
    repeats: ({ lane }) => String(lane),
    raises: {
      CONSERVATION_BROKEN: (event) => ({
        key: `lane ${event.lane}`,
        what: unbalanced(event),
        why: eitherLost,
      }),
    },
  },
  record_damaged: {
    meaning: 'Mapping state or a kept message cannot be read. It is set aside, never deleted.',
    level: 'error',
    text: (event) => `Cannot read all of ${recordsOf(event)}: ${bounded(event.what)}.`,
    repeats: ({ table }) => table,
    raises: {
      RECORD_DAMAGED: (event) => ({
        key: recordsKey(event),
        what: `Cannot read all of ${recordsOf(event)}.`,
        why: `${sentence(event.what)} Nothing was deleted.`,
      }),
    },
  },
  records_unbalanced: {
    meaning: 'The number of kept messages or of state entries differs from its counter.',
    level: 'error',
    text: wrongNumber,
    repeats: ({ table }) => table,
    raises: {
      RECORDS_UNBALANCED: (event) => ({ key: recordsKey(event), what: wrongNumber(event), why: eitherLost }),
    },
  },
}

function heldFor(reason: HoldReason) {
  return (event: EventOf<'spool_held'>): Cause | null =>
    event.reason === reason ? { why: sentence(event.detail) } : null
}

function unreadable({ lane, payloads, firstSeq }: EventOf<'chunk_damaged'>): string {
  return `Cannot read ${plural(payloads, 'payload')} of lane ${lane}, from number ${firstSeq}.`
}

function unbalanced({ lane, appended, settled, open }: EventOf<'conservation_broken'>): string {
  return `Lane ${lane}: ${appended} appended, but ${settled} settled and ${open} open.`
}

type RecordsEvent = EventOf<'record_damaged' | 'records_unbalanced'>

function recordsOf({ table, name }: RecordsEvent): string {
  if (table === 'kept') return `the kept messages of ${quote(name, 100)}`
  return name === '' ? 'the mapping state' : `the mapping state under ${quote(name, 100)}`
}

/** One entry of state has no condition of its own: there may be thousands. */
function recordsKey({ table, name }: RecordsEvent): string {
  return table === 'state' ? 'state' : name
}

function wrongNumber(event: EventOf<'records_unbalanced'>): string {
  return `${sentence(recordsOf(event)).slice(0, -1)}: ${event.known} by the counter, ${event.found} found.`
}
