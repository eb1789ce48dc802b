// spool-facts.ts: the facts of the spool and the ledger.

import { keptStoreNames } from '../../domain/kept-store.ts'
import {
  count,
  countOrNull,
  flag,
  group,
  list,
  maybe,
  secondsOrNull,
  textOrNull,
  timeOrNull,
  word,
  wordOrNull,
} from './fact.ts'
import type { Seen } from './seen.ts'

export const spool = group('The spool on the disk. The lanes have its payloads.', (seen: Seen) => seen, {
  hold: textOrNull(
    'Why all acknowledgements are held: spool full, disk low, store lost. Null: they are not.',
    ({ stages }) => stages.spool?.holdReason(),
  ),
  bytes: count(
    'Size of the payloads in the spool, in bytes of JSON.',
    'gateway_spool_bytes',
    ({ totals }) => totals?.openBytes,
  ),
  bytesMax: countOrNull(
    'Limit of the spool (spool.max_bytes).',
    'gateway_spool_limit_bytes',
    ({ totals }) => totals?.bytesMax,
  ),
  diskBytes: count(
    'Size of the files of the spool, as last measured.',
    'gateway_spool_disk_bytes',
    ({ totals }) => totals?.diskBytes,
  ),
  freeBytes: countOrNull(
    'Free space on the file system of the spool, as last measured.',
    'gateway_spool_disk_free_bytes',
    ({ totals }) => totals?.freeBytes,
  ),
  freeBytesMin: count(
    'Free space below which nothing is acknowledged (spool.min_free_bytes).',
    'gateway_spool_disk_free_limit_bytes',
    ({ totals }) => totals?.freeBytesMin,
  ),
  ackWaitMs: count(
    'How long the first message of the last write waited for its acknowledgement (ingest.ack_delay_max).',
    null,
    ({ totals }) => totals?.ackWaitMs,
  ),
  secondsToFull: secondsOrNull(
    'Until it is full, or its disk low, if it grows as in the last 10 minutes (the disk: as in the last hour); null: it does not grow, or that is not known.',
    null,
    ({ forecast }) => forecast.secondsToFull,
  ),
  fullFirst: wordOrNull(
    'What is full first: the spool (`bytesMax`), or its disk (`freeBytesMin`).',
    ['spool', 'disk'],
    ({ forecast }) => forecast.fullFirst,
  ),
  secondsToFullWhy: textOrNull('Why `secondsToFull` is null.', ({ forecast }) => forecast.secondsToFullWhy),
  deadLetters: count(
    'Dead letters in the spool. Alert on any increase.',
    'gateway_dead_letters',
    ({ totals }) => totals?.deadLetters,
  ),
  quarantined: count(
    'Messages in quarantine now.',
    'gateway_quarantine_messages',
    ({ totals }) => totals?.quarantined,
  ),
  deferred: count(
    'Messages that a version before 0.2 deferred, and that are being mapped.',
    'gateway_deferred_messages',
    ({ totals }) => totals?.deferred,
  ),
  deadLettersFull: flag(
    'Messages that would become dead letters wait without an acknowledgement.',
    null,
    ({ stages }) => stages.spool?.deadLettersFull(),
  ),
  stores: list(
    'Kept messages and dead letters.',
    ({ totals }) => totals && keptStoreNames.map((store) => ({ store, ...totals.stores[store] })),
    {
      store: word('The store.', keptStoreNames),
      bytes: count('Size of a store of kept messages.', 'gateway_kept_bytes'),
      bytesMax: count('Limit of a store of kept messages.', 'gateway_kept_limit_bytes'),
      onFull: word(
        'What happens at the limit: messages wait without an acknowledgement, or the oldest are deleted.',
        ['hold', 'drop_oldest'],
      ),
      devices: count('Devices that have something in it.'),
      clients: count('Clients that have something in it.'),
    },
    { store: 'store' },
  ),
})

export const ledger = maybe(
  'The ledger; null where none is kept.',
  ({ stages }: Seen) => stages.ledger?.view(),
  {
    open: flag('Whether it can be asked.'),
    records: count('Settled payloads in the ledger.', 'gateway_ledger_records'),
    bytes: count('Size of the ledger.', 'gateway_ledger_bytes'),
    bytesMax: count('Its limit (ledger.max_bytes).'),
    oldestAt: timeOrNull('Time of its oldest entry.', null, undefined, { isOurs: true }),
    behind: count(
      'Settled batches whose receipt is not copied to the ledger yet.',
      'gateway_ledger_behind_receipts',
    ),
    behindBytes: count(
      'Size of the receipts that are not copied to the ledger yet.',
      'gateway_ledger_behind_bytes',
    ),
    dropped: count('Payloads removed from the ledger at ledger.max_bytes.', 'gateway_ledger_dropped_total'),
    expired: count('Payloads removed from the ledger at ledger.retention.', 'gateway_ledger_expired_total'),
    missed: count('Settled batches whose receipt the spool had no room for.', 'gateway_ledger_missed_total'),
    damaged: count('Receipts for the ledger that cannot be read.', 'gateway_ledger_damaged_total'),
    reread: count(
      'Receipts for the ledger that were read from the disk to be copied.',
      'gateway_ledger_reread_total',
    ),
  },
)
