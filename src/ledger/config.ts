// config.ts: the section `ledger` of the config.

import { z } from 'zod'
import { duration, size } from '../std/schema.ts'
import type { LedgerOptions } from './ledger.ts'

const MiB = 1024 ** 2
const hourMs = 3_600_000

export const ledgerSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether the ledger is kept: what became of each payload, with the requestId of the service, to be asked with ' +
          '`telemetry-gateway ledger`. Nothing else depends on it.',
      ),
    retention: duration({ minMs: hourMs, maxMs: 3660 * 24 * hourMs })
      .prefault('7d')
      .describe(
        'How long its records are kept. By age they go only while the time is known from the answers of the service, so ' +
          'that a wrong clock deletes nothing.',
      ),
    max_bytes: size({ minBytes: MiB, maxBytes: 64 * 1024 ** 2 * MiB })
      .prefault('1GiB')
      .describe(
        'Bound of its records, beside spool.max_bytes; beyond it the oldest go first, and are counted. A payload takes ' +
          'some 30 bytes, so 1GiB holds 35 million of them.',
      ),
  })
  .prefault({})
  .describe('What became of each payload, for support and as proof of delivery.')

export type LedgerConfig = z.output<typeof ledgerSchema>

/** `path` is that of the spool: the records lie in it. */
export function ledgerOptions(config: LedgerConfig, path: string): LedgerOptions {
  return {
    path,
    retentionMs: config.retention,
    bytesMax: config.max_bytes,
    followEveryMs: 5000,
    sliceReceipts: 64,
    sliceRestMs: 20,
    reopen: { firstMs: 1000, mostMs: 60_000 },
  }
}
