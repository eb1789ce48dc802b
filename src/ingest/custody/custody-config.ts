// custody-config.ts: the options of custody in `ingest.bridges[]`, for bridges whose server keeps what is
// parked. Custody is one for the whole gateway: payloads of all bridges are in the same lanes.

import { hostname } from 'node:os'
import { z } from 'zod'
import { duration } from '../../std/schema.ts'
import type { CustodyOptions } from './types.ts'

export const custodyFields = {
  custody: z
    .enum(['spool', 'delivered'])
    .default('spool')
    .describe(
      'When a message is acknowledged. `spool`: after it is durable in the spool. `delivered`: after the ingestion API ' +
        'has accepted its payloads, so that a gateway whose disk is lost loses nothing (docs/engines.md, Custody). ' +
        '`delivered` is for the whole gateway: all bridges have it, and there are no listeners.',
    ),
  park_after: duration({ minMs: 1000, maxMs: 86_400_000 })
    .default(60_000)
    .describe(
      'With `custody: delivered`: what is not delivered for this time, while other payloads are, goes to the queue of ' +
        'parked entries of the engine. If nothing is delivered for this time, nothing more is taken. With several ' +
        'bridges the shortest counts.',
    ),
  park_for: duration({ minMs: 1000, maxMs: 30 * 86_400_000 })
    .default(600_000)
    .describe('How long it stays there, before it is tried again. With several bridges the shortest counts.'),
}

type Fields = { custody: string; park_after?: number; park_for?: number; member?: string | undefined }

/** Null: custody `spool`. */
export function custodyOptions(bridges: readonly Fields[]): CustodyOptions | null {
  const delivered = bridges.filter(({ custody }) => custody === 'delivered')
  if (delivered.length === 0) return null
  return {
    parkAfterMs: Math.min(...delivered.map((one) => one.park_after ?? 60_000)),
    parkForMs: Math.min(...delivered.map((one) => one.park_for ?? 600_000)),
    member: delivered[0]?.member ?? hostname(),
  }
}

/** Custody is for the whole gateway. */
export function checkCustody(
  { listeners, bridges }: { listeners: readonly unknown[]; bridges: readonly (Fields & { name: string })[] },
  context: z.RefinementCtx,
): void {
  if (!bridges.some(({ custody }) => custody === 'delivered')) return
  const refuse = (path: (string | number)[], message: string) =>
    context.addIssue({ code: 'custom', path, message })
  bridges.forEach(({ custody, name }, index) => {
    if (custody !== 'delivered')
      refuse(
        ['bridges', index, 'custody'],
        `must be delivered, because another bridge has it. Custody is for the whole gateway; take ${name} in with ` +
          'another gateway if it cannot be delivered',
      )
  })
  if (listeners.length > 0)
    refuse(
      ['broker', 'listeners'],
      'must be [] with custody: delivered, because what devices publish here would be lost with the disk. Let them ' +
        'publish to the engine, or to another gateway',
    )
}
