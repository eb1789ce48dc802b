// parts.ts: what ops may see of the stages: their views and counters, and nothing that changes them.
// Types only, so that ops works while any of them is missing and loads none of their code.

import type { Delivery } from '../delivery/delivery.ts'
import type { Ingest } from '../ingest/ingest.ts'
import type { Spool } from '../spool/spool.ts'

/** Each is null until it is attached: ops starts before the store is opened. */
export type Parts = {
  ingest: Pick<Ingest, 'counters' | 'addresses'> | null
  spool: Pick<Spool, 'hold' | 'congested' | 'lanes' | 'totals'> | null
  delivery: Pick<Delivery, 'providers' | 'counters'> | null
}
