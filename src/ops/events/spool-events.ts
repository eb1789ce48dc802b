// spool-events.ts: the events of the spool and its store. What it lost: spool-loss-events.ts.

import { isoTime } from '../../std/clock.ts'
import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf, HoldReason } from '../../domain/event.ts'
import { keptStores, type KeptStore } from '../../domain/kept-store.ts'
import { heldMessages } from '../conditions/spool-conditions.ts'
import type { Cause } from '../conditions/types.ts'
import { clause, noKey, ofFault, sentence } from './event-text.ts'
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

/** A lost store is open again with an event of its own. */
const holdsEnded = {
  SPOOL_FULL: noKey,
  DISK_LOW: noKey,
  STATE_FULL: noKey,
}

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
    clears: { ...holdsEnded, STORE_LOST: noKey, SPOOL_DAMAGED: noKey, SPOOL_UNUSABLE: noKey },
  },
  spool_new: {
    level: 'warn',
    raises: {
      SPOOL_NEW: ({ path, at }) => ({
        what: `A new spool was made at ${path}, ${isoTime(at)}.`,
        why: 'There was none, and spool.create is true.',
      }),
    },
  },
  spool_new_ended: {
    meaning: 'The spool that the gateway has made is a day old.',
    level: 'info',
    text: () => 'The new spool is a day old.',
    clears: { SPOOL_NEW: noKey },
  },
  spool_checked: {
    meaning: 'The files of the spool were checked before the opening, after an unclean end.',
    level: 'info',
    text: ({ tables, tookMs }) =>
      `The files of the spool were checked in ${formatDuration(tookMs)}: ${plural(tables, 'table')}, no damage.`,
  },
  spool_refused: {
    level: 'error',
    repeats: ({ fault }) => fault.code,
    clears: {
      STORE_LOST: noKey,
      SPOOL_DAMAGED: ({ fault }) => (isDamage(fault) ? undefined : null),
      SPOOL_UNUSABLE: ({ fault }) => (isDamage(fault) ? null : undefined),
    },
    raises: {
      SPOOL_DAMAGED: ({ fault }) => (isDamage(fault) ? ofFault({ fault }) : null),
      SPOOL_UNUSABLE: ({ fault }) => (isDamage(fault) ? null : coded(fault)),
    },
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
    level: 'error',
    raises: {
      SPOOL_SET_ASIDE: ({ path, spoolPath, why }) => ({
        what: `A damaged spool was set aside to ${path}. A new one is begun.`,
        why: sentence(why),
        act: mergeWith(spoolPath),
      }),
    },
  },
  spool_aside_found: {
    level: 'error',
    raises: {
      SPOOL_SET_ASIDE: ({ path, spoolPath, stores }) => ({
        what: `${plural(stores, 'damaged spool')} set aside: ${path}. Its data is not delivered.`,
        why: 'It was damaged when the gateway started (spool.on_damage: set_aside).',
        act: mergeWith(spoolPath),
      }),
    },
  },
  spool_aside_merged: {
    meaning: 'No spool that was set aside is left.',
    level: 'info',
    text: () => 'No spool that was set aside is left.',
    clears: { SPOOL_SET_ASIDE: noKey },
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
    clears: holdsEnded,
    raises: {
      SPOOL_FULL: heldFor('spool_full'),
      DISK_LOW: heldFor('disk_low'),
      STATE_FULL: heldFor('state_full'),
      STORE_LOST: heldFor('store_lost'),
    },
  },
  spool_resumed: {
    meaning: 'The spool accepts messages again. Held acknowledgements are sent.',
    level: 'info',
    text: ({ heldMs }) => `The spool accepts messages again after ${formatDuration(heldMs)}.`,
    repeats: () => '',
    clears: holdsEnded,
  },
  kept_full: {
    meaning:
      'A store of kept messages with on_full: hold is nearly full. Messages for it wait with their connections.',
    level: 'error',
    text: ({ store, bytesMax }) => fullText(store, bytesMax),
    repeats: ({ store }) => store,
    raises: {
      QUARANTINE_FULL: fullFor('quarantine', 'clock'),
      DEAD_LETTERS_FULL: fullFor('unlisted_dead_letters'),
    },
  },
  kept_resumed: {
    meaning: 'A store of kept messages has room again. The connections that waited continue.',
    level: 'info',
    text: ({ store }) => `There is room again for ${keptStores[store]}.`,
    repeats: ({ store }) => store,
    clears: {
      QUARANTINE_FULL: ({ store }) => store,
      DEAD_LETTERS_FULL: ({ store }) => store,
    },
  },
  spool_compacted: {
    meaning: 'A drained lane was compacted and its disk space released.',
    level: 'debug',
    text: ({ lane }) => `Lane ${lane} is drained. Its disk space is released.`,
  },
  store_lost: {
    level: 'error',
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
    raises: { STORE_LOST: ({ fault }) => coded(fault) },
  },
  high_water_mark_unknown: {
    meaning:
      'The high-water mark of the spool cannot be used. It is written anew. Whether writes of the spool were ' +
      'lost before this start is not known.',
    level: 'warn',
    text: ({ why }) => `The high-water mark is not known: ${clause(why)}. It is written anew.`,
  },
  high_water_mark_failed: {
    level: 'warn',
    raises: { MARK_UNWRITABLE: ({ why }) => ({ why: sentence(why) }) },
  },
  high_water_mark_resumed: {
    meaning: 'The high-water mark of the spool is written again.',
    level: 'info',
    text: () => 'The high-water mark is written again.',
    clears: { MARK_UNWRITABLE: noKey },
  },
  spool_lane_unknown: {
    level: 'error',
    raises: {
      LANE_UNKNOWN: ({ lane, payloads }) => ({
        key: `lane ${lane}`,
        present: payloads,
        what: `Lane ${lane} holds ${plural(payloads, 'payload')} of an unknown provider. They are kept.`,
        why: 'The record of the lane is lost, and neither its totals nor the high-water mark name its provider.',
        act: `Run \`telemetry-gateway spool assign-lane --lane ${lane} --provider NAME\` with a provider of the config.`,
      }),
    },
  },
  spool_lane_assigned: {
    meaning: 'An operator assigned a lane of an unknown provider to a provider. Its payloads are delivered.',
    level: 'info',
    text: ({ lane, provider, payloads }) =>
      `Lane ${lane} with ${plural(payloads, 'payload')} belongs to provider ${quote(provider, 64)} now.`,
    clears: { LANE_UNKNOWN: ({ lane }) => `lane ${lane}` },
  },
}

function heldFor(reason: HoldReason) {
  return (event: EventOf<'spool_held'>): Cause | null =>
    event.reason === reason ? { why: sentence(event.detail) } : null
}

function fullFor(...stores: KeptStore[]) {
  return ({ store, bytesMax }: EventOf<'kept_full'>): Cause | null =>
    stores.includes(store) ? { key: store, why: fullText(store, bytesMax) } : null
}

function fullText(store: KeptStore, bytesMax: number): string {
  return `Nine tenths of ${formatSize(bytesMax)} for ${keptStores[store]} are used.`
}

/** Its reasons differ, and so do their cures: the code says which one it is. */
const coded = (fault: GatewayError): Cause => ({ ...ofFault({ fault }), why: `${fault.code}: ${fault.why}` })

const isDamage = ({ code }: { code: string }) => code === 'SPOOL_DAMAGED'

const mergeWith = (spoolPath: string) =>
  `Stop the gateway, run \`telemetry-gateway spool repair --path ${spoolPath} --yes\`, and start the gateway. ` +
  'The repair merges what can be read into the spool.'

function lostText(bytes: number, operations: number | null): string {
  const lost = operations === null ? 'an unknown number of operations' : plural(operations, 'operation')
  return `${lost} in ${formatSize(bytes)} cannot be read`
}
