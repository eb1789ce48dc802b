// spool-loss-events.ts: the events about stored data that is damaged or missing.

import { plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventOf } from '../../domain/event.ts'
import type { Cause } from '../conditions/types.ts'
import { sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

export type SpoolLossEvent =
  'chunk_damaged' | 'writes_missing' | 'conservation_broken' | 'record_damaged' | 'records_unbalanced'

const eitherLost = 'Either stored data was lost or this is a fault of the gateway.'

export const spoolLossEvents: EventTable<SpoolLossEvent> = {
  chunk_damaged: {
    level: 'error',
    text: (event) =>
      event.payloads > 0
        ? `Cannot read ${plural(event.payloads, 'payload')} of lane ${event.lane}, from number ${event.firstSeq}.`
        : `Cannot read a record of lane ${event.lane}.`,
    repeats: ({ lane }) => String(lane),
    raises: {
      CHUNK_DAMAGED: (event) => (event.payloads > 0 ? lostPayloads(event) : lostRecord(event)),
    },
  },
  writes_missing: {
    level: 'error',
    raises: {
      WRITES_MISSING: ({ writes, payloads, lanes }) => ({
        times: Math.max(1, payloads),
        what: `${plural(payloads, 'acknowledged payload')} and ${plural(writes, 'write')} are missing in the spool.`,
        why:
          (lanes === '' ? '' : `Missing payloads: ${bounded(lanes)}. `) +
          'The high-water mark beside the database counts more than the database holds.',
      }),
    },
  },
  conservation_broken: {
    level: 'error',
    repeats: ({ lane }) => String(lane),
    raises: {
      CONSERVATION_BROKEN: ({ lane, appended, settled, open }) => ({
        key: `lane ${lane}`,
        what: `Lane ${lane}: ${appended} appended, but ${settled} settled and ${open} open.`,
        why: eitherLost,
      }),
    },
  },
  record_damaged: {
    level: 'error',
    repeats: ({ table }) => table,
    raises: {
      RECORD_DAMAGED: (event) => ({
        key: recordsKey(event),
        what: `Cannot read ${recordsOf(event)}.`,
        why: `${sentence(event.what)} Nothing was deleted.`,
      }),
    },
  },
  records_unbalanced: {
    level: 'error',
    repeats: ({ table }) => table,
    raises: {
      RECORDS_UNBALANCED: (event) => ({
        key: recordsKey(event),
        times: Math.abs(event.known - event.found),
        what: unbalancedText(event),
        why:
          event.found < event.known
            ? 'Stored data was lost with files or records of the spool. The counter is corrected.'
            : 'Records are back of which the deletion was lost. They may be sent twice. The counter is corrected.',
      }),
    },
  },
}

type ChunkDamaged = EventOf<'chunk_damaged'>

/** The condition counts the payloads of all its events. */
const lostPayloads = ({ lane, payloads, firstSeq, what }: ChunkDamaged): Cause => ({
  key: `lane ${lane}`,
  times: payloads,
  what: (count) => `Cannot read ${plural(count, 'payload')} of lane ${lane}.`,
  why: `Last report: ${plural(payloads, 'payload')} from number ${firstSeq}. ${sentence(what)} The lane continues.`,
})

/** Without payloads, a record of the lane or of a batch was damaged. */
const lostRecord = ({ lane, what }: ChunkDamaged): Cause => ({
  key: `records of lane ${lane}`,
  what: (count) => `Cannot read ${plural(count, 'record')} of lane ${lane}.`,
  why: `${sentence(what)} The lane continues.`,
})

const tableNames: Record<Exclude<RecordsEvent['table'], 'state' | 'kept'>, string> = {
  journal: 'the journal of the intake',
  sessions: 'stored sessions of clients',
  dedup: 'the dedup window',
  'dead letters': 'dead letters or their totals',
  receipts: 'receipts for the ledger',
  format: 'the format record of the spool',
  lanes: 'records of lanes',
  batches: 'records of batches',
  totals: 'totals of lanes',
  chunks: 'chunks of lanes',
}

type RecordsEvent = EventOf<'record_damaged' | 'records_unbalanced'>

function recordsOf({ table, name }: RecordsEvent): string {
  if (table === 'kept') return `kept messages of ${quote(name, 100)}`
  if (table === 'state') return name === '' ? 'mapping state' : `mapping state under ${quote(name, 100)}`
  return tableNames[table]
}

/** One entry of state has no condition of its own: there may be thousands. */
function recordsKey({ table, name }: RecordsEvent): string {
  return table === 'kept' ? name : table
}

function unbalancedText(event: EventOf<'records_unbalanced'>): string {
  const { table, known, found } = event
  const records = table === 'dead letters' ? 'dead letters' : recordsOf(event)
  const difference = found < known ? `${known - found} are missing` : `${found - known} more than counted`
  return `Wrong number of ${records}: ${known} by the counter, ${found} found; ${difference}.`
}
