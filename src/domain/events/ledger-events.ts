// ledger-events.ts: the events of the ledger. None is above `warn`: nothing is late or lost by them.

import { formatSize, plural } from '../../std/quantity.ts'
import type { EpochMs } from '../../std/clock.ts'
import { bytes, count, event, field, tookMs, why } from './events.ts'
import { sentence } from './event-text.ts'

export const ledgerEvents = {
  ledger_opened: event({
    fields: {
      records: count('settled payloads'),
      bytes,
      oldestAt: field<EpochMs | null>('time of the oldest record, Unix time in ms; null for none'),
      tookMs,
    },
    meaning: 'The ledger is open.',
    level: 'info',
    text: ({ records, bytes }) =>
      `The ledger is open: ${plural(records, 'payload')} in ${formatSize(bytes)}.`,
  }),
  ledger_set_aside: event({
    fields: { path: field<string>('where the old records are kept'), why },
    level: 'warn',
    raises: {
      LEDGER_SET_ASIDE: ({ why, path }) => ({
        what: 'The ledger is damaged. It is set aside, and a new one begins.',
        why: sentence(why),
        act: `Delivery is not affected. The old records are kept at ${path}. Check the disk.`,
      }),
    },
  }),
  ledger_receipts_damaged: event({
    fields: { receipts: count('receipts') },
    meaning: 'Receipts of settled batches cannot be read. The ledger does not have their payloads.',
    level: 'warn',
    repeats: () => '',
    raises: {
      LEDGER_SET_ASIDE: ({ receipts }) => ({
        key: 'receipts',
        times: receipts,
        what: (count) =>
          `Cannot read ${plural(count, 'receipt')} of settled batches. The ledger does not have them.`,
        why: 'Their checksums are wrong. No payload is affected: all were delivered or kept.',
      }),
    },
  }),
}
