// spool-events.ts: the events of the spool and its store. What it lost: spool-loss-events.ts.

import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { bytes, count, detail, event, field, lane, payloads, tookMs, why } from './events.ts'
import { clause, sentence } from './event-text.ts'

/** Why the spool holds all acknowledgements. `store_lost`: a write failed and the store is being reopened. */
export type HoldReason = 'spool_full' | 'disk_low' | 'state_full' | 'store_lost'

const reason = field<HoldReason>('stable code of the reason')
const fault = field<GatewayError>('error with its code and its three sentences')

export const heldMessages =
  'Senders get no acknowledgement and keep their messages. QoS 0 messages are dropped.'

export const spoolEvents = {
  spool_files_private: event({
    fields: {
      path: field<string>('directory of the spool'),
      changed: count('files and directories whose mode was changed'),
      failed: count('files and directories that other users may still open'),
    },
    meaning: 'Other users could open files of the spool. The start took that right from them where it could.',
    level: 'warn',
    text: ({ path, changed, failed }) =>
      `Other users could open ${plural(changed + failed, 'file')} of the spool at ${path}: ${changed} changed, ` +
      `${failed} not.`,
    act: 'Where files were not changed: give them to the user of the daemon (`chown -R`).',
  }),
  spool_recovered: event({
    fields: {
      lanes: count('lanes'),
      batches: count('sealed batches'),
      payloads,
      bytes,
      windowIds: count('payloadIds in the dedup window'),
      damaged: count('payloads that the opening found damaged or missing'),
      unconfirmedWrites: count('writes that failed before the store was lost and are there, and repairs'),
      tookMs,
    },
    meaning: 'The spool is open, with all data that it contained before.',
    level: 'info',
    text: ({ payloads, lanes, batches }) =>
      `The spool is open: ${plural(payloads, 'payload')} in ${plural(lanes, 'lane')}, ` +
      `${plural(batches, 'sealed batch', 'sealed batches')}.`,
  }),
  spool_checked: event({
    fields: { tables: count('tables of the store'), tookMs },
    meaning: 'The files of the spool were checked before the opening, after an unclean end.',
    level: 'info',
    text: ({ tables, tookMs }) =>
      `The files of the spool were checked in ${formatDuration(tookMs)}: ${plural(tables, 'table')}, no damage.`,
  }),
  spool_refused: event({
    fields: { fault },
    meaning: 'The spool cannot be opened. The gateway runs, accepts no connection, and tries again.',
    act: 'See the condition.',
    level: 'error',
    text: ({ fault: { what } }) => what,
    repeats: ({ fault }) => fault.code,
    whyLengthMax: 1000,
  }),
  spool_leftovers_moved: event({
    fields: { path: field<string>('where the files are now'), files: count('files moved') },
    meaning: 'A spool that never held data could not be used. Its files were moved, and a new one is begun.',
    level: 'warn',
    text: ({ path, files }) =>
      `The spool held no data and could not be used. ${plural(files, 'file')} moved to ${quote(path, 300)}; ` +
      'a new spool is begun.',
  }),
  spool_set_aside: event({
    fields: { path: field<string>('where a damaged store is kept'), why },
    meaning: 'A damaged spool was set aside (spool.on_damage), and a new one is begun.',
    act: 'See the condition.',
    level: 'error',
    text: ({ path, why }) => `A damaged spool was set aside to ${path}. A new one is begun. ${sentence(why)}`,
  }),
  log_mended: event({
    fields: {
      file: field<string>('name of the log'),
      aside: field<string>('where the damaged log is kept'),
      lostBytes: field<number>('bytes that cannot be read'),
      lostOperations: field<number | null>('operations that cannot be read; null where not known'),
    },
    level: 'error',
    raises: {
      LOG_MENDED: ({ file, aside, lostBytes, lostOperations }) => ({
        key: file,
        what: `The log ${file} of the spool was damaged: ${lostText(lostBytes, lostOperations)}.`,
        why: 'The log was bad before its end. Everything else of it is in use.',
        act: `The damaged log is kept as ${aside}. Check the disk (dmesg, SMART).`,
      }),
    },
  }),
  table_damaged: event({
    fields: {
      file: field<string>('name of the table'),
      what: detail,
      command: field<string>('command that repairs the spool'),
    },
    level: 'error',
    repeats: ({ file }) => file,
    raises: {
      TABLE_DAMAGED: ({ file, what, command }) => ({
        key: file,
        what: `The table ${file} of the spool is damaged.`,
        why: sentence(what),
        act: `Check the disk (dmesg, SMART). Stop the gateway, run \`${command} --yes\`, and start the gateway.`,
      }),
    },
    whyLengthMax: 1000,
  }),
  table_check_failed: event({
    fields: { why },
    meaning: 'The background check could not read the tables of the spool. It tries again after a minute.',
    level: 'warn',
    text: ({ why }) => `The background check could not read the tables of the spool: ${sentence(why)}`,
    repeats: () => '',
  }),
  spool_held: event({
    fields: { reason, detail },
    meaning: 'The spool accepts no messages. Senders get no acknowledgement, and QoS 0 messages are dropped.',
    level: { oneOf: ['warn', 'error'], of: ({ reason }) => (reason === 'store_lost' ? 'error' : 'warn') },
    text: ({ detail }) => `${bounded(sentence(detail))} ${heldMessages}`,
    repeats: ({ reason }) => reason,
  }),
  spool_resumed: event({
    fields: { heldMs: field<number>('how long acknowledgements were held, in ms') },
    meaning: 'The spool accepts messages again. Held acknowledgements are sent.',
    level: 'info',
    text: ({ heldMs }) => `The spool accepts messages again after ${formatDuration(heldMs)}.`,
    repeats: () => '',
  }),
  spool_compacted: event({
    fields: { lane, tookMs },
    meaning: 'A drained lane was compacted and its disk space released.',
    level: 'debug',
    text: ({ lane }) => `Lane ${lane} is drained. Its disk space is released.`,
  }),
  store_lost: event({
    fields: { fault },
    meaning: 'A write to the spool failed. The store is closed and opened again.',
    act: 'See the condition.',
    level: 'error',
    text: ({ fault: { what } }) => what,
    repeats: ({ fault }) => fault.code,
  }),
  store_reopened: event({
    fields: { lostMs: field<number>('how long the store was closed, in ms') },
    meaning: 'The store is open again after a failed write.',
    level: 'info',
    text: ({ lostMs }) => `The store is open again after ${formatDuration(lostMs)}.`,
  }),
  store_reopen_failed: event({
    fields: { fault, attempt: field<number>('number of the attempt') },
    meaning: 'An attempt to open the store again failed. The gateway tries again.',
    level: 'error',
    text: ({ attempt }) => `Attempt ${attempt} to open the store again failed.`,
    repeats: ({ fault }) => fault.code,
  }),
  high_water_mark_unknown: event({
    fields: { why },
    meaning:
      'The high-water mark of the spool cannot be used. It is written anew. Whether writes of the spool were ' +
      'lost before this start is not known.',
    level: 'warn',
    text: ({ why }) => `The high-water mark is not known: ${clause(why)}. It is written anew.`,
  }),
}

function lostText(bytes: number, operations: number | null): string {
  const lost = operations === null ? 'an unknown number of operations' : plural(operations, 'operation')
  return `${lost} in ${formatSize(bytes)} cannot be read`
}
