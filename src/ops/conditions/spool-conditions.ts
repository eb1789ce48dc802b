// spool-conditions.ts: the conditions of the spool and its disk: limits, lost and damaged files.

import { heldMessages } from '../../domain/events/spool-events.ts'
import { zonedTime } from '../../std/clock.ts'
import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { keptStores, type KeptStore } from '../../domain/kept-store.ts'
import { coded, ofFault, sentence } from '../../domain/events/event-text.ts'
import type { Cause } from '../../domain/cause.ts'
import { untilSeen, type ConditionTable } from './types.ts'

/** For a condition, and for the log line of the same cause. */
const heldConnections =
  'A message for it gets no acknowledgement and waits with its connection. Other connections continue.'
const copyFirst = 'Check the disk (dmesg, SMART). Copy the spool directory before you do anything else.'
const reportIt = 'Keep a copy of the spool directory and the log, run `spool verify`, and report it.'

type StateCode =
  | 'SPOOL_FULL'
  | 'DISK_LOW'
  | 'STATE_FULL'
  | 'QUARANTINE_FULL'
  | 'STORE_LOST'
  | 'SPOOL_WRITE_HANGING'
  | 'SPOOL_WRITE_SLOW'
  | 'LANE_UNKNOWN'
  | 'MARK_UNWRITABLE'
  | 'SPOOL_DAMAGED'
  | 'SPOOL_UNUSABLE'
  | 'SPOOL_SET_ASIDE'
  | 'SPOOL_NEW'
  | 'DEAD_LETTERS_FULL'

export const spoolStateConditions: ConditionTable<StateCode> = {
  SPOOL_FULL: {
    severity: 'critical',
    stops: 'receiving',
    meaning: `The spool is full. ${heldMessages}`,
    act: 'See the conditions of delivery for the cause, or raise spool.max_bytes if the disk has room.',
    cause: heldFor,
  },
  DISK_LOW: {
    severity: 'critical',
    stops: 'receiving',
    meaning: `The disk of the spool is nearly full. ${heldMessages}`,
    act:
      'Free space on that file system, or delete files there where inodes are short (`df -i`). Intake then ' +
      'resumes automatically. Never delete files of the spool.',
    cause: heldFor,
  },
  STATE_FULL: {
    severity: 'critical',
    stops: 'receiving',
    meaning: `The mapping state reached its limit. ${heldMessages}`,
    act:
      'Wait. Intake resumes when open records are closed. If this continues, raise ' +
      'spool.state_max_bytes.',
    cause: heldFor,
  },
  QUARANTINE_FULL: {
    severity: 'critical',
    meaning: `The quarantine is full, and its on_full is \`hold\`. ${heldConnections}`,
    act:
      'Run `quarantine list`. Add the devices to the table, release or drop messages, or raise ' +
      'spool.quarantine_max_bytes.',
    cause: (full) => ({ key: full.store, why: fullText(full) }),
  },
  STORE_LOST: {
    severity: 'critical',
    stops: 'receiving',
    meaning: 'A write to the spool failed. The gateway acknowledges nothing until the store is open again.',
    act: 'Check the disk and its file system (df, dmesg). The gateway opens the store again automatically.',
    cause: ({ fault, attempt }) => (attempt === 0 ? ofFault({ fault }) : coded(fault)),
  },
  SPOOL_WRITE_HANGING: {
    severity: 'critical',
    stops: 'receiving',
    meaning: 'The running write to the spool is older than 10 s. Nothing is acknowledged until it ends.',
    act:
      'Check the disk (dmesg, SMART, `iostat -x`), or the server that the spool is on. It continues automatically. If it ' +
      'does not, repair the disk and restart the gateway; where that does not end it, restart the machine.',
    cause: ({ sinceAt, ageMs }) => ({
      what: `A write to the spool hangs since ${zonedTime(sinceAt)}, for ${formatDuration(ageMs)}.`,
      why: 'The disk does not end it. Senders get no acknowledgement and keep their messages.',
    }),
  },
  SPOOL_WRITE_SLOW: {
    severity: 'warning',
    delays: true,
    meaning: 'Writes to the spool take a second or longer, of one in 100 in the last 30 s.',
    act:
      'Check the disk (dmesg, SMART, `iostat -x`), and what else writes to it. A worn SD card, a disk of an overloaded ' +
      'server and a full cache of a RAID controller are like that.',
    cause: ({ p99Ms, writes }) => ({
      what: `One write to the spool in 100 takes ${formatDuration(p99Ms)} or longer.`,
      why: `There were ${plural(writes, 'write')} in the last 30 s. Each acknowledgement waits for one, and each batch for several.`,
    }),
  },
  LANE_UNKNOWN: {
    severity: 'error',
    meaning: 'Payloads wait in a lane whose provider is lost. They are kept and not delivered.',
    act: 'Run `telemetry-gateway spool assign-lane --lane N --provider NAME` with a provider of the config.',
    cause: ({ lane, payloads }) => ({
      key: `lane ${lane}`,
      present: payloads,
      what: `Lane ${lane} holds ${plural(payloads, 'payload')} of an unknown provider. They are kept.`,
      why: 'The record of the lane is lost, and neither its totals nor the high-water mark name its provider.',
      act: `Run \`telemetry-gateway spool assign-lane --lane ${lane} --provider NAME\` with a provider of the config.`,
    }),
  },
  MARK_UNWRITABLE: {
    severity: 'warning',
    meaning:
      'The high-water mark of the spool cannot be written. Nothing is lost, but writes that the disk loses ' +
      'from now on are not noticed at the next start.',
    act: 'Check the disk (df, dmesg) and the owner of the file `mark` in the directory of the spool.',
    cause: ({ why }) => ({ why: sentence(why) }),
  },
  SPOOL_DAMAGED: {
    severity: 'critical',
    meaning:
      'Files of the spool are damaged. The gateway runs, does not open the spool, and accepts no ' +
      'connection. Senders keep their messages.',
    act:
      'Run `spool repair`. The gateway then opens the spool automatically, also where the disk reads again what it ' +
      'could not. Delete no file.',
    cause: ({ fault }) => ({ ...ofFault({ fault }), whyLengthMax: 1000 }),
  },
  SPOOL_UNUSABLE: {
    severity: 'critical',
    stops: 'receiving',
    meaning:
      'The spool cannot be opened, for another reason than damage. The gateway runs and accepts no ' +
      'connection. Senders keep their messages.',
    act: 'See the error in the condition. The gateway tries again automatically.',
    cause: ({ fault }) => coded(fault),
  },
  SPOOL_SET_ASIDE: {
    severity: 'error',
    meaning:
      'A damaged spool was set aside (spool.on_damage) and a new one was begun. The data of the old one is ' +
      'not delivered until it is repaired.',
    act: 'Stop the gateway, run `spool repair --yes`, and start the gateway. The repair merges what can be read.',
    cause: ({ path, spoolPath, stores }) => ({
      what: `${plural(stores, 'damaged spool')} set aside: ${path}. Its data is not delivered.`,
      why: 'It was damaged when the gateway started (spool.on_damage: set_aside).',
      act:
        `Stop the gateway, run \`telemetry-gateway spool repair --path ${spoolPath} --yes\`, and start the gateway. ` +
        'The repair merges what can be read into the spool.',
    }),
  },
  SPOOL_NEW: {
    severity: 'info',
    meaning: 'The gateway made a new spool within the last day, because there was none.',
    act:
      'Nothing, where that is meant. Otherwise its file system was not mounted: stop the gateway, copy this ' +
      'spool, and mount it. In production set spool.create to false.',
    cause: ({ path, at }) => ({
      what: `A new spool was made at ${path}, ${zonedTime(at)}.`,
      why: 'There was none, and spool.create is true.',
    }),
  },
  DEAD_LETTERS_FULL: {
    severity: 'critical',
    meaning:
      'The dead letters reached their limit. Messages that cannot be mapped get no acknowledgement; ' +
      'senders keep them.',
    act:
      'Run `dead-letters list`. Correct the cause and requeue the dead letters, or export and purge ' +
      'them.',
    cause: ({ store, bytesMax }) =>
      store === 'dead_letters'
        ? {
            why:
              `They use ${formatSize(bytesMax)}. Messages that can be mapped are delivered as usual. Payloads that ` +
              'would become dead letters wait for room, in at most 5 % of the spool.',
          }
        : {
            key: store,
            what: `The store for ${keptStores[store]} is full. Such messages get no acknowledgement; senders keep them.`,
            why: fullText({ store, bytesMax }),
          },
  },
}

function heldFor({ detail }: { detail: string }): Cause {
  return { why: sentence(detail) }
}

function fullText({ store, bytesMax }: { store: KeptStore; bytesMax: number }): string {
  return `Nine tenths of ${formatSize(bytesMax)} for ${keptStores[store]} are used.`
}

/** Of what was found, and stays until it is decided. */
export const spoolConditions = {
  SPOOL_FILLING: {
    severity: 'warning',
    meaning:
      'The spool is three quarters full. When it is full, senders get no acknowledgement and keep their messages.',
    act: 'See the conditions of delivery for the cause, or raise spool.max_bytes if the disk has room.',
  },
  DISK_FILLING: {
    severity: 'warning',
    meaning: 'Little space is left on the file system of the spool: less than twice spool.min_free_bytes.',
    act: 'Free space on that file system. Never delete files of the spool.',
  },
  STORE_FILLING: {
    severity: 'warning',
    meaning: 'A store of kept messages (quarantine, deferred messages, dead letters) is three quarters full.',
    act:
      'Run `quarantine list` or `dead-letters list`, and decide about what is there, or raise the limit of the ' +
      'store in `spool`.',
  },
  CHUNK_DAMAGED: {
    severity: 'critical',
    ...untilSeen,
    meaning:
      'Stored payloads, or records about them, are missing or cannot be read. What is left of them is set ' +
      'aside, not deleted.',
    act: copyFirst,
  },
  RECORD_DAMAGED: {
    severity: 'critical',
    ...untilSeen,
    meaning: 'Mapping state, a kept message or a dead letter cannot be read. It is set aside, not deleted.',
    act: copyFirst,
  },
  WRITES_MISSING: {
    severity: 'critical',
    ...untilSeen,
    meaning: 'Acknowledged data is missing in the spool: its database lost writes that were on the disk.',
    act:
      'Copy the spool directory. Check the disk (dmesg, SMART), and whether files of the spool were deleted or ' +
      'replaced by older ones. Devices do not send this data again.',
  },
  CONSERVATION_BROKEN: {
    severity: 'critical',
    meaning: 'The counters of a lane, of all payloads, or of the messages received, do not add up.',
    act: reportIt,
  },
  RECORDS_UNBALANCED: {
    severity: 'critical',
    ...untilSeen,
    meaning:
      'The number of kept messages, dead letters or entries of mapping state is not the one that was counted: ' +
      'stored data was lost, or deleted data is back. The counter is corrected and counts what was found.',
    act:
      'Check the disk (dmesg, SMART). Keep a copy of the spool directory. If no file of the spool was damaged, ' +
      'report it with the log.',
  },
  LOG_MENDED: {
    severity: 'error',
    ...untilSeen,
    meaning:
      'A log of the spool was damaged by an unclean end or by the disk. It was rewritten with everything that ' +
      'can be read, and a copy of the damaged log is kept.',
    act: 'Check the disk (dmesg, SMART). Run `spool verify` to see whether something is missing.',
  },
  TABLE_DAMAGED: {
    severity: 'critical',
    meaning:
      'The background check found a damaged table of the spool. The gateway runs, and what is not hit is ' +
      'delivered. The next start checks all tables and refuses the spool.',
    act: 'Check the disk (dmesg, SMART). Stop the gateway, run `spool repair --yes`, and start the gateway.',
  },
} as const
