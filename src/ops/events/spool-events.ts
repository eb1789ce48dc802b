// spool-events.ts: the events of the spool and its store. What it lost: spool-loss-events.ts.

import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName } from '../../domain/event.ts'
import { heldMessages } from '../conditions/spool-conditions.ts'
import { clause, sentence } from './event-text.ts'
import type { SpoolLossEvent } from './spool-loss-events.ts'
import type { EventTable } from './types.ts'

type SpoolPrefix =
  | 'spool'
  | 'store'
  | 'log'
  | 'table'
  | 'chunk'
  | 'writes'
  | 'high_water_mark'
  | 'conservation'
  | 'record'
  | 'records'
  | 'kept'

type SpoolEvent = Exclude<Extract<EventName, `${SpoolPrefix}_${string}`>, SpoolLossEvent>

export const spoolEvents: EventTable<SpoolEvent> = {
  spool_files_private: {
    meaning: 'Other users could open files of the spool. The start took that right from them where it could.',
    level: 'warn',
    text: ({ path, changed, failed }) =>
      `Other users could open ${plural(changed + failed, 'file')} of the spool at ${path}: ${changed} changed, ` +
      `${failed} not.`,
    act: 'Where files were not changed: give them to the user of the daemon (`chown -R`).',
  },
  spool_recovered: {
    meaning: 'The spool is open, with all data that it contained before.',
    level: 'info',
    text: ({ payloads, lanes, batches }) =>
      `The spool is open: ${plural(payloads, 'payload')} in ${plural(lanes, 'lane')}, ` +
      `${plural(batches, 'sealed batch', 'sealed batches')}.`,
  },
  spool_checked: {
    meaning: 'The files of the spool were checked before the opening, after an unclean end.',
    level: 'info',
    text: ({ tables, tookMs }) =>
      `The files of the spool were checked in ${formatDuration(tookMs)}: ${plural(tables, 'table')}, no damage.`,
  },
  spool_refused: {
    meaning: 'The spool cannot be opened. The gateway runs, accepts no connection, and tries again.',
    act: 'See the condition.',
    level: 'error',
    text: ({ fault: { what } }) => what,
    repeats: ({ fault }) => fault.code,
    whyLengthMax: 1000,
  },
  spool_leftovers_moved: {
    meaning: 'A spool that never held data could not be used. Its files were moved, and a new one is begun.',
    level: 'warn',
    text: ({ path, files }) =>
      `The spool held no data and could not be used. ${plural(files, 'file')} moved to ${quote(path, 300)}; ` +
      'a new spool is begun.',
  },
  spool_set_aside: {
    meaning: 'A damaged spool was set aside (spool.on_damage), and a new one is begun.',
    act: 'See the condition.',
    level: 'error',
    text: ({ path, why }) => `A damaged spool was set aside to ${path}. A new one is begun. ${sentence(why)}`,
  },
  log_mended: {
    level: 'error',
    raises: {
      LOG_MENDED: ({ file, aside, lostBytes, lostOperations }) => ({
        key: file,
        what: `The log ${file} of the spool was damaged: ${lostText(lostBytes, lostOperations)}.`,
        why: 'The log was bad before its end. Everything else of it is in use.',
        act: `The damaged log is kept as ${aside}. Check the disk (dmesg, SMART).`,
      }),
    },
  },
  table_damaged: {
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
  },
  table_check_failed: {
    meaning: 'The background check could not read the tables of the spool. It tries again after a minute.',
    level: 'warn',
    text: ({ why }) => `The background check could not read the tables of the spool: ${sentence(why)}`,
    repeats: () => '',
  },
  spool_held: {
    meaning: 'The spool accepts no messages. Senders get no acknowledgement, and QoS 0 messages are dropped.',
    level: { oneOf: ['warn', 'error'], of: ({ reason }) => (reason === 'store_lost' ? 'error' : 'warn') },
    text: ({ detail }) => `${bounded(sentence(detail))} ${heldMessages}`,
    repeats: ({ reason }) => reason,
  },
  spool_resumed: {
    meaning: 'The spool accepts messages again. Held acknowledgements are sent.',
    level: 'info',
    text: ({ heldMs }) => `The spool accepts messages again after ${formatDuration(heldMs)}.`,
    repeats: () => '',
  },
  spool_compacted: {
    meaning: 'A drained lane was compacted and its disk space released.',
    level: 'debug',
    text: ({ lane }) => `Lane ${lane} is drained. Its disk space is released.`,
  },
  store_lost: {
    meaning: 'A write to the spool failed. The store is closed and opened again.',
    act: 'See the condition.',
    level: 'error',
    text: ({ fault: { what } }) => what,
    repeats: ({ fault }) => fault.code,
  },
  store_reopened: {
    meaning: 'The store is open again after a failed write.',
    level: 'info',
    text: ({ lostMs }) => `The store is open again after ${formatDuration(lostMs)}.`,
  },
  store_reopen_failed: {
    meaning: 'An attempt to open the store again failed. The gateway tries again.',
    level: 'error',
    text: ({ attempt }) => `Attempt ${attempt} to open the store again failed.`,
    repeats: ({ fault }) => fault.code,
  },
  high_water_mark_unknown: {
    meaning:
      'The high-water mark of the spool cannot be used. It is written anew. Whether writes of the spool were ' +
      'lost before this start is not known.',
    level: 'warn',
    text: ({ why }) => `The high-water mark is not known: ${clause(why)}. It is written anew.`,
  },
}

function lostText(bytes: number, operations: number | null): string {
  const lost = operations === null ? 'an unknown number of operations' : plural(operations, 'operation')
  return `${lost} in ${formatSize(bytes)} cannot be read`
}
