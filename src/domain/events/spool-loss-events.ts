// spool-loss-events.ts: the events about stored data that is damaged or missing.

import { plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { Cause } from '../cause.ts'
import type { LaneId } from '../ids.ts'
import { count, detail, event, field, lane, payloads } from './events.ts'
import { sentence } from './event-text.ts'

/** Tables of the spool whose records can be damaged. Payloads have events of their own (chunk_damaged). */
export type RecordTable =
  | 'state'
  | 'kept'
  | 'journal'
  | 'sessions'
  | 'dedup'
  | 'dead letters'
  | 'receipts'
  | 'format'
  | 'lanes'
  | 'batches'
  | 'totals'
  | 'chunks'

const table = field<RecordTable>(
  '`state`: mapping state, `kept`: kept messages, `journal`: what ingest notes, `sessions`: stored sessions, ' +
    '`dedup`: dedup window; the others as they are named',
)
const name = field<string>('name of the message shelf or key of the state')

const eitherLost = 'Either stored data was lost or this is a fault of the gateway.'

export const spoolLossEvents = {
  chunk_damaged: event({
    fields: { lane, firstSeq: field<number>('number of the first payload'), payloads, what: detail },
    level: 'error',
    text: (event) =>
      event.payloads > 0
        ? `Cannot read ${plural(event.payloads, 'payload')} of lane ${event.lane}, from number ${event.firstSeq}.`
        : `Cannot read a record of lane ${event.lane}.`,
    repeats: ({ lane }) => String(lane),
    raises: {
      CHUNK_DAMAGED: (event) => (event.payloads > 0 ? lostPayloads(event) : lostRecord(event)),
    },
  }),
  writes_missing: event({
    fields: {
      writes: count('writes that are missing'),
      payloads: count('payloads that are missing'),
      lanes: field<string>('missing payloads of each lane'),
    },
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
  }),
  conservation_broken: event({
    fields: {
      lane,
      appended: count('payloads appended'),
      settled: count('payloads settled'),
      open: count('payloads left'),
    },
    level: 'error',
    repeats: ({ lane }) => String(lane),
    raises: {
      CONSERVATION_BROKEN: ({ lane, appended, settled, open }) => ({
        key: `lane ${lane}`,
        what: `Lane ${lane}: ${appended} appended, but ${settled} settled and ${open} open.`,
        why: eitherLost,
      }),
    },
  }),
  record_damaged: event({
    fields: { table, name, what: detail },
    level: 'error',
    repeats: ({ table }) => table,
    raises: {
      RECORD_DAMAGED: (event) => ({
        key: recordsKey(event),
        what: `Cannot read ${recordsOf(event)}.`,
        why: `${sentence(event.what)} Nothing was deleted.`,
      }),
    },
  }),
  records_unbalanced: event({
    fields: { table, name, known: count('records by the counter'), found: count('records found') },
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
  }),
}

type ChunkDamaged = { lane: LaneId; firstSeq: number; payloads: number; what: string }

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

type RecordsEvent = { table: RecordTable; name: string }

function recordsOf({ table, name }: RecordsEvent): string {
  if (table === 'kept') return `kept messages of ${quote(name, 100)}`
  if (table === 'state') return name === '' ? 'mapping state' : `mapping state under ${quote(name, 100)}`
  return tableNames[table]
}

/** One entry of state has no condition of its own: there may be thousands. */
function recordsKey({ table, name }: RecordsEvent): string {
  return table === 'kept' ? name : table
}

function unbalancedText(event: RecordsEvent & { known: number; found: number }): string {
  const { table, known, found } = event
  const records = table === 'dead letters' ? 'dead letters' : recordsOf(event)
  const difference = found < known ? `${known - found} are missing` : `${found - known} more than counted`
  return `Wrong number of ${records}: ${known} by the counter, ${found} found; ${difference}.`
}
