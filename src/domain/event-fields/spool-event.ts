// spool-event.ts: the events of the spool, its database, and its high-water mark.

import type { GatewayError } from '../../std/gateway-error.ts'
import { count, field, why } from './event-fields.ts'
import type { LaneId } from '../ids.ts'
import type { KeptStore } from '../kept-store.ts'

/** Why the spool holds all acknowledgements. `store_lost`: a write failed and the store is being reopened. */
export type HoldReason = 'spool_full' | 'disk_low' | 'state_full' | 'store_lost'

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

const lane = field<LaneId>('number of the lane')
const payloads = count('payloads')
const bytes = field<number>('size in bytes')
const tookMs = field<number>('duration in ms')
const reason = field<HoldReason>('stable code of the reason')
const detail = field<string>('the reason in words')
const fault = field<GatewayError>('error with its code and its three sentences')
const table = field<RecordTable>(
  '`state`: mapping state, `kept`: kept messages, `journal`: what ingest notes, `sessions`: stored sessions, ' +
    '`dedup`: dedup window; the others as they are named',
)
const name = field<string>('name of the message shelf or key of the state')

export const spoolEventFields = {
  spool_files_private: {
    path: field<string>('directory of the spool'),
    changed: count('files and directories whose mode was changed'),
    failed: count('files and directories that other users may still open'),
  },
  spool_recovered: {
    lanes: count('lanes'),
    batches: count('sealed batches'),
    payloads,
    bytes,
    windowIds: count('payloadIds in the dedup window'),
    damaged: count('payloads that the opening found damaged or missing'),
    unconfirmedWrites: count('writes that failed before the store was lost and are there, and repairs'),
    tookMs,
  },
  spool_checked: { tables: count('tables of the store'), tookMs },
  spool_refused: { fault },
  spool_leftovers_moved: { path: field<string>('where the files are now'), files: count('files moved') },
  spool_set_aside: { path: field<string>('where a damaged store is kept'), why },
  log_mended: {
    file: field<string>('name of the log'),
    aside: field<string>('where the damaged log is kept'),
    lostBytes: field<number>('bytes that cannot be read'),
    lostOperations: field<number | null>('operations that cannot be read; null where not known'),
  },
  table_damaged: {
    file: field<string>('name of the table'),
    what: detail,
    command: field<string>('command that repairs the spool'),
  },
  table_check_failed: { why },
  spool_held: { reason, detail },
  spool_resumed: { heldMs: field<number>('how long acknowledgements were held, in ms') },
  messages_evicted: {
    store: field<KeptStore>('name of the store'),
    messages: count('messages'),
    bytes,
    shares: field<string>('the largest shares of the store'),
  },
  spool_compacted: { lane, tookMs },
  store_lost: { fault },
  store_reopened: { lostMs: field<number>('how long the store was closed, in ms') },
  store_reopen_failed: { fault, attempt: field<number>('number of the attempt') },
  chunk_damaged: { lane, firstSeq: field<number>('number of the first payload'), payloads, what: detail },
  conservation_broken: {
    lane,
    appended: count('payloads appended'),
    settled: count('payloads settled'),
    open: count('payloads left'),
  },
  record_damaged: { table, name, what: detail },
  writes_missing: {
    writes: count('writes that are missing'),
    payloads: count('payloads that are missing'),
    lanes: field<string>('missing payloads of each lane'),
  },
  high_water_mark_unknown: { why },
  records_unbalanced: { table, name, known: count('records by the counter'), found: count('records found') },
}
