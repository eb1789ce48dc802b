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
        'Whether to keep the ledger: what happened to each payload, with the requestId of the ' +
          'service. Read it with `telemetry-gateway ledger`. Delivery does not depend on it.',
      ),
    retention: duration({ minMs: hourMs, maxMs: 3660 * 24 * hourMs })
      .prefault('7d')
      .describe(
        'How long entries are kept, at least; at most an eighth of it, or a day, longer. Old entries are deleted only while the time is known from the answers of the ' +
          'service, so that a wrong clock deletes nothing.',
      ),
    max_bytes: size({ minBytes: MiB, maxBytes: 64 * 1024 ** 2 * MiB })
      .prefault('1GiB')
      .describe(
        'Size limit of the ledger, in addition to spool.max_bytes. Beyond it the oldest entries are deleted and ' +
          'counted. An entry takes about 30 bytes, so 1GiB holds 35 million.',
      ),
  })
  .prefault({})
  .describe('What happened to each payload, for support and as proof of delivery.')

export type LedgerConfig = z.output<typeof ledgerSchema>

/** `path` is that of the spool. */
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
