// ledger-metrics.ts: the metrics of the ledger. See metrics-catalogue.ts.

import type { LedgerView } from '../../ledger/ledger.ts'
import { counter, gauge, one, type Metric } from './metric-readings.ts'

type Key = 'records' | 'bytes' | 'behind' | 'behindBytes' | 'dropped' | 'expired' | 'missed' | 'damaged'

const from =
  (key: Key): Metric['read'] =>
  ({ stages }) => {
    const view: LedgerView | undefined = stages.ledger?.view()
    return view === undefined ? [] : one(view[key])
  }

export const fromLedger: readonly Metric[] = [
  gauge('gateway_ledger_records', 'Settled payloads that the ledger knows.', from('records')),
  gauge('gateway_ledger_bytes', 'Bytes of the records of the ledger.', from('bytes')),
  gauge('gateway_ledger_behind_receipts', 'Settled batches that the ledger has yet to copy.', from('behind')),
  gauge('gateway_ledger_behind_bytes', 'Bytes of those.', from('behindBytes')),
  counter(
    'gateway_ledger_dropped_total',
    'Payloads that left the ledger before ledger.retention, at ledger.max_bytes.',
    from('dropped'),
  ),
  counter(
    'gateway_ledger_expired_total',
    'Payloads that left the ledger at ledger.retention.',
    from('expired'),
  ),
  counter(
    'gateway_ledger_missed_total',
    'Settled batches without a receipt: the spool had no room for it.',
    from('missed'),
  ),
  counter('gateway_ledger_damaged_total', 'Receipts that could not be read.', from('damaged')),
]
